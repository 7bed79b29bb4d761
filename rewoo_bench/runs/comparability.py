"""Whether runs can be compared, from their manifests: differences that forbid it, and differences to report.

refusals({"r1": Manifest(dataset={"seed": 0}), "r2": Manifest(dataset={"seed": 3})})
    -> ["the seed of the questions: 0 (r1), 3 (r2)"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from rewoo_bench.config.names import LOCAL
from rewoo_bench.runs.manifest import Manifest, Manifests
from rewoo_bench.runs.options import options_that

# Two runs that differ in one of these asked other questions, or scored them differently.
_MUST_BE_SAME: Mapping[str, Callable[[Manifest], Any]] = {
    "the data set": lambda run: run.dataset.name,
    "the data's file (sha256)": lambda run: run.dataset.source.get("sha256"),
    "the data's hub repository": lambda run: run.dataset.source.get("hub"),
    "the data's configuration": lambda run: run.dataset.source.get("config"),
    "the data's revision": lambda run: run.dataset.source.get("revision"),
    "the split": lambda run: run.dataset.split,
    "the seed of the questions": lambda run: run.dataset.seed,
    "the scoring": lambda run: run.dataset.scoring or run.dataset.format,
}
_NAMED: Mapping[str, Callable[[Manifest], Any]] = {
    "status": lambda run: run.status,
    "concurrency": lambda run: run.concurrency,
    "engine": lambda run: f"{run.engine.name}, workers: {run.engine.workers}" if run.engine else "one process",
    "environment.git_commit": lambda run: _commit(run.environment.get("git_commit")),
    "environment.packages.rewoo-bench": lambda run: (run.environment.get("packages") or {}).get("rewoo-bench"),
}
_SHOWN = {"judge_model": "the judge"}
# Facts of a manifest that are paths, or that change no figure.
_LOOSE = frozenset({"path", "file", "licence", "litellm", "api_base", "name"})


def refusals(manifests: Manifests) -> list[str]:
    """Differences between the runs that forbid a comparison; a sentence each."""
    facts = [_sentence(what, _by_run(fact, manifests)) for what, fact in _MUST_BE_SAME.items()]
    options = _options(manifests, options_that(lambda role: role.compare == "refuse"))
    return [sentence for sentence in (*facts, *options) if sentence]


def differences(manifests: Manifests) -> list[str]:
    """Other differences: models, prompts, settings, corpus, limits, versions; a sentence each."""
    sentences = _options(manifests, options_that(lambda role: role.compare == "note"))
    sentences += [_sentence(what, _by_run(fact, manifests)) for what, fact in _NAMED.items()]
    flat = {run: dict(_facts(manifest)) for run, manifest in manifests.items()}
    for name in dict.fromkeys(name for facts in flat.values() for name in facts):
        having = {run: facts[name] for run, facts in flat.items() if name in facts}
        sentences.append(_sentence(name, having))
    return [sentence for sentence in sentences if sentence]


def queued(manifest: Manifest) -> int:
    """Number of questions that shared a model on one machine, so that latency includes waiting for it; 0 for none."""
    asked = {role: str(model.get("name")) for role, model in manifest.models.items()}
    asked.pop("judge", None)  # it judges after the question has ended
    workers = manifest.engine.workers if manifest.engine else 1  # each has its own
    at_once = ceil((manifest.concurrency or 1) / workers)
    return at_once if at_once > 1 and any(name.startswith(LOCAL) for name in asked.values()) else 0


def waits(manifests: Manifests) -> list[str]:
    """Runs in which latency includes waiting for a shared model; a sentence each."""
    return [f"latency ({run}): {note}" for run, manifest in manifests.items() if (note := wait(manifest))]


def wait(manifest: Manifest) -> str:
    """A note about a run's latency; empty where latency is of the question alone."""
    notes = []
    if at_once := queued(manifest):
        notes.append(f"{at_once} questions at once shared a model on one machine, so latency includes waiting for it")
    if manifest.engine is not None:
        notes.append("on a cluster latency includes waiting for the journal at the driver; working_s doesn't")
    return "; ".join(notes)


def _facts(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    """Facts to compare, with the name of their architecture, model or corpus."""
    for architecture in manifest.architectures:
        yield from _flat(f"{architecture.name}: ", architecture.model_dump(mode="json", exclude_unset=True))
    for role, model in manifest.models.items():
        if role != "default":
            yield f"model of the {role}", model.get("name")
        yield from _flat(f"{model.get('name')}: ", model)
    yield "the corpus", manifest.corpus.content_hash if manifest.corpus else "the questions' own documents"


def _flat(prefix: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if key in _LOOSE:
            continue
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def _options(manifests: Manifests, names: Sequence[str]) -> list[str | None]:
    return [
        _sentence(_SHOWN.get(name, name), {run: each.options.get(name) for run, each in manifests.items()})
        for name in names
    ]


def _by_run(fact: Callable[[Manifest], Any], manifests: Manifests) -> dict[str, Any]:
    return {run: fact(manifest) for run, manifest in manifests.items()}


def _sentence(what: str, values: Mapping[str, Any]) -> str | None:
    if all(value == next(iter(values.values())) for value in values.values()):
        return None
    return f"{what}: " + ", ".join(f"{_short(value)} ({run})" for run, value in values.items())


def _commit(commit: str | None) -> str | None:
    """The start of a commit's hash; a `+` after it in the manifest says that there were uncommitted changes."""
    if commit is None:
        return None
    return f"{commit[:12]}…" + (" with uncommitted changes" if commit.endswith("+") else "")


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"
