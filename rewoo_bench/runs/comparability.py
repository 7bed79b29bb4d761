"""Whether runs can be compared, from their manifests: differences that forbid it, and differences to report.

refusals({"r1": Manifest(dataset={"seed": 0}), "r2": Manifest(dataset={"seed": 3})})
    -> ["the seed of the questions: 0 (r1), 3 (r2)"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

from rewoo_bench.config.names import LOCAL, REPLAY
from rewoo_bench.config.specs import AGENT_NAME
from rewoo_bench.runs.manifest import Manifest, Manifests, differing
from rewoo_bench.runs.options import OPTIONS

_Facts = Mapping[str, Callable[[Manifest], Any]]
_SHOWN = {"judge_model": "the judge"}
_REFUSED_OPTIONS, _NOTED_OPTIONS = (
    {
        _SHOWN.get(name, name): lambda run, name=name: run.options.get(name)
        for name, option in OPTIONS.items()
        if option.role.compare == compare
    }
    for compare in ("refuse", "note")
)
# Two runs that differ in one of these asked other questions, or scored them differently.
_MUST_BE_SAME: _Facts = {
    "the data set": lambda run: run.dataset.name,
    "the data's file (sha256)": lambda run: run.dataset.source.get("sha256"),
    "the data's hub repository": lambda run: run.dataset.source.get("hub"),
    "the data's configuration": lambda run: run.dataset.source.get("config"),
    "the data's revision": lambda run: run.dataset.source.get("revision"),
    "the split": lambda run: run.dataset.split,
    "the seed of the questions": lambda run: run.dataset.seed,
    "the scoring": lambda run: run.dataset.scoring or run.dataset.format,
    **_REFUSED_OPTIONS,
}
_NOTED: _Facts = {
    **_NOTED_OPTIONS,
    "concurrency": lambda run: run.concurrency,
    "engine": lambda run: f"{run.engine.name}, workers: {run.engine.workers}" if run.engine else "one process",
    "environment.git_commit": lambda run: run.environment.get("git_commit"),
    "environment.packages.rewoo-bench": lambda run: (run.environment.get("packages") or {}).get("rewoo-bench"),
}
# Facts of a manifest that are paths, or that change no figure.
_LOOSE = frozenset({"path", "file", "licence", "litellm", "api_base", "name"})


def refusals(manifests: Manifests) -> list[str]:
    """Differences between the runs that forbid a comparison; a sentence each."""
    facts = {what: {run: fact(each) for run, each in manifests.items()} for what, fact in _MUST_BE_SAME.items()}
    return _sentences(facts)


def noted_differences(manifests: Manifests) -> list[str]:
    """Other differences: models, prompts, settings, corpus, limits, versions; a sentence each."""
    facts = {what: {run: fact(each) for run, each in manifests.items()} for what, fact in _NOTED.items()}
    for run, manifest in manifests.items():
        found: list[tuple[str, Any]] = []
        for architecture in manifest.architectures:
            found += _flat(f"{architecture.name}: ", architecture.model_dump(mode="json", exclude_unset=True))
        for role, model in manifest.models.items():
            if role != "default":
                found.append((f"model of the {role}", model.get("name")))
            found += _flat(f"{model.get('name')}: ", model)
        corpus = manifest.corpus.content_hash if manifest.corpus else "the questions' own documents"
        for name, value in (*found, ("the corpus", corpus)):
            facts.setdefault(name, {})[run] = value
    return _sentences(facts)


def of_agents(manifests: Manifests) -> list[str]:
    """A sentence about sampling, where external agents stand beside architectures of ours."""
    runners = {each.name: each.runner for manifest in manifests.values() for each in manifest.architectures}
    agents = [name for name, runner in runners.items() if runner == AGENT_NAME]
    if not agents or len(agents) == len(runners):
        return []
    return [f"--temperature isn't sent for {', '.join(agents)}: an agent sets its own or leaves it to the provider"]


def of_unused_tools(manifests: Manifests) -> list[str]:
    """A sentence for each architecture that sends tools as JSON and never called one of them."""
    said = []
    for manifest in manifests.values():
        native = {each.name for each in manifest.architectures if each.runner == "react-native"}
        for name, tools in manifest.never_called.items():
            tokens = sum(known for known in tools.values() if known)
            cost = f": {tokens:,} tokens in each of its calls" if tokens else ""
            if name in native:
                named = " and ".join(tools) if len(tools) <= 3 else f"{len(tools)} tools"
                said.append(f"{name} was offered {named} and never called {'it' if len(tools) == 1 else 'them'}{cost}")
    return said


def queued(manifest: Manifest) -> int:
    """Number of questions that shared a model on one machine, so that latency includes waiting for it; 0 for none."""
    asked = {role: str(model.get("name")) for role, model in manifest.models.items()}
    asked.pop("judge", None)  # it judges after the question has ended
    workers = manifest.engine.workers if manifest.engine else 1  # each has its own
    at_once = ceil((manifest.concurrency or 1) / workers)
    return at_once if at_once > 1 and any(name.startswith(LOCAL) for name in asked.values()) else 0


_NOT_DONE = {"running": "is still running, or was killed", "killed": "was killed"}


def unfinished(manifests: Manifests) -> list[str]:
    """A sentence for each run that isn't done, by what the manifests are filed under: its figures are of a part of it.

    `the run mine is incomplete, with 5 of 200 answers: interrupted`.
    """
    found = []
    for name, run in manifests.items():
        if run.status not in ("done", ""):
            meant = (run.dataset.examples or 0) * int(run.options.get("trials") or 1) * len(run.architectures)
            some = run.rows is not None and run.rows < meant
            answers = f", with {run.rows:,} of {meant:,} answers" if some else ""
            why = f": {run.reason}" if run.reason else ""
            found.append(f"the run {name} {_NOT_DONE.get(run.status, f'is {run.status}')}{answers}{why}")
    return found


def wait(manifest: Manifest) -> str:
    """A note about a run's latency; empty where latency is of the question alone."""
    notes = []
    if at_once := queued(manifest):
        notes.append(f"{at_once} questions at once shared a model on one machine, so latency includes waiting for it")
    if manifest.engine is not None:
        notes.append("on a cluster latency includes waiting for the journal at the driver; working_s doesn't")
    return "; ".join(notes)


def unpaid(manifest: Manifest) -> str:
    """A note about a replay's dollars; empty for a run that was paid for."""
    is_replay = str(manifest.options.get("model", "")).startswith(REPLAY)
    return "a replay pays nothing: its dollars are what the recorded calls would cost" if is_replay else ""


def _flat(prefix: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if key in _LOOSE:
            continue
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def _sentences(facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence for each fact that isn't the same in all runs."""
    sentences = []
    for what, values in facts.items():
        if all(value == next(iter(values.values())) for value in values.values()):
            continue
        texts = {run: "none" if value is None else str(value) for run, value in values.items()}
        if what == "environment.git_commit":
            ends = {run: " with uncommitted changes" if text.endswith("+") else "" for run, text in texts.items()}
            shown = [f"{text[:12]}…{ends[run]}" if len(text) > 12 else text for run, text in texts.items()]
        else:
            shown = differing([*texts.values()])
        sentences.append(f"{what}: {', '.join(f'{text} ({run})' for text, run in zip(shown, texts, strict=True))}")
    return sentences
