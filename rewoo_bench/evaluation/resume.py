"""Going on with a run: its options are read from its manifest, and what would change its results is refused.

options = resumed(Path("results/local/my-run"), given={"max_total_tokens": 2_000_000, "limit": 200})
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.options import RunOptions
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.redaction import HIDDEN
from rewoo_bench.runs.folder import read_manifest
from rewoo_bench.runs.manifest_diff import differences

# What a session may choose for itself: none of it changes an answer.
FREE = frozenset(
    {"max_total_tokens", "max_total_cost", "concurrency", "max_connections", "max_retries", "timeout"}
    | {"fail_on_error", "api_base", "threads", "grace", "cache", "progress", "resume", "out"}
)
_FLAGS = {"architectures": "--arch", "drop_params": "--drop-param"}
# What stays in the manifest as the first session wrote it.
KEPT = ("run_id", "started_at", "command")
# Facts of a manifest that change no answer, or say again what another fact says.
LOOSE = frozenset(
    {"litellm", "xllamacpp", "llama_server", "llama_server_arguments", "n_parallel", "threads", "prefix_cache"}
    | {"api_base", "path", "texts_sha256"}
)


def as_json(options: RunOptions) -> dict[str, Any]:
    """Options as a manifest holds them; where the run lies is no part of them."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(options), default=str))
    return {name: value for name, value in values.items() if name not in ("out", "resume", "progress", "cache")}


def resumed(folder: Path, given: Mapping[str, Any]) -> RunOptions:
    """The options of the run in `folder`, with those that were given now. Raises `UsageError`.

    `given` has only what was named in the command; what would change the run's results has to be
    as it was.
    """
    manifest = read_manifest(folder)
    recorded = manifest.get("options", {})
    known = {field.name for field in fields(RunOptions)}
    options = {name: value for name, value in recorded.items() if name in known}
    asked = json.loads(json.dumps(dict(given), default=str))
    for name, value in asked.items():
        if name == "limit":
            _check_limit(value, manifest)
            continue
        if name not in FREE and value != recorded.get(name):
            flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
            was = ",".join(recorded[name]) if name == "architectures" else recorded.get(name)
            said = "wasn't set" if was is None else f"was {was!r}"
            raise UsageError(f"--resume: {flag} {said} in this run; leave it out, or start a new run")
    if f"{HIDDEN}@" in str(options.get("api_base")) and "api_base" not in given:
        raise UsageError("--resume: give --api-base again; its user info isn't kept in the run")
    paths = {name: Path(options[name]) for name in ("corpus",) if options.get(name)}
    names = {"architectures": tuple(options["architectures"]), "drop_params": tuple(options.get("drop_params", ()))}
    return RunOptions(**{**options, **names, **paths, **given, "resume": folder})


def resume_command(folder: Path) -> str:
    """What goes on with a run, as it is typed."""
    return f"rewoo-bench run --resume {shlex.quote(str(folder))}"


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], ids: Sequence[str]) -> None:
    """Raises `UsageError` naming the first thing that isn't as it was: a prompt, the questions, the model.

    `ids` are those of the questions now. More questions than before are fine: a sample begins with
    every smaller one.
    """
    written = json.loads(json.dumps(now, default=str))  # as `before` was: a tuple has become a list
    grown = (_limit(before) or 0) < (_limit(written) or 0)
    if grown and ids_hash(ids[: before["dataset"]["examples"]]) != before["dataset"]["ids_hash"]:
        raise UsageError("--resume: --limit is larger now, and the questions don't begin with those of this run")
    for part in ("architectures", "dataset", "corpus", "models"):
        loose = LOOSE | _grown(written) if grown and part == "dataset" else LOOSE
        difference = next(differences(before.get(part), written.get(part), part, loose), None)
        if difference:
            raise UsageError(f"--resume: {difference}; a run goes on only as it began")


def _check_limit(limit: int, manifest: Mapping[str, Any]) -> None:
    """Raises `UsageError` where there are to be fewer questions than before."""
    before = _limit(manifest)
    if before is None and limit != manifest.get("dataset", {}).get("examples", limit):
        raise UsageError("--resume: this run has all questions of its data set; leave -n out")
    if before is not None and limit < before:
        asked = f"this run has {before:,} questions, and -n {limit:,} would be fewer"
        raise UsageError(f"--resume: {asked}; leave -n out, or give more than {before:,}")


def _grown(manifest: Mapping[str, Any]) -> frozenset[str]:
    """What changes in a data set's part with more questions of it."""
    changed = frozenset({"limit", "examples", "ids_hash"})
    # Generated questions have their content in their ids, and its hash is that of all of them.
    return changed | {"sha256", "rows"} if "generator" in manifest["dataset"]["source"] else changed


def _limit(manifest: Mapping[str, Any]) -> int | None:
    """How many questions a run was to take, its data set's own number included; None is all there are."""
    limit: int | None = manifest.get("dataset", {}).get("limit")
    return limit
