"""The manifest of a run that begins, and how a later session resumes the run from it.

The options are read from the manifest, and a change that would change the run's results is refused. What was asked
already is recalled elsewhere: evaluator.py leaves out finished questions, and calls/recorder.py answers the calls of
one that was interrupted.

options = resumed(Path("results/local/my-run"), given={"run_tokens": 2_000_000, "questions": 200})
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any

from rewoo_bench.config.names import REPLAY, WIRE_NAME
from rewoo_bench.errors import DataError, OptionChanged, UsageError
from rewoo_bench.evaluation.inputs import PYTHON
from rewoo_bench.evaluation.prepare import PreparedRun, questions_at_once
from rewoo_bench.evaluation.trust import check_trusted, check_whole, was_begun_here
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.runs.folder import JOURNAL_FILE
from rewoo_bench.runs.manifest import (
    LOOSE,
    Manifest,
    changed_values,
    manifest_of,
    read_manifest,
)
from rewoo_bench.runs.options import OPTIONS, RunOptions, as_values
from rewoo_bench.text.redaction import redact_settings
from rewoo_bench.text.tokens import TOKENIZER

_MOST_SHOWN = 20  # values of a list in an error message


def resumed(folder: Path, given: Mapping[str, Any], *, trust: bool = False) -> RunOptions:
    """The options of the run in `folder`, with those that are `given` now. Raises `UsageError`.

    `given` has only flags of the command. One that would change the run's results has to be as it was. With `trust`
    a run that somebody else began may run programs and contact addresses that aren't given again.
    """
    manifest = read_manifest(folder)
    for what in ("published", "imported"):
        if getattr(manifest, what) is not None:
            raise UsageError(f"--resume: this run was {what}: there is nothing to go on with")
    recorded = {"architectures": [], **manifest.options}
    if PYTHON in manifest.dataset.source or any(PYTHON in facts for facts in manifest.models.values()):
        raise UsageError(
            "--resume: this run asked Python objects (examples or a model), which no command can make again"
        )
    options = {name: value for name, value in recorded.items() if name in OPTIONS and OPTIONS[name].role.saved}
    values = json.loads(json.dumps(dict(given), default=str))  # as in a manifest
    shown = redact_settings(values, values.get("api_base"))  # the same
    if values.get("out") not in (None, str(folder)):
        raise UsageError(f"--resume: the run goes on in its own folder {str(folder)!r}; leave --out out")
    for name, value in values.items():
        if name == "questions":
            before = manifest.dataset.limit
            if before is None and value != manifest.dataset.examples:
                raise UsageError("--resume: this run has all questions of its data set; leave -n out")
            if before is not None and value < before:
                fewer = f"this run has {before:,} questions, and -n {value:,} would be fewer"
                raise UsageError(f"--resume: {fewer}; leave -n out, or give more than {before:,}")
        elif OPTIONS[name].role.addable and not recorded.get(name):
            continue
        elif OPTIONS[name].role.resume and recorded.get(name) not in (value, shown[name]):
            raise OptionChanged(f"{OPTIONS[name].flag} {_shown(recorded.get(name))} in this run")
    check_trusted(manifest.as_json(), given, "--resume", trust=trust)
    check_whole(options, given, "--resume")
    return RunOptions(**{**as_values(options), **given, "resume": folder})


def _shown(recorded: Any) -> str:
    if recorded is None or recorded == []:
        return "wasn't set"
    if not isinstance(recorded, list):
        return f"was {recorded!r}"
    shown = ",".join(map(str, recorded[:_MOST_SHOWN]))
    return f"was {shown if len(recorded) <= _MOST_SHOWN else shown + ',…'!r}"


def check_same(before: Manifest, now: Manifest, ids: Sequence[str]) -> None:
    """Raises `UsageError` with the first difference: a prompt, the questions, the model.

    `ids` are the ids of the questions now. More questions than before are allowed: a sample begins with every
    smaller one.
    """
    grown = (before.dataset.limit or 0) < (now.dataset.limit or 0)
    if grown and ids_hash(ids[: before.dataset.examples]) != before.dataset.ids_hash:
        raise UsageError("--resume: --questions is larger now, and the questions don't begin with those of this run")
    written = json.loads(json.dumps(now.as_json(), default=str))
    address = now.options.get("api_base")
    old, new = (redact_settings(each, address) for each in (before.as_json(), written))  # as `before` was written
    more = frozenset({"limit", "examples", "ids_hash"})  # facts that change with more questions
    if "generator" in now.dataset.source:  # generated questions have their content in their ids, and one hash of all
        more |= {"sha256", "rows"}
    for part in ("architectures", "dataset", "corpus", "models"):
        loose = LOOSE | more if grown and part == "dataset" else LOOSE
        difference = next(changed_values(old.get(part), new.get(part), part, loose), None)
        if difference:
            raise UsageError(f"--resume: {difference}; a resumed run has to stay the same")


# The manifest of a run that begins or is resumed.


PACKAGES = ("rewoo-bench", "anyio", "bm25s", "datasets", "litellm", "pyarrow", "pydantic", "PyStemmer", "xllamacpp")


def new_run_id(architectures: Sequence[str], now: datetime | None = None) -> str:
    """`20261122-093000-rewoo+react-1f0a`: sorts by time, and differs from any other machine's."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%d-%H%M%S")
    names = re.sub(r"[^\w.+-]", "-", "+".join(architectures))  # it names a folder, too
    return f"{moment}-{names[:60]}-{token_hex(2)}"


def environment() -> dict[str, Any]:
    """Versions of packages that may change a result, and the platform; no names, paths or variables."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: package_version(name) for name in PACKAGES},
        "git_commit": _commit(Path(__file__).parent),
    }


def command_line() -> list[str]:
    """The command line, with the program's name without its folder."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


@cache  # packages and commit are those that this process has loaded, whatever happens to their files
def package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _commit(folder: Path) -> str | None:
    """The commit of the clone that the code runs from, with `+` for changed files; None outside a clone."""
    try:
        _git(folder, "ls-files", "--error-unmatch", __file__)  # fails in a clone of another project
        return _git(folder, "rev-parse", "HEAD") + ("+" if _git(folder, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=5)
    return done.stdout.strip()


@dataclass(frozen=True)
class StudyRound:
    """A study's round of questions of a run."""

    facts: Mapping[str, Any]
    """What the manifest says of the study, where the run begins with this round."""
    is_new_session: bool
    """Whether this process has asked nothing of the run before."""
    asks_failed: bool
    """Whether questions that the infrastructure failed are asked again."""
    run_cost: float | None = None
    """Most US dollars of the run in this session, where the study leaves less than the run's own limit."""


def begin_manifest(
    options: RunOptions, run: PreparedRun, folder: Path, run_id: str, study: StudyRound | None = None
) -> Manifest:
    """The manifest of a new run, or that of the resumed run, after a check that nothing changed; none is written."""
    corpus, path = None, options.corpus or run.dataset.corpus
    if run.corpus is not None and path is not None:
        corpus = {"file": path.name, "content_hash": run.corpus.content_hash, "passages": len(run.corpus)}
    models = {role or "default": dict(run.models[model].manifest) for role, model in options.role_models.items()}
    if run.gateway is not None:
        models["default"][WIRE_NAME] = run.gateway.model_name
        if run.gateway.embedding_name is not None:
            models.setdefault("embedding", {})[WIRE_NAME] = run.gateway.embedding_name
    facts = {
        "run_id": run_id,
        "status": "running",
        "started_at": now(),
        "command": command_line(),
        "options": options.as_json(),
        "concurrency": questions_at_once(options, run),
        "dataset": dict(run.dataset.manifest),
        "corpus": corpus,
        "architectures": [architecture.manifest for architecture in run.architectures],
        "models": models,
        "prices": _prices(run),
        "tokenizer": TOKENIZER,
        "environment": environment(),
    }
    if study is not None:
        facts["study"] = dict(study.facts)
    if options.engine != "local":
        ray = package_version("ray")
        facts["engine"] = {"name": options.engine, "version": ray, "workers": options.workers or 1}
    manifest = manifest_of(json.loads(json.dumps(facts, default=str)))
    if options.resume is None:
        return manifest
    before = read_manifest(options.resume)
    journal = folder / JOURNAL_FILE
    if not options.accept_loss and not (journal.is_file() and journal.stat().st_size):  # it has one from its beginning
        raise UsageError(
            f"--resume: {str(journal)!r} is missing or empty: bring it back, ask every question again with "
            "--accept-loss, or start a new run with another --out"
        )
    check_same(before, manifest, [example.id for example in run.dataset.examples])
    is_own = bool(before.sent) and was_begun_here(before.as_json())
    for role, model in options.role_models.items():
        learnt = before.sent.get(role or "default")  # by earlier sessions, of its endpoint
        # What this user's sessions didn't learn is learnt again.
        if learnt and is_own:
            run.models[model].recall(learnt)
    same = ("run_id", "started_at", "command", "recorded_calls", "sessions")
    kept = {name: getattr(before, name) for name in same}
    if before.study:
        kept["study"] = before.study
    if study is None or study.is_new_session:
        kept["sessions"] = [*before.sessions, {"command": command_line(), "started_at": now()}]
    if before.engine:
        kept["engine"] = manifest.engine or before.engine
    return manifest.model_copy(update=kept)


def _prices(run: PreparedRun) -> dict[str, Any]:
    """By model; in the place of a replay the models of the run that it repeats, whose prices its dollars are at."""
    found = dict[str, Any]()
    for model, opened in run.models.items():
        prices: Mapping[str, Any] = {model.name: opened.prices}
        if model.name.startswith(REPLAY):
            with suppress(DataError):  # a journal is enough to replay
                prices = read_manifest(Path(model.name.removeprefix(REPLAY))).prices or prices
        found |= prices
    return found


def sent_differences(options: RunOptions, run: PreparedRun) -> dict[str, Any]:
    """By role: how requests differed from the options; only roles where they did."""
    sent = {role or "default": dict(run.models[model].sent()) for role, model in options.role_models.items()}
    return {role: differences for role, differences in sent.items() if differences}


def now() -> str:
    """The time for a manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")
