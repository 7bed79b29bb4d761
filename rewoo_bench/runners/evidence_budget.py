"""The evidence budget: how many tokens of an observation a model gets to read.

    budget = EvidenceBudget("sentences", model, prompts)
    await budget.admit("E1", text, query="birthplace of Utzon", max_tokens=200)
    budget.cuts     # [{"slot": "E1", "at": "slot", "tokens": 412, "kept": 196}]

`truncate` keeps the beginning, `sentences` those nearest to the query in their own order, and `llm`
asks the question's model for a summary, which is metered like any other call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from rewoo_bench.call_site import call_site
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.text.bm25 import bm25
from rewoo_bench.text.tokens import count_tokens, truncate
from rewoo_bench.text.words import sentences, terms
from rewoo_bench.types import Message, Model, Request

Shorten = Literal["truncate", "sentences", "llm"]

_LONGEST_QUERY = 2000  # characters; a model that doesn't stop writes a thought of a megabyte


class EvidenceBudget:
    """Shortens the evidence of one question. `cuts` lists the cuts: slot, place, and tokens before and after."""

    def __init__(self, shorten: Shorten, model: Model, prompts: Prompts) -> None:
        self.shorten = shorten
        self.cuts: list[dict[str, Any]] = []
        self._model = model
        self._prompts = prompts

    async def admit(self, slot: str, text: str, *, query: str, max_tokens: int, where: str = "slot") -> str:
        """`text` within `max_tokens`."""
        size = count_tokens(text)
        if size <= max_tokens:
            return text
        kept = await self._shortened(text, query, max_tokens)
        self.cuts.append({"slot": slot, "at": where, "tokens": size, "kept": count_tokens(kept)})
        return kept

    async def admit_map(
        self, evidence: Mapping[str, str], queries: Mapping[str, str], max_tokens: int
    ) -> dict[str, str]:
        """The evidence map within `max_tokens`: slots that are too long share the tokens that short ones leave."""
        allowed = shares({slot: count_tokens(text) for slot, text in evidence.items()}, max_tokens)
        return {
            slot: await self.admit(slot, text, query=queries[slot], max_tokens=allowed[slot], where="map")
            for slot, text in evidence.items()
        }

    async def _shortened(self, text: str, query: str, max_tokens: int) -> str:
        query = query[:_LONGEST_QUERY]
        if self.shorten == "truncate":
            return truncate(text, max_tokens)[0]
        if self.shorten == "sentences":
            return nearest_sentences(text, query, max_tokens)
        messages = [self._prompts.system("summary"), Message("user", f"Looking for: {query}\n\n{text}")]
        with call_site("summary"):
            completion = await self._model.complete(Request(messages, role="tool", max_tokens=max_tokens))
        return truncate(completion.text.strip() or text, max_tokens)[0]


def check_shorten(shorten: Shorten, prompts: Prompts) -> None:
    """Raises `SpecError` where summaries are wanted and there is no prompt for them."""
    if shorten == "llm":
        prompts.fill("summary")


def nearest_sentences(text: str, query: str, max_tokens: int) -> str:
    """The sentences of `text` nearest to `query` (BM25) that fit into `max_tokens`, in their own order."""
    all_sentences = sentences(text)
    scores = bm25(terms(query), [Counter(terms(sentence)) for sentence in all_sentences])
    kept: list[int] = []
    for number in sorted(range(len(all_sentences)), key=lambda number: -scores[number]):
        candidate = sorted([*kept, number])
        if count_tokens(" ".join(all_sentences[i] for i in candidate)) <= max_tokens:
            kept = candidate
    return " ".join(all_sentences[i] for i in kept) or truncate(text, max_tokens)[0]


def shares(sizes: Mapping[str, int], budget: int) -> dict[str, int]:
    """The share of each size in a budget: small ones keep all, the others get equal shares of the rest.

    >>> shares({"E1": 30, "E2": 500, "E3": 500}, 430)
    {'E1': 30, 'E2': 200, 'E3': 200}
    """
    left, allowed = budget, {}
    for position, (slot, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        allowed[slot] = min(size, max(1, left // (len(sizes) - position)))
        left -= allowed[slot]
    return {slot: allowed[slot] for slot in sizes}
