"""The gold chains that the oracle goes by: those of a data set, and one found for questions without.

A trivia question has answers but no chain. One look-up is its chain: the best page for the question
that shows an answer in its first paragraph. A question without such a page is left out, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.text.words import fold
from rewoo_bench.tools import DocumentPages, Pages
from rewoo_bench.types import Document, Example, Hop

_PAGES_READ = 50


def with_chains(dataset: Dataset, corpus: Pages | None) -> Dataset:
    """The data set's questions that have a chain; its manifest says how many haven't. Raises `DataError`."""
    examples = [found for example in dataset.examples if (found := with_chain(example, corpus))]
    if not examples:
        raise DataError(f"{dataset.name!r}: no question has a gold chain, nor a page that shows its answer")
    digest = ids_hash(example.id for example in examples)
    skipped = {"examples": len(examples), "without_chain": len(dataset.examples) - len(examples), "ids_hash": digest}
    return replace(dataset, examples=examples, ids_hash=digest, manifest={**dataset.manifest, **skipped})


def with_chain(example: Example, corpus: Pages | None) -> Example | None:
    """The example with its chain, or with the one look-up that answers it; None where there is no such page."""
    if example.chain:
        return example
    pages = corpus if corpus is not None else DocumentPages(example.documents)
    hits = pages.search(example.question, _PAGES_READ)
    hops = [hop for hit in hits if (hop := _look_up(hit.document, example, pages))]
    if not hops:
        return None
    others = [hop for hop in hops if not _is_answer(hop.title, example.answers)]
    return replace(example, chain=((others or hops)[0],))  # rather not a page that only the answer names


def _look_up(page: Document, example: Example, pages: Pages) -> Hop | None:
    """The look-up of a page that its title finds and whose first paragraph shows an answer."""
    first = page.text.partition("\n")[0]
    if pages.find(page.title) != page:
        return None
    for answer in _longest_first(example.answers):
        found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", first, re.IGNORECASE)
        if found:
            return Hop(page.title, found[0], "what the question asks for")
    return None


def _longest_first(answers: Sequence[str]) -> list[str]:
    return sorted((answer for answer in answers if len(answer) > 1), key=len, reverse=True)


def _is_answer(title: str, answers: Sequence[str]) -> bool:
    return fold(title) in {fold(answer) for answer in answers}
