"""Whether two runs can be compared at all, and what of an architecture was changed on purpose.

A data set, a model, a limit or a price that changed makes counts incomparable. A prompt, a setting
or a tool that changed is what a gate is there to judge: it is named, and the counts still compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from rewoo_bench.gate.baseline import Baseline
from rewoo_bench.runs.manifest_diff import differences

_SHOWN_IDS = 3


class Mismatch(NamedTuple):
    """Why not to compare: what differs, and a sentence."""

    what: str
    text: str


def incomparable_runs(before: Baseline, now: Baseline) -> Iterator[Mismatch]:
    """What makes every count incomparable."""
    dataset = differences(before.dataset, now.dataset, "dataset", without=("ids_hash",))
    corpus = differences(before.corpus, now.corpus, "corpus")
    yield from (Mismatch("data set", text) for text in [*dataset, *corpus])
    models = differences(before.models, now.models, "models")
    known = before.options.keys() & now.options.keys()  # an older baseline lacks some
    old, new = ({name: side.options[name] for name in side.options if name in known} for side in (before, now))
    options = differences(old, new, "options")
    yield from (Mismatch("model", text) for text in [*models, *options])
    if before.tokenizer and now.tokenizer:
        yield from (Mismatch("tokenizer", text) for text in differences(before.tokenizer, now.tokenizer, "tokenizer"))
    if before.prices is not None and now.prices is not None:
        yield from (Mismatch("prices", text) for text in differences(before.prices, now.prices, "prices"))


def incomparable_rows(before: Baseline, now: Baseline, architecture: str) -> Iterator[Mismatch]:
    """What makes the counts of one architecture incomparable."""
    if architecture not in before.questions:
        yield Mismatch("architecture", "the baseline has no rows of this architecture; update it")
    elif architecture not in now.questions:
        yield Mismatch("architecture", "the baseline has this architecture, and the run has no rows of it")
    else:
        yield from _ids(before, now, architecture)
        old, new = (side.architectures[architecture].usage_sources for side in (before, now))
        yield from (Mismatch("tokenizer", text) for text in differences(old, new, "usage_source"))


def _ids(before: Baseline, now: Baseline, architecture: str) -> Iterator[Mismatch]:
    """Pairs are made by id and trial: each has to stand for the same question on both sides."""
    old, new = ({(row[0], row[1]): row[2] for row in side.questions[architecture]} for side in (before, now))
    gone, added = [key for key in old if key not in new], [key for key in new if key not in old]
    if gone or added:
        yield Mismatch("ids", f"{_count(gone)} gone{_named(gone)}, {_count(added)} new{_named(added)}")
        return
    others = [key for key in old if old[key] != new[key]]
    if others:
        yield Mismatch("ids", f"{_count(others)} under the same id, with another text or answer{_named(others)}")
    elif before.dataset.get("ids_hash") != now.dataset.get("ids_hash"):
        yield Mismatch("ids", "the same ids in another order")


def _count(keys: Collection[Any]) -> str:
    return f"{len(keys)} question{'' if len(keys) == 1 else 's'}"


def _named(keys: Sequence[tuple[str, int]]) -> str:
    names = [f"{name!r}" + (f" (trial {trial})" if trial else "") for name, trial in keys[:_SHOWN_IDS]]
    more = [f"{len(keys) - _SHOWN_IDS} more"] if len(keys) > _SHOWN_IDS else []
    return f" ({', '.join(names + more)})" if names else ""


def changes(before: Baseline, now: Baseline, architecture: str) -> list[str]:
    """What was changed about an architecture: texts by name, then settings, tools and runner."""
    old, new = (side.architectures[architecture].manifest for side in (before, now))
    return [*_texts(old, new), *_settings(old, new)]


def _texts(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    named = list(_changed(old.get("texts_sha256"), new.get("texts_sha256")))
    yield from (f"{name} changed" for name in named)
    if not named and old.get("prompts_sha256") != new.get("prompts_sha256"):
        yield "its prompts changed"
    tools = _changed(old.get("tool_prompts_sha256"), new.get("tool_prompts_sha256"))
    yield from (f"prompt of the tool {name!r} changed" for name in tools)


def _changed(old: dict[str, str] | None, new: dict[str, str] | None) -> Iterator[str]:
    """Names whose digest isn't as it was; none where a side doesn't know."""
    if old is not None and new is not None:
        yield from (name for name in sorted({**old, **new}) if old.get(name) != new.get(name))


def _settings(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for part in ("runner", "settings", "tools"):
        yield from differences(old.get(part), new.get(part), part)
