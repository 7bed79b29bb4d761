"""The questions of a run: a seeded sample that depends on nothing but the ids; and several of them as one task.

The rows are ordered by sha256 of `"{seed}:{id}"` and the first `limit` of them are taken. So

- the same seed and limit give the same questions, in whatever order the rows arrive, from a
  file, from a cache or streamed, on every machine;
- a smaller limit gives a prefix of a larger one: a run of 50 can be extended to 100;
- another seed gives another, independent sample.

The price is that every row has to be seen once. Only the rows in the sample are kept, so memory
doesn't grow with the split. A shuffle buffer over a stream would read fewer rows, but its sample
changes with the buffer's size, the library's version and the order of the files.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from heapq import heappop, heappush
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rewoo_bench.config.names import GENERATORS, read_options, short_name
from rewoo_bench.config.specs import DatasetSpec, import_class, validated
from rewoo_bench.errors import DataError, SpecError
from rewoo_bench.text.scoring import BETWEEN_ANSWERS
from rewoo_bench.text.words import with_titles
from rewoo_bench.types import Example, Hop
from rewoo_bench.worlds.world import Worlds


@dataclass(frozen=True, slots=True)
class Selection:
    """The examples taken, how many rows were read, and how many of those repeated a question."""

    examples: tuple[Example, ...]
    rows: int
    repeats: int


def ids_hash(ids: Iterable[str]) -> str:
    """sha256 of the ids, one a line, in their order: equal for runs over the same questions."""
    return sha256("\n".join(ids).encode()).hexdigest()


def select(
    examples: Iterable[Example], *, limit: int | None, seed: int, repeats: bool = False, where: str = "rows"
) -> Selection:
    """`limit` of the examples in the order of the seed; all of them, in file order, for None.

    With `repeats` a question that comes again under its id adds its answers and documents to
    the first one. Without `repeats`, and where two questions have the same id, raises `DataError`.
    Documents without a title are named by their first words.
    """
    first_rows: dict[str, int] = {}
    chosen: dict[str, Example] = {}
    largest_first: list[tuple[int, str]] = []
    number = 0
    for number, example in enumerate(examples, start=1):
        first = first_rows.setdefault(example.id, number)
        if first != number:
            if not repeats:
                raise DataError(f"{where}, row {number}: the id {example.id!r} is already that of row {first}")
            if (before := chosen.get(example.id)) is None:
                continue
            if before.question.casefold().split() != example.question.casefold().split():
                said = f"is that of {example.question!r} here and of {before.question!r} before"
                raise DataError(f"{where}, row {number}: the id {example.id!r} {said}")
            answers = tuple(dict.fromkeys(before.answers + example.answers))
            documents = tuple(dict.fromkeys(before.documents + example.documents))
            chosen[example.id] = replace(before, answers=answers, documents=documents)
            continue
        chosen[example.id] = example
        if limit is not None:
            heappush(largest_first, (-_rank(example.id, seed), example.id))
            if len(largest_first) > limit:
                del chosen[heappop(largest_first)[1]]
    taken = list(chosen.values())
    if limit is not None:
        taken.sort(key=lambda example: _rank(example.id, seed))
    titled = (replace(example, documents=tuple(with_titles(example.documents))) for example in taken)
    return Selection(tuple(titled), number, number - len(first_rows))


def shuffled(examples: Iterable[Example], seed: int) -> list[Example]:
    """The examples in the order in which a run asks them: its first figures are those of a random sample.

    A file may have its questions sorted by type. A sample is in this order already, so it stays as it is.
    """
    return sorted(examples, key=lambda example: _rank(example.id, seed))


def _rank(identifier: str, seed: int) -> int:
    return int.from_bytes(sha256(f"{seed}:{identifier}".encode()).digest())


def generated(
    spec: DatasetSpec, options: str, *, limit: int | None, seed: int, where: str, folder: Path | None = None
) -> tuple[str, Selection, dict[str, Any], Worlds | None]:
    """The name with options, the questions, the source for the manifest, and the worlds if any, of a generated set.

    These are the first `limit` questions of the set's generator, as `options` say (`hops=3&width=2`). A generator is a
    pydantic model with a method `examples(seed)`, and with `worlds()` where its tasks happen in one; the same seed and
    options give the same questions, in the same order, and an id is that of one question only. `folder` is the data
    set's, whose files may have the class.
    Raises `SpecError` for a class or an option that can't be used; `where` begins messages about dataset.toml.
    """
    path, name = spec.generator or "", f"data set {spec.name!r}"
    about = f"generator {path!r}"
    if limit is None:
        raise SpecError(f"{where}: the key 'default_limit' is missing: it says how many questions are generated")
    kind = import_class(path, GENERATORS, "generator", where, folder)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel) and hasattr(kind, "examples")):
        raise SpecError(f"{where}: {about} is {kind!r}, expected a pydantic model with examples(seed)")
    try:
        chosen = read_options(options)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None
    generator: Any = validated(kind, chosen, name)
    examples: list[Any] = list(islice(generator.examples(seed) or (), limit))
    if wrong := [each for each in examples if not isinstance(each, Example)]:
        raise SpecError(f"{about}: examples(seed) made {wrong[0]!r:.80}, expected a rewoo_bench.Example")
    selection = select(examples, limit=None, seed=seed, where=about)
    if not examples:
        raise DataError(f"{name}: {about} made no questions")
    content = sha256("\n".join(map(repr, examples)).encode()).hexdigest()
    source = {"generator": short_name(path), "settings": generator.model_dump(mode="json"), "sha256": content}
    changed = generator.model_dump(mode="json", exclude_defaults=True)
    shown = "&".join(f"{option}={value}" for option, value in changed.items())
    worlds = generator.worlds() if hasattr(generator, "worlds") else None
    return f"{spec.name}?{shown}" if shown else spec.name, selection, source, worlds


# Several questions of a data set as one task: `hotpotqa?objectives=3`, as in Otani et al. 2026, arXiv 2605.08477.
#
#     join([Example("a", "Who …?", ("Utzon",)), Example("b", "Where …?", ("Oslo",))], 2)
#     # Example("a+b", 'Answer these 2 questions … (1) Who …? (2) Where …?', ("Utzon | Oslo",))
#
# Tasks are made of consecutive questions in the order of the run's seed, so each question is in one task. Documents and
# gold chains are joined: a chain's depth stays, its breadth grows.


OBJECTIVES = "objectives"
MOST_JOINED = 20
_MOST_LEFT_OUT = 100  # one after the other, each compared with all others
_BAR = BETWEEN_ANSWERS.strip()  # in an answer it would make two of one
_WithPages = tuple[Example, dict[str, str]]  # title -> text


def join(examples: Iterable[Example], objectives: int, *, are_all: bool = True) -> Iterator[Example]:
    """Tasks of so many questions each, in their order; those that fill no task are left out.

    A question waits for the next task where a page of it has the title, and not the text, of one in the task. Where the
    first one finds too few others it is left out; unless more may follow (`are_all` is off), then the tasks end there.
    They also end where that happens a hundred times in a row.
    """
    left_out = 0
    waiting = deque((example, {page.title: page.text for page in example.documents}) for example in examples)
    while len(waiting) >= objectives:
        task, pages = list[Example](), dict[str, str]()
        asked, later = list[_WithPages](), list[_WithPages]()
        while waiting and len(task) < objectives:
            asked.append(waiting.popleft())
            example, own = asked[-1]
            if all(pages.get(title, text) == text for title, text in own.items()):
                task.append(example)
                pages |= own
            else:
                later.append(asked[-1])
        if len(task) == objectives:
            waiting.extendleft(reversed(later))
            left_out = 0
            yield _joined(task)
            continue
        left_out += 1
        if not are_all or left_out == _MOST_LEFT_OUT:
            return
        waiting.extend(asked[1:])


def _joined(task: list[Example]) -> Example:
    if len(task) == 1:
        return task[0]
    listed = " ".join(f"({number}) {example.question}" for number, example in enumerate(task, start=1))
    hops = list[Hop]()
    for example in task:
        hops += [_moved(hop, len(hops)) for hop in example.chain]
    most = max(len(example.answers) for example in task)
    golds = [[example.answers[min(n, len(example.answers) - 1)] for example in task] for n in range(most)]
    asked = f"Answer these {len(task)} questions in their order, with{BETWEEN_ANSWERS}between the answers: {listed}"
    return Example(
        id="+".join(example.id for example in task),
        question=asked,
        answers=tuple(BETWEEN_ANSWERS.join(answer.replace(_BAR, " ") for answer in answers) for answers in golds),
        documents=tuple(dict.fromkeys(chain.from_iterable(example.documents for example in task))),
        kind="+".join(sorted({example.kind for example in task} - {""})),
        chain=tuple(hops) if all(example.chain for example in task) else (),
        level="+".join(sorted({example.level for example in task} - {""})),
    )


def _moved(hop: Hop, by: int) -> Hop:
    """The hop in a chain that has so many others before it."""
    title = hop.title
    if hop.tool == "Calculator":
        title = re.sub(r"\{(\d+)\}", lambda place: f"{{{int(place[1]) + by}}}", title)
    return replace(hop, title=title, needs=tuple(need + by for need in hop.needs))
