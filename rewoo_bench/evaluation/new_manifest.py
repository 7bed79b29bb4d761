"""The manifest of a run that begins or is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rewoo_bench.evaluation.environment import command_line, environment, package_version
from rewoo_bench.evaluation.folder_lock import check_journal
from rewoo_bench.evaluation.prepare import PreparedRun, questions_at_once
from rewoo_bench.evaluation.resume import check_same
from rewoo_bench.evaluation.trust import seal
from rewoo_bench.model_names import WIRE_NAME
from rewoo_bench.runs.manifest import Manifest, manifest_of, read_manifest
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.text.tokens import TOKENIZER
from rewoo_bench.tools import Corpus


def begin_manifest(options: RunOptions, run: PreparedRun, folder: Path, run_id: str) -> Manifest:
    """The manifest of a new run, or that of the resumed run, after a check that nothing changed; none is written."""
    manifest = _manifest(options, run, run_id)
    if options.resume is not None:
        before = read_manifest(options.resume)
        check_journal(folder, before.rows or 0, accept_loss=options.accept_loss)
        check_same(before, manifest, [example.id for example in run.dataset.examples])
        _recall(options, run, before.sent)
        sessions = [*before.sessions, {"command": command_line(), "started_at": now()}]
        kept: dict[str, Any] = {"run_id": before.run_id, "started_at": before.started_at, "command": before.command}
        kept["recorded_calls"] = before.recorded_calls
        engine = {"engine": manifest.engine or before.engine} if before.engine else {}
        sealed = {"seal": seal(before.run_id, manifest.options)}
        return manifest.model_copy(update={**kept, **engine, "sessions": sessions, **sealed})
    return manifest


def refused_requests(run: PreparedRun) -> dict[str, Any]:
    """By path: how many requests of external agents had the key of no open question; empty where none had."""
    return {"refused_requests": dict(run.gateway.refused)} if run.gateway and run.gateway.refused else {}


def sent_differences(options: RunOptions, run: PreparedRun) -> dict[str, Any]:
    """By role: how requests differed from the options; only roles where they did."""
    sent = {role or "default": dict(run.models[model].sent()) for role, model in options.role_models.items()}
    return {role: differences for role, differences in sent.items() if differences}


def now() -> str:
    """The time for a manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _manifest(options: RunOptions, run: PreparedRun, run_id: str) -> Manifest:
    facts = {
        "run_id": run_id,
        "status": "running",
        "started_at": now(),
        "command": command_line(),
        "options": options.as_json(),
        "seal": seal(run_id, options.as_json()),
        "concurrency": questions_at_once(options, run),
        **_engine(options),
        "dataset": dict(run.dataset.manifest),
        "corpus": _corpus_facts(run.corpus, options.corpus or run.dataset.corpus),
        "architectures": [architecture.manifest for architecture in run.architectures],
        "models": _models(options, run),
        "prices": {model.name: opened.prices for model, opened in run.models.items()},
        "tokenizer": TOKENIZER,
        "environment": environment(),
    }
    return manifest_of(json.loads(json.dumps(facts, default=str)))


def _engine(options: RunOptions) -> dict[str, Any]:
    if options.engine == "local":
        return {}
    return {"engine": {"name": options.engine, "version": package_version("ray"), "workers": options.workers or 1}}


def _recall(options: RunOptions, run: PreparedRun, sent: Mapping[str, Any]) -> None:
    """Gives each model what earlier sessions learnt of its endpoint."""
    for role, model in options.role_models.items():
        if facts := sent.get(role or "default"):
            run.models[model].recall(facts)


def _corpus_facts(corpus: Corpus | None, path: Path | None) -> dict[str, Any] | None:
    if corpus is None or path is None:
        return None
    return {"file": path.name, "content_hash": corpus.content_hash, "passages": len(corpus)}


def _models(options: RunOptions, run: PreparedRun) -> dict[str, dict[str, Any]]:
    models = {role or "default": dict(run.models[model].manifest) for role, model in options.role_models.items()}
    if run.gateway is not None:
        models["default"][WIRE_NAME] = run.gateway.model_name
        if run.gateway.embedding_name is not None:
            models.setdefault("embedding", {})[WIRE_NAME] = run.gateway.embedding_name
    return models
