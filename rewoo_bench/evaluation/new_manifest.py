"""The manifest of a run that begins or is resumed."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any

from rewoo_bench.config.names import WIRE_NAME
from rewoo_bench.evaluation.folder import check_journal
from rewoo_bench.evaluation.prepare import PreparedRun, questions_at_once
from rewoo_bench.evaluation.resume import check_same, is_own_sent, seal
from rewoo_bench.runs.manifest import Manifest, manifest_of, read_manifest
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.text.tokens import TOKENIZER

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


def package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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
        "seal": seal(run_id, options.as_json()),
        "concurrency": questions_at_once(options, run),
        "dataset": dict(run.dataset.manifest),
        "corpus": corpus,
        "architectures": [architecture.manifest for architecture in run.architectures],
        "models": models,
        "prices": {model.name: opened.prices for model, opened in run.models.items()},
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
    check_journal(folder, before.rows or 0, accept_loss=options.accept_loss)
    check_same(before, manifest, [example.id for example in run.dataset.examples])
    for role, model in options.role_models.items():
        learnt = before.sent.get(role or "default")  # by earlier sessions, of its endpoint
        if learnt and is_own_sent(before):
            run.models[model].recall(learnt)
    same = ("run_id", "started_at", "command", "recorded_calls", "restored_rows", "sessions")
    kept = {name: getattr(before, name) for name in same}
    if before.study:
        kept["study"] = before.study
    if study is None or study.is_new_session:
        kept["sessions"] = [*before.sessions, {"command": command_line(), "started_at": now()}]
    kept["seal"] = seal(before.run_id, manifest.options)
    if before.engine:
        kept["engine"] = manifest.engine or before.engine
    return manifest.model_copy(update=kept)


def sent_differences(options: RunOptions, run: PreparedRun) -> dict[str, Any]:
    """By role: how requests differed from the options; only roles where they did."""
    sent = {role or "default": dict(run.models[model].sent()) for role, model in options.role_models.items()}
    return {role: differences for role, differences in sent.items() if differences}


def now() -> str:
    """The time for a manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")
