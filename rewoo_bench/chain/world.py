"""An invented world: names from syllables, and pages that say what things are to each other.

    world = World(Random("chain-2x1-s0-1"))
    world.name("guild")                                              # "Torvane Guild"
    world.page("town", "Marvenna", "Its guild is the Torvane Guild.", "guild")
    # Document("Marvenna", "Marvenna is a walled town with a famous fair. It has 4120 inhabitants. Its guild is …")

The syllables, the kinds of things and the facts are in world.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from pydantic import BaseModel, ConfigDict

from rewoo_bench.types import Document

MOST_FACTS = 3  # of a page, without the one that is asked for
_LONGER = 0.6  # share of names with a middle syllable


class Fact(BaseModel):
    """A statement of a page: `the <noun> <link> Marvenna` is a thing of the kind `to`, or a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: str
    """Kind of the page."""
    noun: str
    says: str
    to: str = ""
    """Kind of its value; "" for a number."""
    link: str = "of"
    numbers: tuple[int, int] = (100, 999)
    """The least and the greatest of its values, or of the prices that it names."""


class Kind(BaseModel):
    """A kind of thing: its names, its introduction, and the heirloom that is sold from owner to owner."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    article: str = ""
    endings: tuple[str, ...]
    """Last syllables of its names; no two kinds share one, so that a name shows its kind."""
    nouns: tuple[str, ...]
    details: tuple[str, ...]
    heirloom: str


_WORLD = tomllib.loads(Path(__file__).with_name("world.toml").read_text("utf-8"))
FACTS = {
    kind: [Fact(of=kind, noun=noun, **fact) for noun, fact in table.pop("facts").items()]
    for kind, table in _WORLD["kinds"].items()
}
KINDS = {kind: Kind(**table) for kind, table in _WORLD["kinds"].items()}


def facts(kind: str, *, numeric: bool) -> list[Fact]:
    """What can be asked of a thing of that kind: for a number, or for another thing."""
    return [fact for fact in FACTS[kind] if (not fact.to) == numeric]


def sale(kind: str, which: str) -> Fact:
    """The sale of an heirloom of a thing of that kind: the first is on its own page, another on the seller's.

    `owner` and `price` are the last sale, asked for the one or the other.
    """
    texts = _WORLD["sales"][which]
    noun = texts["noun"].format(KINDS[kind].heirloom)
    return Fact(of=kind if which == "first" else "person", noun=noun, says=texts["says"], to="person")


def called(kind: str, title: str) -> str:
    """A thing in a sentence: `the Torvane Guild`, `Marvenna`."""
    return f"{KINDS[kind].article}{title}"


class World:
    """The names and pages of one question; no name is given twice."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.mentioned: list[tuple[str, str]] = []
        """Kind and title of the things that pages name in other facts than the one asked for."""
        self._given: set[str] = set()
        self._words: dict[str, str] = {}  # title -> the word that titles like it share, or begin alike
        self._first: dict[str, str] = {}  # word -> its first syllable

    def name(self, kind: str, like: str = "") -> str:
        """A new title; one that resembles the title `like`, of the same kind, where that is given."""
        while True:
            title, word = self._drawn(kind, self._words.get(like, ""))
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
        return Document(title, " ".join([self._opening(kind, title), *sentences]))

    def _opening(self, kind: str, title: str) -> str:
        noun, detail = self.random.choice(KINDS[kind].nouns), self.random.choice(KINDS[kind].details)
        name = called(kind, title)
        return f"{name[0].upper()}{name[1:]} is a {noun} {detail}."

    def _drawn(self, kind: str, like: str) -> tuple[str, str]:
        """A title that may be taken already, and its word for `_words`."""
        form, endings = KINDS[kind].title, KINDS[kind].endings
        if kind == "person":
            surname = like or self._word(_WORLD["surnames"])
            return form.format(self._word(endings), surname), surname
        if kind == "book":
            word = like or self._word(endings)
            return form.format(self.random.choice(_WORLD["books"]), word), word
        word = self._word(endings, self._first.get(like, ""))
        return form.format(word), word

    def _word(self, endings: Sequence[str], first: str = "") -> str:
        """A new word of two or three syllables, the first of which may be given."""
        while True:
            begin = first or self.random.choice(_WORLD["first"])
            middle = self.random.choice(_WORLD["middle"]) if first or self.random.random() < _LONGER else ""
            word: str = (begin + middle + self.random.choice(endings)).capitalize()
            if word.casefold() not in self._given:
                self._first[word] = begin
                return word
