"""The data set `chain`: questions about an invented world that take an exact number of look-ups.

    next(Chain().examples(seed=0))
    # Example("chain-2x1-s0-1", "What is the birthplace of the mayor of Malonna?", ("Vomund",),
    #         documents=(…), kind="chain-2x1",
    #         chain=(Hop("Malonna", "Shishana Pelvenn", "the mayor"),
    #                Hop("Shishana Pelvenn", "Vomund", "the birthplace", needs=(0,))))

A question depends on nothing but its id: its settings, its seed and its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count, product
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationInfo, field_validator

from rewoo_bench.chain.pages import PageLink, documents, draw_numbers, draw_path, draw_strand
from rewoo_bench.chain.world import Fact, World, called
from rewoo_bench.types import Example, Hop

MOST_HOPS, MOST_STRANDS = 12, 8

_SPAN = re.compile(r"(\d+)(?:\.\.(\d+))?")


def _span(least: int, most: int) -> Callable[[Any], range]:
    """Reads `3` or `1..3`, both ends included, as a range."""

    def read(value: Any) -> range:
        match = _SPAN.fullmatch(str(value).strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not least <= first <= last <= most:
            raise ValueError(f"expected a number from {least} to {most}, or a range such as {least}..{most}")
        return range(first, last + 1)

    return read


def _shown(span: range) -> int | str:
    return span[0] if len(span) == 1 else f"{span[0]}..{span[-1]}"


_Shown = PlainSerializer(_shown)


class Chain(BaseModel):
    """The options of `--dataset 'chain?hops=1..4&width=2'`; where there are ranges, questions go through them in turn.

    The number of hops counts those of one strand, the ones that no plan can foresee included.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    hops: Annotated[range, BeforeValidator(_span(1, MOST_HOPS)), _Shown] = range(2, 3)
    """Look-ups, each of which needs the one before."""
    width: Annotated[range, BeforeValidator(_span(1, MOST_STRANDS)), _Shown] = range(1, 2)
    """Number of strands, independent of each other; from two on, their last numbers are compared."""
    branching: Annotated[range, BeforeValidator(_span(0, MOST_HOPS - 1)), _Shown] = range(1)
    """The largest number of hops at the end of a strand that the question doesn't state."""

    @field_validator("branching")
    @classmethod
    def _leaves_a_hop(cls, branching: range, info: ValidationInfo) -> range:
        hops = info.data.get("hops")
        if hops and branching[-1] >= hops[0]:
            raise ValueError(
                f"expected fewer than the hops, hops={_shown(hops)}, since the question always states the first hop"
            )
        return branching

    def examples(self, seed: int) -> Iterator[Example]:
        """Questions without end, the same for the same seed."""
        shapes = list(product(self.hops, self.width, self.branching))
        for number in count(1):
            yield question(*shapes[(number - 1) % len(shapes)], seed=seed, number=number)


def question(hops: int, width: int, branching: int, *, seed: int, number: int) -> Example:
    """The question of that shape and number, with its gold chain, gold pages and distractors."""
    shape = f"chain-{hops}x{width}"
    identifier = f"{shape}{f'b{branching}' if branching else ''}-s{seed}-{number}"
    random = Random(identifier)
    unforeseen = random.randint(1, branching) if branching else 0
    path = draw_path(random, hops, unforeseen, numeric=width > 1)
    best = random.choice((max, min))
    numbers = draw_numbers(random, path[-1], width, 1 + unforeseen, best)
    winner = numbers.index(best(numbers, key=lambda each: each[-1]))
    world = World(random)
    strands = [draw_strand(world, path, each) for each in numbers]
    starts = [strand[0] for strand in strands]
    stated = [*path[: hops - unforeseen - 1], path[-1]]
    return Example(
        identifier,
        _comparison(stated, starts, greatest=best is max) if width > 1 else _inquiry(stated, starts[0]),
        (starts[winner].title if width > 1 else strands[0][-1].value,),
        documents(world, [link for strand in strands for link in strand]),
        f"{shape}+{unforeseen}" if unforeseen else shape,
        tuple(_hops(strands, hops - unforeseen)),
    )


def _hops(strands: list[list[PageLink]], foreseen: int) -> Iterator[Hop]:
    """The gold chain, strand after strand."""
    for number, strand in enumerate(strands):
        for place, link in enumerate(strand):
            compared = len(strands) > 1 and place == len(strand) - 1
            value = str(link.number) if compared else link.value
            needs = (number * len(strand) + place - 1,) if place else ()
            yield Hop(link.title, value, f"the {link.fact.noun}", needs, place < foreseen)


def _comparison(path: list[Fact], links: list[PageLink], *, greatest: bool) -> str:
    """`For which of A and B is the height of the mayor of that town the greatest?`"""
    names = [called(link.fact.of, link.title) for link in links]
    which = f"{', '.join(names[:-1])} and {names[-1]}"
    superlative = "greatest" if greatest else "smallest"
    if len(path) == 1 and not path[0].to:
        return f"Which of {which} has the {superlative} {path[0].noun}?"
    return f"For which of {which} is {_nested(path, f'that {links[0].fact.of}')} the {superlative}?"


def _inquiry(path: list[Fact], link: PageLink) -> str:
    """`What is the birthplace of the mayor of A?`"""
    word = "Who" if path[-1].to == "person" else "What"
    return f"{word} is {_nested(path, called(link.fact.of, link.title))}?"


def _nested(path: list[Fact], start: str) -> str:
    for fact in path:
        start = f"the {fact.noun} {fact.link} {start}"
    return start
