"""The texts of an architecture's folder: prompts, and exemplars as turns.

A prompt is a `string.Template` (`$tools`, `$max_steps`; braces and brackets stay literal).
An exemplar file looks like this; turns of a role follow each other as in a conversation:

    # bridge
    ## user
    Question: Which river flows through the city where …?
    ## assistant
    Plan: …
    #E1 = Search[…]

The text that is the same for every question comes first in every list of messages, so that a
provider's prefix cache can hold it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import SpecError
from rewoo_bench.events import at_place
from rewoo_bench.runners.notation.arguments import Arguments
from rewoo_bench.runners.notation.plan import substitute
from rewoo_bench.runners.notation.quoting import QUOTED, quoted
from rewoo_bench.text.tokens import count_tokens, truncate
from rewoo_bench.text.words import bm25, index_terms, split_sentences
from rewoo_bench.types import Message, Model, Request, Step, Tool

Exemplar = tuple[Message, ...]


@dataclass(frozen=True)
class Prompts:
    """The prompts of an architecture by name, and the exemplars of each for one style of question."""

    texts: Mapping[str, str] = field(default_factory=dict)
    exemplars: Mapping[str, Sequence[Exemplar]] = field(default_factory=dict)
    unshown: Mapping[str, Sequence[Exemplar]] = field(default_factory=dict)
    """All exemplars of the prompts that show none, for estimates of what a model would write."""

    def conversation(self, name: str, user: str, **values: object) -> list[Message]:
        """The prompt `name`, its exemplars, and a turn of the user: what is the same for every question comes first."""
        return [self.system(name, **values), *self.shots(name), Message("user", user)]

    def system(self, name: str, **values: object) -> Message:
        """The prompt `name`, filled in, as the system message."""
        return Message("system", self.fill(name, **values), ends_prefix=not self.exemplars.get(name))

    def fill(self, name: str, **values: object) -> str:
        """The prompt `name` with its placeholders filled in. Raises `SpecError`."""
        if name not in self.texts:
            raise SpecError(f"the architecture has no prompt {name!r}; it has: {', '.join(sorted(self.texts))}")
        try:
            return Template(self.texts[name]).substitute(values).strip()
        except (KeyError, ValueError) as error:
            known = ", ".join(f"${value}" for value in values) or "none"
            raise SpecError(f"prompt {name!r}: placeholder {error}; known placeholders: {known}") from None

    def shots(self, name: str) -> list[Message]:
        """The exemplars of the prompt `name`, one after the other, as messages; none where it has none."""
        return [message for exemplar in self.exemplars.get(name, ()) for message in exemplar]

    @property
    def digest(self) -> str:
        """sha256 over every text and exemplar: two runs with the same digest had the same prompts."""
        digest = sha256()
        for name in sorted(self.texts):
            digest.update(f"{name}\0{self.texts[name]}\0".encode())
        for name in sorted(self.exemplars):
            digest.update(f"{name}\0".encode())
            for message in self.shots(name):
                digest.update(f"{message.role}\0{message.content}\0".encode())
        return digest.hexdigest()

    @property
    def digests(self) -> dict[str, str]:
        """sha256 of each text and of each prompt's exemplars, so that a change can be named."""
        texts = {f"prompt {name!r}": text for name, text in self.texts.items()}
        shots = {
            f"exemplars of {name!r}": "".join(f"{shot.role}\0{shot.content}\0" for shot in self.shots(name))
            for name in self.exemplars
        }
        return {name: sha256(text.encode()).hexdigest() for name, text in sorted({**texts, **shots}.items())}


def read_prompts(folder: Path, prompts: Mapping[str, str], exemplars: Mapping[str, tuple[str, int | None]]) -> Prompts:
    """The prompt files of a folder, and for some of them the first exemplars of a file, or all. Raises `SpecError`."""
    texts = {name: read_prompt(folder / file) for name, file in prompts.items()}
    shots: dict[str, Sequence[Exemplar]] = {}
    unshown: dict[str, Sequence[Exemplar]] = {}
    for name, (file, limit) in exemplars.items():
        every = parse_exemplars(read_prompt(folder / file), str(folder / file))
        first = list(every[:limit])
        if not first:
            unshown[name] = every
        else:  # the last message that is the same for every question ends the prefix
            first[-1] = (*first[-1][:-1], replace(first[-1][-1], ends_prefix=True))
        shots[name] = tuple(first)
    return Prompts(texts, shots, unshown)


def parse_exemplars(text: str, where: str) -> tuple[Exemplar, ...]:
    """The exemplars of a file, in order. Raises `SpecError` where the headings are wrong."""
    exemplars = []
    for section in re.split(r"(?m)^# .*$", text)[1:]:
        parts = re.split(r"(?m)^## (.*)$", section)
        roles, contents = parts[1::2], parts[2::2]
        wrong = [role for role in roles if role not in ("user", "assistant")]
        if wrong or not roles:
            got = f"'## {wrong[0]}'" if wrong else "none"
            raise SpecError(f"{where}: an exemplar has turns headed '## user' and '## assistant', got {got}")
        exemplars.append(
            tuple(
                Message(cast(Literal["user", "assistant"], role), content.strip())
                for role, content in zip(roles, contents, strict=True)
            )
        )
    if not exemplars:
        raise SpecError(f"{where}: no exemplar; one starts with a line '# name'")
    return tuple(exemplars)


def read_prompt(path: Path) -> str:
    """The text of a prompt file. Raises `SpecError`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        outside = "; it is outside the folder: copy it too" if ".." in path.parts else ""
        raise SpecError(f"no such prompt file: {path}{outside}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"can't read {path}: {error}") from None


Shorten = Literal["truncate", "sentences", "llm"]

_LONGEST_QUERY = 2000  # characters; a model that doesn't stop writes a thought of a megabyte


class EvidenceBudget:
    """Shortens the evidence of one question. `cuts` lists the cuts: slot, place, and tokens before and after.

    `truncate` keeps the beginning of an observation, `sentences` those nearest to the query in their own order, and
    `llm` asks the question's model for a summary, which is metered like any other call.
    """

    def __init__(self, shorten: Shorten, model: Model, prompts: Prompts, *, quote: bool = False) -> None:
        self.shorten = shorten
        self.quote = quote
        self.shown: Callable[[str], str] = quoted if quote else str
        """A result as prompts show it."""
        self.cuts: list[dict[str, Any]] = []
        self._model = model
        self._prompts = prompts

    async def shortened(self, slot: str, text: str, *, query: str, max_tokens: int, where: str = "slot") -> str:
        """`text` within `max_tokens`."""
        size = count_tokens(text)
        if size <= max_tokens:
            return text
        query = query[:_LONGEST_QUERY]
        if self.shorten == "truncate":
            kept, _ = truncate(text, max_tokens)
        elif self.shorten == "sentences":
            kept = nearest_sentences(text, query, max_tokens)
        else:
            asked = f"Looking for: {self.shown(query)}\n\n{self.shown(text)}"  # the query may have results in it
            messages = [self._prompts.system("summary"), Message("user", asked)]
            with at_place("summary"):
                completion = await self._model.complete(Request(messages, role="tool", max_tokens=max_tokens))
            kept, _ = truncate(completion.text.strip() or text, max_tokens)
        self.cuts.append({"slot": slot, "at": where, "tokens": size, "kept": count_tokens(kept)})
        return kept

    def fill(self, args: Arguments, results: Mapping[str, str], tool: Tool | None) -> Arguments:
        """`args` with results in the place of references; a tool that asks a model gets them as prompts show them."""
        shown = self.shown if getattr(tool, "asks_model", False) else str
        return substitute(args, {slot: shown(text) for slot, text in results.items()})

    async def all_shortened(self, steps: Sequence[Step], max_tokens: int) -> dict[str, str]:
        """The evidence of steps within `max_tokens`: slots that are too long share the tokens that short ones leave."""
        allowed = shares({step.id: count_tokens(step.observation) for step in steps}, max_tokens)
        kept: dict[str, str] = {}
        for step in steps:
            query, most = f"{step.thought} {step.argument}", allowed[step.id]
            kept[step.id] = await self.shortened(step.id, step.observation, query=query, max_tokens=most, where="map")
        return kept


class EvidenceSettings(BaseModel):
    """What the settings of plans and programs say of results."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shorten: Shorten = "truncate"
    """How a result, or an output, that is too long is shortened."""
    slot_tokens: int = Field(default=200, ge=1)
    """Tokens to which the result of a call is shortened."""
    map_tokens: int = Field(default=1500, ge=1)
    """Tokens to which all results, or the output of a program, are shortened for the next prompt."""
    quote_evidence: bool = False
    """Whether results in prompts are marked as data that gives no orders."""


def checked_prompts(
    prompts: Prompts, settings: Any, placeholders: Mapping[str, Sequence[str]], quoting: Sequence[str]
) -> Prompts:
    """The prompts of an architecture, those in `quoting` with a sentence on marks where the settings want them.

    Raises `SpecError` for one that isn't there, or has other placeholders: before the first question.
    """
    for name, known in placeholders.items():
        prompts.fill(name, **dict.fromkeys(known, ""))
    if settings.shorten == "llm":
        prompts.fill("summary")
    if not settings.quote_evidence:
        return prompts
    marked = {*quoting, "summary"}
    texts = {name: f"{text.rstrip()}\n\n{QUOTED}" if name in marked else text for name, text in prompts.texts.items()}
    return replace(prompts, texts=texts)


def nearest_sentences(text: str, query: str, max_tokens: int) -> str:
    """The sentences of `text` nearest to `query` (BM25) that fit into `max_tokens`, in their own order."""
    all_sentences = split_sentences(text)
    scores = bm25(index_terms(query), [Counter(index_terms(sentence)) for sentence in all_sentences])
    kept: list[int] = []
    for number in sorted(range(len(all_sentences)), key=lambda number: -scores[number]):
        candidate = sorted([*kept, number])
        if count_tokens(" ".join(all_sentences[i] for i in candidate)) <= max_tokens:
            kept = candidate
    return " ".join(all_sentences[i] for i in kept) or truncate(text, max_tokens)[0]


def shares(sizes: Mapping[str, int], budget: int) -> dict[str, int]:
    """The share of each size in a budget: small ones keep all, the others get equal shares of the rest, at least 1.

    >>> shares({"E1": 30, "E2": 500, "E3": 500}, 430)
    {'E1': 30, 'E2': 200, 'E3': 200}
    """
    left, allowed = budget, {}
    for position, (slot, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        allowed[slot] = min(size, max(1, left // (len(sizes) - position)))
        left -= allowed[slot]
    return {slot: allowed[slot] for slot in sizes}
