"""Resuming a run: its options are read from its manifest, and a change that would change its results is refused.

options = resumed(Path("results/local/my-run"), given={"run_tokens": 2_000_000, "questions": 200})
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.given import PYTHON
from rewoo_bench.evaluation.trust import check_trusted
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.redaction import HIDDEN
from rewoo_bench.runs.manifest import MANIFEST, Manifest, has_its_options, read_manifest
from rewoo_bench.runs.manifest_diff import LOOSE, differences
from rewoo_bench.runs.options import OPTIONS, RunOptions, is_path

_MOST_SHOWN = 20  # values of a list in an error message


def resumed(folder: Path, given: Mapping[str, Any], *, trust: bool = False) -> RunOptions:
    """The options of the run in `folder`, with those that are `given` now. Raises `UsageError`.

    `given` has only flags of the command. One that would change the run's results has to be as it was. With `trust`
    a run that somebody else began may run programs and contact addresses that aren't given again.
    """
    manifest = read_manifest(folder)
    if manifest.published is not None:
        raise UsageError("--resume: a published run can't be resumed: it has no journal")
    recorded = manifest.options
    if not recorded.get("architectures"):
        raise UsageError(f"--resume: {str(folder / MANIFEST)!r} has no options of a run; start a new run with --out")
    if PYTHON in manifest.dataset.source or any(PYTHON in facts for facts in manifest.models.values()):
        raise UsageError(
            "--resume: this run asked Python objects (examples or a model), which no command can make again"
        )
    options = {name: value for name, value in recorded.items() if name in OPTIONS and OPTIONS[name].role.saved}
    values = json.loads(json.dumps(dict(given), default=str))  # as in a manifest
    for name, value in values.items():
        if name == "questions":
            _check_limit(value, manifest)
            continue
        if OPTIONS[name].role.resume and value != recorded.get(name):
            what = f"{OPTIONS[name].flag} {_shown(recorded.get(name))} in this run"
            raise UsageError(f"--resume: {what}; leave it out, or start a new run")
    check_trusted(manifest.as_json(), given.keys(), "--resume", trust=trust)
    if not trust and not has_its_options(folder):
        raise UsageError(
            f"--resume: {str(folder / MANIFEST)!r} has options that were damaged or edited, and they would ask and pay "
            "for calls again; bring back the file, or take it as it stands with --trust"
        )
    if HIDDEN in str(options.get("api_base")) and "api_base" not in given:
        raise UsageError("--resume: give --api-base again; its credentials aren't kept in the run")
    paths = {name: Path(value) for name, value in options.items() if value and is_path(OPTIONS[name])}
    lists = {name: tuple(value) for name, value in options.items() if isinstance(value, list)}
    return RunOptions(**{**options, **lists, **paths, **given, "resume": folder})


def _shown(recorded: Any) -> str:
    if recorded is None or recorded == []:
        return "wasn't set"
    if not isinstance(recorded, list):
        return f"was {recorded!r}"
    shown = ",".join(map(str, recorded[:_MOST_SHOWN]))
    return f"was {shown if len(recorded) <= _MOST_SHOWN else shown + ',…'!r}"


def resume_command(folder: Path) -> str:
    """The command that continues a run."""
    return f"rewoo-bench run --resume {shlex.quote(str(folder))}"


def check_same(before: Manifest, now: Manifest, ids: Sequence[str]) -> None:
    """Raises `UsageError` with the first difference: a prompt, the questions, the model.

    `ids` are the ids of the questions now. More questions than before are allowed: a sample begins with every
    smaller one.
    """
    grown = (before.dataset.limit or 0) < (now.dataset.limit or 0)
    if grown and ids_hash(ids[: before.dataset.examples]) != before.dataset.ids_hash:
        raise UsageError("--resume: --questions is larger now, and the questions don't begin with those of this run")
    old, new = before.as_json(), json.loads(json.dumps(now.as_json(), default=str))  # as `before` was written
    for part in ("architectures", "dataset", "corpus", "models"):
        loose = LOOSE | _grown(now) if grown and part == "dataset" else LOOSE
        difference = next(differences(old.get(part), new.get(part), part, loose), None)
        if difference:
            raise UsageError(f"--resume: {difference}; a resumed run has to stay the same")


def _check_limit(limit: int, manifest: Manifest) -> None:
    """Raises `UsageError` for fewer questions than before."""
    before = manifest.dataset.limit
    if before is None and limit != manifest.dataset.examples:
        raise UsageError("--resume: this run has all questions of its data set; leave -n out")
    if before is not None and limit < before:
        fewer = f"this run has {before:,} questions, and -n {limit:,} would be fewer"
        raise UsageError(f"--resume: {fewer}; leave -n out, or give more than {before:,}")


def _grown(manifest: Manifest) -> frozenset[str]:
    """Keys of a data set's facts that change with more questions."""
    changed = frozenset({"limit", "examples", "ids_hash"})
    # Generated questions have their content in their ids, and its hash is that of all of them.
    return changed | {"sha256", "rows"} if "generator" in manifest.dataset.source else changed
