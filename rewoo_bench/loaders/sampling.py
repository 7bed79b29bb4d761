"""The questions of a run: a seeded sample that depends on nothing but the ids.

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

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rewoo_bench.config.names import GENERATORS, read_options, short_name
from rewoo_bench.config.specs import DatasetSpec, import_class, validated
from rewoo_bench.errors import DataError, SpecError
from rewoo_bench.types import Example


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
    return Selection(tuple(taken), number, number - len(first_rows))


def shuffled(examples: Iterable[Example], seed: int) -> list[Example]:
    """The examples in the order in which a run asks them: its first figures are those of a random sample.

    A file may have its questions sorted by type. A sample is in this order already, so it stays as it is.
    """
    return sorted(examples, key=lambda example: _rank(example.id, seed))


def _rank(identifier: str, seed: int) -> int:
    return int.from_bytes(sha256(f"{seed}:{identifier}".encode()).digest())


def generated(
    spec: DatasetSpec, options: str, *, limit: int | None, seed: int, where: str, folder: Path | None = None
) -> tuple[str, Selection, dict[str, Any]]:
    """The name with options, the questions, and the source for the manifest, of a generated set.

    These are the first `limit` questions of the set's generator, as `options` say (`hops=3&width=2`). A generator is a
    pydantic model with a method `examples(seed)`; the same seed and options give the same questions, in the same
    order, and an id is that of one question only. `folder` is the data set's, whose files may have the class.
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
    made: object = generator.examples(seed)
    if not isinstance(made, Iterable):
        raise SpecError(f"{about}: examples(seed) returned {made!r:.80}, expected rewoo_bench.Example objects")
    examples = list(islice(made, limit))
    for example in examples:
        if not isinstance(example, Example):
            raise SpecError(f"{about}: examples(seed) made {example!r:.80}, expected a rewoo_bench.Example")
    selection = select(examples, limit=None, seed=seed, where=about)
    if not examples:
        raise DataError(f"{name}: {about} made no questions")
    content = sha256("\n".join(map(repr, examples)).encode()).hexdigest()
    source = {"generator": short_name(path), "settings": generator.model_dump(mode="json"), "sha256": content}
    changed = generator.model_dump(mode="json", exclude_defaults=True)
    shown = "&".join(f"{option}={value}" for option, value in changed.items())
    return f"{spec.name}?{shown}" if shown else spec.name, selection, source
