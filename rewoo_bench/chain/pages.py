"""Strands of gold pages through an invented world, each page naming the next, and distractors like them.

path = draw_path(random, hops=3, unforeseen=1, numeric=False)   # e.g. mayor, first owner, present owner
strand = draw_strand(world, path, numbers=[120, 310])           # a PageLink for each
documents(world, strand)                                        # its pages among 8 distractors
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from rewoo_bench.chain.world import KINDS, Fact, World, called, facts, sale
from rewoo_bench.types import Document

DISTRACTORS = 8
WRONG_TURNS = 2  # distractors that another page names; the rest look like a gold page


@dataclass(frozen=True, slots=True)
class PageLink:
    """A gold page before it is written: its fact, and kind and title of the owner of the heirloom if one is sold."""

    fact: Fact
    title: str
    value: str
    number: int
    owned: tuple[str, str]


def draw_path(random: Random, hops: int, unforeseen: int, *, numeric: bool) -> list[Fact]:
    """The fact that each hop finds, from a thing of any kind on; no fact twice running.

    The unforeseen ones are sales after the first, for which the page before them brings the first.
    """
    kind = random.choice(list(KINDS))
    path: list[Fact] = []
    for _ in range(hops - unforeseen - 1):
        path.append(_other(random, facts(kind, numeric=False), path))
        kind = path[-1].to
    if not unforeseen:
        return [*path, _other(random, facts(kind, numeric=numeric), path)]
    between = [sale(kind, "next")] * (unforeseen - 1)
    return [*path, sale(kind, "first"), *between, sale(kind, "price" if numeric else "owner")]


def _other(random: Random, among: list[Fact], path: list[Fact]) -> Fact:
    return random.choice([fact for fact in among if fact not in path[-1:]])


def draw_numbers(random: Random, fact: Fact, width: int, stages: int, best: Callable[..., Any]) -> list[list[int]]:
    """Numbers of each strand, stage by stage: never a tie, and the winner of the last stage wins no other.

    So a comparison that stops early is wrong.
    """
    least, greatest = fact.numbers
    drawn = [random.sample(range(least, greatest + 1), width) for _ in range(stages)]
    winner = drawn[-1].index(best(drawn[-1]))
    for stage in drawn[:-1]:
        if stage.index(best(stage)) == winner:
            stage.append(stage.pop(0))
    return [list(strand) for strand in zip(*drawn, strict=True)]


def draw_strand(world: World, path: list[Fact], numbers: list[int]) -> list[PageLink]:
    """The gold pages along a path, from a new thing on; the numbers are those of its last facts."""
    links: list[PageLink] = []
    title = world.name(path[0].of)
    stated = len(path) - len(numbers)
    for place, (fact, number) in enumerate(zip(path, [0] * stated + numbers, strict=True)):
        value = world.name(fact.to) if fact.to else str(number)
        links.append(PageLink(fact, title, value, number, (fact.of, title) if place <= stated else links[stated].owned))
        title = value
    return links


def documents(world: World, links: list[PageLink]) -> tuple[Document, ...]:
    """The gold pages among distractors, shuffled."""
    pages = [_page(world, link) for link in links]
    turns = world.random.sample(world.mentioned, min(WRONG_TURNS, len(world.mentioned)))
    near = world.random.sample(links, len(links))
    pages += [_wrong_turn(world, kind, title) for kind, title in turns]
    pages += [_look_alike(world, near[place % len(near)]) for place in range(DISTRACTORS - len(turns))]
    world.random.shuffle(pages)
    return tuple(pages)


def _page(world: World, link: PageLink) -> Document:
    thing = f"the {KINDS[link.owned[0]].heirloom} of {called(*link.owned)}"
    sentence = world.sentence(link.fact, link.title, link.value, thing=thing, number=link.number)
    return world.page(link.fact.of, link.title, sentence, link.fact.noun)


def _look_alike(world: World, link: PageLink) -> Document:
    """A page with a title like a gold page's, and the same fact of another thing."""
    kind, owned = link.owned
    title = world.name(link.fact.of, like=link.title)
    sold = (kind, title if owned == link.title else world.name(kind, like=owned))
    return _page(
        world, PageLink(link.fact, title, world.value(link.fact), world.random.randint(*link.fact.numbers), sold)
    )


def _wrong_turn(world: World, kind: str, title: str) -> Document:
    """The page of something that was only mentioned."""
    fact = world.random.choice(facts(kind, numeric=False))
    return world.page(kind, title, world.sentence(fact, title, world.value(fact)), fact.noun)
