"""`rewoo-bench route` as a function: runs in, a report out, and router.json where it is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rewoo_bench.config.named import find_named, known_names, read_architecture
from rewoo_bench.config.router_settings import RouterSettings
from rewoo_bench.config.specs import validated
from rewoo_bench.errors import DataError, SpecError, UsageError, unknown
from rewoo_bench.output_file import replaced
from rewoo_bench.routing.learned import fit
from rewoo_bench.routing.outcomes import read_outcomes
from rewoo_bench.routing.render import RoutingReport
from rewoo_bench.routing.report import examine
from rewoo_bench.runs.folder import load, manifests

_RUNNER = "router"


def route_runs(
    runs: Sequence[str | Path],
    parents: tuple[str, str] | None,
    router: str,
    texts: Mapping[str, str],
    threshold: float,
    out: Path | None,
) -> RoutingReport:
    """The report on runs, and the file of the learned router. Raises `UsageError` and `DataError`."""
    if not runs:
        raise DataError("no run given")
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold: expected a number from 0 to 1, got {threshold!r}")
    settings = router_settings(router)
    chosen = _two(parents or settings.parents)
    rows = load(*runs)
    outcomes, _ = read_outcomes(rows, chosen, texts)
    report = examine(outcomes, rows, rules=settings.rules, texts=texts, threshold=threshold, manifests=manifests(*runs))
    if out is not None:
        written = fit(outcomes, threshold).written().encode()
        try:
            with replaced(out) as file:
                file.write(written)
        except OSError as error:
            raise UsageError(f"--out: can't write {str(out)!r}: {error.strerror or error}") from None
    return report


def router_settings(name: str) -> RouterSettings:
    """The settings of a router by its name or folder. Raises `SpecError`."""
    named = find_named("architectures", name)
    if named is None or named.folder is None:
        raise SpecError(f"--router: {unknown('architecture', name, known_names('architectures'))}; or a folder's path")
    spec = read_architecture(named)
    if spec.runner != _RUNNER:
        raise SpecError(f"--router: {name!r} is no router: its runner is {spec.runner!r}")
    return validated(RouterSettings, spec.settings, f"--router: {name!r}: [settings]")


def _two(parents: Sequence[str]) -> tuple[str, str]:
    if isinstance(parents, str) or len(parents) != 2 or parents[0] == parents[1]:
        raise UsageError(f"parents: expected two different architectures, got {parents!r}")
    return parents[0], parents[1]
