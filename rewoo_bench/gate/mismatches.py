"""Whether two runs can be compared at all, and the deliberate changes of an architecture.

Another data set, model, limit or price makes counts incomparable. Another prompt, setting or tool is what a gate is
for: it is named, and the counts are still compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rewoo_bench.gate.baseline import Baseline
from rewoo_bench.runs.manifest_diff import differences
from rewoo_bench.text.counts import counted

_SHOWN = 3


class Mismatch(NamedTuple):
    """Why not to compare: the kind of difference, and a sentence."""

    what: str
    text: str


def incomparable_runs(before: Baseline, now: Baseline) -> Iterator[Mismatch]:
    """Differences that make every count incomparable, a line of each kind."""
    dataset = differences(before.dataset, now.dataset, "dataset", without=("ids_hash",))
    corpus = differences(before.corpus, now.corpus, "corpus")
    yield from _folded("data set", [*dataset, *corpus])
    models = differences(before.models, now.models, "models")
    known = before.options.keys() & now.options.keys()  # an older baseline lacks some
    old, new = ({name: side.options[name] for name in side.options if name in known} for side in (before, now))
    yield from _folded("model", [*models, *differences(old, new, "options")])
    if before.tokenizer and now.tokenizer:
        yield from _folded("tokenizer", differences(before.tokenizer, now.tokenizer, "tokenizer"))
    if before.prices is not None and now.prices is not None:
        yield from _folded("prices", differences(before.prices, now.prices, "prices"))


def _folded(what: str, texts: Iterable[str]) -> Iterator[Mismatch]:
    """One line: the names that differ, which imply the rest, or else the first differences; and how many more."""
    every = list(texts)
    shown = [text for text in every if ".name was " in text][:_SHOWN] or every[:_SHOWN]
    if every:
        rest = len(every) - len(shown)
        yield Mismatch(what, "; ".join(shown) + (f"; and {counted(rest, 'more difference')}" if rest else ""))


def incomparable_rows(before: Baseline, now: Baseline, architecture: str) -> Iterator[Mismatch]:
    """Differences that make the counts of one architecture incomparable."""
    if architecture not in before.questions:
        yield Mismatch("architecture", "the baseline has no rows of this architecture; update it")
    elif architecture not in now.questions:
        yield Mismatch("architecture", "the baseline has this architecture, and the run has no rows of it")
    else:
        yield from _ids(before, now, architecture)
        old, new = (side.architectures[architecture].usage_sources for side in (before, now))
        yield from (Mismatch("tokenizer", text) for text in differences(old, new, "usage_source"))


def _ids(before: Baseline, now: Baseline, architecture: str) -> Iterator[Mismatch]:
    """Pairs are made by id and trial: each has to belong to the same question on both sides."""
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
    return counted(len(keys), "question")


def _named(keys: Sequence[tuple[str, int]]) -> str:
    names = [f"{name!r}" + (f" (trial {trial})" if trial else "") for name, trial in keys[:_SHOWN]]
    more = [f"{len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else []
    return f" ({', '.join(names + more)})" if names else ""


def changes(before: Baseline, now: Baseline, architecture: str) -> list[str]:
    """Deliberate changes of an architecture: texts by name, then settings, tools and runner."""
    old, new = (side.architectures[architecture].manifest for side in (before, now))
    return [*_texts(old, new), *_settings(old, new)]


def _texts(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    named = list(_changed_names(old.get("texts_sha256"), new.get("texts_sha256")))
    yield from (f"{name} changed" for name in named)
    if not named and old.get("prompts_sha256") != new.get("prompts_sha256"):
        yield "its prompts changed"
    tools = _changed_names(old.get("tool_prompts_sha256"), new.get("tool_prompts_sha256"))
    yield from (f"prompt of the tool {name!r} changed" for name in tools)


def _changed_names(old: dict[str, str] | None, new: dict[str, str] | None) -> Iterator[str]:
    """Names with another digest than before; none where a side has no digests."""
    if old is not None and new is not None:
        yield from (name for name in sorted({**old, **new}) if old.get(name) != new.get(name))


def _settings(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for part in ("runner", "settings", "tools", "parents", "router_file"):
        yield from differences(old.get(part), new.get(part), part)
