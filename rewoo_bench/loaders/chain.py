"""The data set `chain`: questions about an invented world that take an exact number of look-ups.

    next(Chain().examples(seed=0))
    # Example("chain-2x1-s0-1", "What is the birthplace of the mayor of Malonna?", ("Vomund",),
    #         documents=(…), kind="chain-2x1",
    #         chain=(Hop("Malonna", "Shishana Pelvenn", "the mayor"),
    #                Hop("Shishana Pelvenn", "Vomund", "the birthplace", needs=(0,))))

A `World` has names from syllables, and pages that say what things are to each other; `draw_path` and `draw_strand` lay
strands of gold pages through it, and `documents` adds distractors like them. Syllables, kinds and facts are in
chain_world.toml. A question depends on nothing but its id: its settings, its seed and its number.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rewoo_bench.types import Document, Example, Hop

MOST_FACTS = 3  # of a page, without the one that is asked for
_LONGER = 0.6  # share of names with a middle syllable


class Fact(BaseModel):
    """A statement of a page: `the <noun> <link> Marvenna` is a thing of the kind `to`, or a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: str
    """The kind of thing that the page is about."""
    noun: str
    says: str
    to: str = ""
    """The kind of its value; "" for a number."""
    link: str = "of"
    numbers: tuple[int, int] = (100, 999)
    """The least and the greatest of its values, or of the prices that it names."""


class ThingKind(BaseModel):
    """A kind of thing: its names, its introduction, and the heirloom that is sold from owner to owner."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    article: str = ""
    endings: tuple[str, ...]
    """Last syllables of its names; no two kinds share one, so that a name shows its kind."""
    nouns: tuple[str, ...]
    details: tuple[str, ...]
    heirloom: str


_WORLD = tomllib.loads(Path(__file__).with_name("chain_world.toml").read_text("utf-8"))
FACTS = {
    kind: [Fact(of=kind, noun=noun, **fact) for noun, fact in table.pop("facts").items()]
    for kind, table in _WORLD["kinds"].items()
}
THING_KINDS = {kind: ThingKind(**table) for kind, table in _WORLD["kinds"].items()}


def askable_facts(kind: str, *, numeric: bool) -> list[Fact]:
    """What can be asked of a thing of that kind: for a number, or for another thing."""
    return [fact for fact in FACTS[kind] if (not fact.to) == numeric]


def sale(kind: str, which: str) -> Fact:
    """The sale of an heirloom of a thing of that kind: the first is on its own page, another on the seller's.

    `owner` and `price` are the last sale, asked for the one or the other.
    """
    texts = _WORLD["sales"][which]
    noun = texts["noun"].format(THING_KINDS[kind].heirloom)
    return Fact(of=kind if which == "first" else "person", noun=noun, says=texts["says"], to="person")


def called(kind: str, title: str) -> str:
    """A thing in a sentence: `the Torvane Guild`, `Marvenna`."""
    return f"{THING_KINDS[kind].article}{title}"


class World:
    """The names and pages of one question; no name is given twice."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.mentioned: list[tuple[str, str]] = []
        """Kind and title of the things that pages name in other facts than the one asked for."""
        self.values: dict[str, str] = {}
        """What each page says of its title, by title."""
        self._given: set[str] = set()
        self._words: dict[str, str] = {}  # title -> the word that titles like it share, or begin alike
        self._first: dict[str, str] = {}  # word -> its first syllable

    def name(self, kind: str, like: str = "") -> str:
        """A new title; one that resembles the title `like`, of the same kind, where that is given."""
        form, endings, shared = THING_KINDS[kind].title, THING_KINDS[kind].endings, self._words.get(like, "")
        while True:
            if kind == "person":
                word = shared or self._word(_WORLD["surnames"])
                title = form.format(self._word(endings), word)
            elif kind == "book":
                word = shared or self._word(endings)
                title = form.format(self.random.choice(_WORLD["books"]), word)
            else:
                word = self._word(endings, self._first.get(shared, ""))
                title = form.format(word)
            key = "".join(title.split()).casefold()
            if key not in self._given:
                self._given |= {key, *title.casefold().split()}
                self._words[title] = word
                return title

    def value(self, fact: Fact) -> str:
        """Some value of a fact: a new thing, or a number."""
        return self.name(fact.to) if fact.to else str(self.random.randint(*fact.numbers))

    def sentence(self, fact: Fact, title: str, value: str, **more: object) -> str:
        """`It lies on the Ashkel River.`; a person is called by the first name."""
        it = title.split()[0] if fact.of == "person" else "It"
        return fact.says.format(it=it, value=called(fact.to, value) if fact.to else value, **more)

    def page(self, kind: str, title: str, sentence: str, asked: str) -> Document:
        """A page of 2 to 5 sentences: what it is, the sentence, and facts other than the one `asked` for."""
        others = [fact for fact in FACTS[kind] if fact.noun != asked]
        sentences = [sentence]
        for fact in self.random.sample(others, self.random.randint(0, MOST_FACTS)):
            value = self.value(fact)
            sentences.append(self.sentence(fact, title, value))
            self.mentioned += [(fact.to, value)] if fact.to else []
        self.random.shuffle(sentences)
        noun, detail = self.random.choice(THING_KINDS[kind].nouns), self.random.choice(THING_KINDS[kind].details)
        name = called(kind, title)
        opening = f"{name[0].upper()}{name[1:]} is a {noun} {detail}."
        return Document(title, " ".join([opening, *sentences]))

    def _word(self, endings: Sequence[str], first: str = "") -> str:
        """A new word of two or three syllables, the first of which may be given."""
        while True:
            begin = first or self.random.choice(_WORLD["first"])
            middle = self.random.choice(_WORLD["middle"]) if first or self.random.random() < _LONGER else ""
            word: str = (begin + middle + self.random.choice(endings)).capitalize()
            if word.casefold() not in self._given:
                self._first[word] = begin
                return word


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
    kind = random.choice(list(THING_KINDS))
    path: list[Fact] = []
    for _ in range(hops - unforeseen - 1):
        path.append(_other(random, askable_facts(kind, numeric=False), path))
        kind = path[-1].to
    if not unforeseen:
        return [*path, _other(random, askable_facts(kind, numeric=numeric), path)]
    between = [sale(kind, "next")] * (unforeseen - 1)
    return [*path, sale(kind, "first"), *between, sale(kind, "price" if numeric else "owner")]


def _other(random: Random, among: list[Fact], path: list[Fact]) -> Fact:
    return random.choice([fact for fact in among if fact not in path[-1:]])


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
    for kind, title in turns:  # the pages of things that were only mentioned
        fact = world.random.choice(askable_facts(kind, numeric=False))
        world.values[title] = world.value(fact)
        pages.append(world.page(kind, title, world.sentence(fact, title, world.values[title]), fact.noun))
    for place in range(DISTRACTORS - len(turns)):  # titles like those of gold pages, and the same facts of other things
        link = near[place % len(near)]
        fact, (kind, owned) = link.fact, link.owned
        title = world.name(fact.of, like=link.title)
        sold = (kind, title if owned == link.title else world.name(kind, like=owned))
        value = world.value(fact)
        pages.append(_page(world, PageLink(fact, title, value, world.random.randint(*fact.numbers), sold)))
    world.random.shuffle(pages)
    return tuple(pages)


def _page(world: World, link: PageLink) -> Document:
    thing = f"the {THING_KINDS[link.owned[0]].heirloom} of {called(*link.owned)}"
    sentence = world.sentence(link.fact, link.title, link.value, thing=thing, number=link.number)
    world.values[link.title] = link.value
    return world.page(link.fact.of, link.title, sentence, link.fact.noun)


def _filled_up(page: Document, words: int, random: Random) -> Document:
    """The page with sentences that say nothing, up to so many words; what it is about still comes first."""
    opening, *sentences = re.split(r"(?<=\.) ", page.text)
    missing = words - len(page.text.split())
    while missing > 0:
        begin, end = random.choice(_WORLD["filling"]["begins"]), random.choice(_WORLD["filling"]["ends"])
        sentences.append(f"{begin}, {end}.")
        missing -= len(sentences[-1].split())
    random.shuffle(sentences)
    return Document(page.title, " ".join([opening, *sentences]))


MOST_HOPS, MOST_STRANDS, MOST_WORDS = 20, 8, 6000

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
    words: int = Field(default=0, ge=0, le=MOST_WORDS)
    """Pages with fewer words are filled up with sentences that say nothing."""
    results: Literal["page", "value"] = "page"
    """What a look-up returns: a page that a model has to read, or the value alone, which a later call can take."""

    @field_validator("branching")
    @classmethod
    def _leaves_a_hop(cls, branching: range, info: ValidationInfo) -> range:
        hops = info.data.get("hops")
        if hops and branching[-1] >= hops[0]:
            raise ValueError(
                f"expected fewer than the hops, hops={_shown(hops)}, since the question always states the first hop"
            )
        return branching

    @model_validator(mode="after")
    def _values_alone(self) -> Chain:
        if self.results == "value" and (self.words or self.branching[-1]):
            raise ValueError("results=value returns no pages: leave out words and branching")
        return self

    def examples(self, seed: int) -> Iterator[Example]:
        """Questions without end, the same for the same seed."""
        shapes = list(product(self.hops, self.width, self.branching))
        for number in count(1):
            shape = shapes[(number - 1) % len(shapes)]
            example = question(*shape, seed=seed, number=number, values=self.results == "value")
            if self.words:
                random = Random(f"{example.id}-{self.words}")
                pages = tuple(_filled_up(page, self.words, random) for page in example.documents)
                example = replace(example, id=f"{example.id}-w{self.words}", documents=pages)
            yield example


def question(hops: int, width: int, branching: int, *, seed: int, number: int, values: bool = False) -> Example:
    """The question of that shape and number, with its gold chain, gold pages and distractors.

    With `values` a look-up returns what the page would say of its title, and nothing else.
    """
    shape = f"chain-{hops}x{width}"
    identifier = f"{shape}{f'b{branching}' if branching else ''}-s{seed}-{number}"
    random = Random(identifier)
    unforeseen = random.randint(1, branching) if branching else 0
    path = draw_path(random, hops, unforeseen, numeric=width > 1)
    best = random.choice((max, min))
    # Numbers of each stage: never a tie, and the winner of the last wins no other, so who stops early is wrong.
    least, greatest = path[-1].numbers
    stages = [random.sample(range(least, greatest + 1), width) for _ in range(1 + unforeseen)]
    for stage in stages[:-1]:
        if stage.index(best(stage)) == stages[-1].index(best(stages[-1])):
            stage.append(stage.pop(0))
    numbers = [list(strand) for strand in zip(*stages, strict=True)]
    winner = numbers.index(best(numbers, key=lambda each: each[-1]))
    world = World(random)
    strands = [draw_strand(world, path, each) for each in numbers]
    starts = [strand[0] for strand in strands]
    names = [called(start.fact.of, start.title) for start in starts]
    stated = [*path[: hops - unforeseen - 1], path[-1]]
    if width > 1:
        which = f"{', '.join(names[:-1])} and {names[-1]}"
        superlative = "greatest" if best is max else "smallest"
        if len(stated) == 1 and not stated[0].to:
            asked = f"Which of {which} has the {superlative} {stated[0].noun}?"
        else:
            asked = f"For which of {which} is {_nested(stated, f'that {starts[0].fact.of}')} the {superlative}?"
    else:
        asked = f"{'Who' if path[-1].to == 'person' else 'What'} is {_nested(stated, names[0])}?"
    chain: list[Hop] = []
    for strand in strands:
        first = len(chain)
        for place, link in enumerate(strand):
            compared = width > 1 and place == len(strand) - 1
            needs = (first + place - 1,) if place else ()
            value = str(link.number) if compared else link.value
            asks, foreseen = f"the {link.fact.noun}", place < hops - unforeseen
            chain.append(Hop(link.title, value, asks, needs, foreseen, is_value=values))
    pages = documents(world, [link for strand in strands for link in strand])
    if values:
        pages = tuple(Document(page.title, world.values[page.title], is_value=True) for page in pages)
    return Example(
        f"{identifier}-v" if values else identifier,
        asked,
        (starts[winner].title if width > 1 else strands[0][-1].value,),
        pages,
        f"{shape}+{unforeseen}" if unforeseen else shape,
        tuple(chain),
    )


def _nested(path: list[Fact], start: str) -> str:
    """`the height of the mayor of that town`, from that town on."""
    for fact in path:
        start = f"the {fact.noun} {fact.link} {start}"
    return start
