"""Generated data sets: a class that dataset.toml names makes the questions.

    generator = "chain"                     # dataset.toml; or package.module:Class
    --dataset 'chain?hops=3&width=2'        # Chain(hops="3", width="2").examples(seed)

The class is a pydantic model: its fields are the options behind the question mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from rewoo_bench.config.specs import DatasetSpec, import_class, validated
from rewoo_bench.errors import DataError, SpecError
from rewoo_bench.loaders.sampling import Selection, select
from rewoo_bench.model_names import read_options
from rewoo_bench.short_names import GENERATORS, short_name
from rewoo_bench.types import Example


class Generator(Protocol):
    """Makes questions. The same seed and settings give the same questions, in the same order.

    An id is that of one question only: another seed or other settings give other ids.
    """

    def examples(self, seed: int) -> Iterable[Example]: ...


@dataclass(frozen=True)
class Generated:
    """The questions, their source for the manifest, and the data set's name with its options."""

    name: str
    selection: Selection
    source: dict[str, Any]


def generated(
    spec: DatasetSpec,
    path: str,
    options: str,
    *,
    limit: int | None,
    seed: int,
    where: str,
    folder: Path | None = None,
) -> Generated:
    """The first `limit` questions of the generator at the import path `path`, as `options` say (`hops=3&width=2`).

    `folder` is the data set's, whose files may have the class.
    Raises `SpecError` for a class or an option that can't be used; `where` begins messages about dataset.toml.
    """
    if limit is None:
        raise SpecError(f"{where}: the key 'default_limit' is missing: it says how many questions are generated")
    kind = import_class(path, GENERATORS, "generator", where, folder)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel) and hasattr(kind, "examples")):
        raise SpecError(f"{where}: generator {path!r} is {kind!r}, expected a pydantic model with examples(seed)")
    generator: Any = validated(kind, _read_options(spec.name, options), f"data set {spec.name!r}")
    made = islice(_examples(generator, seed, f"generator {path!r}"), limit)
    selection = select(made, limit=None, seed=seed, where=f"generator {path!r}")
    if not selection.examples:
        raise DataError(f"data set {spec.name!r}: generator {path!r} made no questions")
    content = sha256("\n".join(map(repr, selection.examples)).encode()).hexdigest()
    source = {"generator": short_name(path), "settings": generator.model_dump(mode="json"), "sha256": content}
    changed = generator.model_dump(mode="json", exclude_defaults=True)
    shown = "&".join(f"{name}={value}" for name, value in changed.items())
    return Generated(f"{spec.name}?{shown}" if shown else spec.name, selection, source)


def _examples(generator: Generator, seed: int, where: str) -> Iterator[Example]:
    """The generator's questions. Raises `SpecError` for anything else that it makes."""
    examples: object = generator.examples(seed)
    if not isinstance(examples, Iterable):
        raise SpecError(f"{where}: examples(seed) returned {examples!r:.80}, expected rewoo_bench.Example objects")
    for example in examples:
        if not isinstance(example, Example):
            raise SpecError(f"{where}: examples(seed) made {example!r:.80}, expected a rewoo_bench.Example")
        yield example


def _read_options(name: str, options: str) -> dict[str, str]:
    try:
        return read_options(options)
    except ValueError as error:
        raise DataError(f"data set {name!r}: {error}") from None
