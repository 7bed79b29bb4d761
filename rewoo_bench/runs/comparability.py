"""What the manifests of some runs say about comparing them: what forbids it, and what a reader has to know.

unlike({"r1": {"dataset": {"seed": 0, …}, …}, "r2": {"dataset": {"seed": 3, …}, …}})
    -> ["the seed of the questions: 0 (r1), 3 (r2)"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewoo_bench.model_names import LOCAL

Manifests = Mapping[str, Mapping[str, Any]]

# Two runs in which one of these differs didn't put the same questions, or didn't score them alike.
_MUST_BE_SAME = {
    "the data set": "dataset.name",
    "the data's file (sha256)": "dataset.source.sha256",
    "the data's hub repository": "dataset.source.hub",
    "the data's configuration": "dataset.source.config",
    "the data's revision": "dataset.source.revision",
    "the split": "dataset.split",
    "the seed of the questions": "dataset.seed",
    "the scoring": "dataset.format",
    "the judge": "options.judge_model",
}
_OPTIONS = (
    *("temperature", "planner_temperature", "solver_temperature", "max_output_tokens", "style", "constrain"),
    *("max_steps", "token_limit", "time_limit", "cost_limit", "tool_failure_rate", "tool_failure_mode", "trials"),
)
# Facts of a manifest that name a place, or that change no figure.
_LOOSE = frozenset({"path", "file", "licence", "litellm", "api_base", "name"})


def unlike(manifests: Manifests) -> list[str]:
    """What differs between the runs and makes them no comparison; a sentence each."""
    found = (_told(what, path, manifests) for what, path in _MUST_BE_SAME.items())
    return [told for told in found if told]


def differences(manifests: Manifests) -> list[str]:
    """What else differs: models, prompts, settings, corpus, limits, versions; a sentence each."""
    paths = [f"options.{name}" for name in _OPTIONS]
    paths += ["status", "concurrency", "environment.git_commit", "environment.packages.rewoo-bench"]
    told = [_told(path.removeprefix("options."), path, manifests) for path in paths]
    flat = {run: dict(_facts(manifest)) for run, manifest in manifests.items()}
    for name in dict.fromkeys(name for facts in flat.values() for name in facts):
        having = {run: facts[name] for run, facts in flat.items() if name in facts}
        told.append(_sentence(name, having))
    return [sentence for sentence in told if sentence]


def queued(manifest: Mapping[str, Any]) -> int:
    """How many questions shared a model on this machine: a call's seconds are those of a queue then. 0 for none."""
    asked = {role: str(model.get("name")) for role, model in (manifest.get("models") or {}).items()}
    asked.pop("judge", None)  # comes after a question's end
    at_once = int(manifest.get("concurrency") or 1)
    return at_once if at_once > 1 and any(name.startswith(LOCAL) for name in asked.values()) else 0


def waits(manifests: Manifests) -> list[str]:
    """Whose latency is no latency; a sentence each."""
    return [f"latency ({run}): {said}" for run, manifest in manifests.items() if (said := wait(manifest))]


def wait(manifest: Mapping[str, Any]) -> str:
    """What has to be known of a run's seconds; empty where they are what they seem."""
    if not (at_once := queued(manifest)):
        return ""
    return f"{at_once} questions at once shared a model on this machine, so seconds are those of a queue"


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Facts of the same thing, by its name: an architecture, a model, the corpus."""
    for architecture in manifest.get("architectures") or []:
        yield from _flat(f"{architecture['name']}: ", architecture)
    for role, model in (manifest.get("models") or {}).items():
        if role != "default":
            yield f"model of the {role}", model.get("name")
        yield from _flat(f"{model.get('name')}: ", model)
    yield "the corpus", (manifest.get("corpus") or {}).get("content_hash", "the questions' own documents")


def _flat(prefix: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if key in _LOOSE:
            continue
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def _told(what: str, path: str, manifests: Manifests) -> str | None:
    return _sentence(what, {run: _at(manifest, path) for run, manifest in manifests.items()})


def _sentence(what: str, values: Mapping[str, Any]) -> str | None:
    if all(value == next(iter(values.values())) for value in values.values()):
        return None
    return f"{what}: " + ", ".join(f"{_short(value)} ({run})" for run, value in values.items())


def _at(manifest: Mapping[str, Any], path: str) -> Any:
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"
