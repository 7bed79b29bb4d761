"""The gold chains that the oracle follows: those of a data set, and a search for questions without one.

A trivia question has answers but no chain. One look-up is its chain: the best page for the question
that shows an answer in its first paragraph. A question without such a page is left out, and counted; so is
a question with a chain that lacks the documents which the others bring.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.text.words import fold
from rewoo_bench.tools import DocumentPages, Pages
from rewoo_bench.types import Example, Hop

_PAGES_READ = 50
_ON_NO_PAGE = frozenset({"gsm8k", "yes_no", "physics", "parallelqa"})
"""Scorers of answers that are worked out: a page that shows the same word or number doesn't answer the question."""
_LARGER = 4  # times the sample, where too few of its questions have a chain


def with_chains(
    dataset: Dataset, corpus: Pages | None, load: Callable[[int], Dataset] | None = None, *, looks_up: bool = True
) -> Dataset:
    """The data set's questions that have a chain, and pages to follow it; its manifest counts those left out.

    Architectures that look nothing up need neither: without `looks_up` all questions stay.
    `load` gives the sample of a larger limit. With it the limit counts questions that are taken: the first
    of the sample's order are taken, so a sample still begins with every smaller one. Raises `DataError`.
    """
    if not looks_up:
        return replace(dataset, manifest={**dataset.manifest, "without_chain": 0, "without_pages": 0})
    limit, asked = dataset.manifest["limit"], dataset.manifest["limit"]
    sample, chained, read, without_pages, with_gold = dataset, list[Example](), 0, 0, 0
    is_worked_out = dataset.scoring in _ON_NO_PAGE
    brings_pages = corpus is None and dataset.corpus is None and any(each.documents for each in dataset.examples)
    while True:
        for example in sample.examples[read:]:
            if limit is not None and len(chained) == limit:
                break
            read += 1
            if example.chain and brings_pages and not example.documents:
                without_pages += 1
            elif (example.chain or not is_worked_out) and (found := with_chain(example, corpus)):
                chained.append(found)
                with_gold += bool(example.chain)
        has_more = asked is not None and len(sample.examples) >= asked and "generator" not in sample.manifest["source"]
        if load is None or not has_more or len(chained) == limit:  # a generator would never end
            break
        asked *= _LARGER
        sample = load(asked)
    if not any(example.answers for example in dataset.examples):
        raise DataError(f"{dataset.name!r}: its tasks have no gold answers, and the oracle needs them: name a --model")
    if not chained:
        why = " or a page that shows its answer; ask a language model, or give passages with --corpus"
        if is_worked_out:
            why = ": answers that are worked out stand on no page; ask a language model"
        needed = "the oracle needs a way to each answer, and no question has a gold chain"
        raise DataError(f"{dataset.name!r}: {needed}{why}")
    digest = ids_hash(example.id for example in chained)
    without_chain = read - len(chained) - without_pages
    left_out = {"without_chain": without_chain, "without_pages": without_pages}
    counts = {"examples": len(chained), "with_chain": with_gold, **left_out}
    manifest = {**dataset.manifest, **counts, "ids_hash": digest}
    return replace(dataset, examples=chained, ids_hash=digest, manifest=manifest)


def with_chain(example: Example, corpus: Pages | None) -> Example | None:
    """The example with its chain, or with the one look-up that answers it; None where there is no such page."""
    if example.chain:
        return example
    pages = corpus if corpus is not None else DocumentPages(example.documents)
    answers = sorted((each for each in example.answers if len(each) > 1), key=len, reverse=True)
    hops: list[Hop] = []
    for hit in pages.search(example.question, _PAGES_READ):
        page = hit.document
        first = page.text.partition("\n")[0]
        matches = (re.search(rf"(?<!\w){re.escape(each)}(?!\w)", first, re.IGNORECASE) for each in answers)
        if pages.find(page.title) == page and (match := next(filter(None, matches), None)):
            hops.append(Hop(page.title, match[0], "what the question asks for"))
    if not hops:
        return None
    golds = {fold(answer) for answer in example.answers}
    others = [hop for hop in hops if fold(hop.title) not in golds]
    return replace(example, chain=((others or hops)[0],))  # rather not a page that only the answer names
