"""Rows of StrategyQA (Geva et al., 2021, arXiv:2101.02235) as examples.

    {"qid": "7ab0", "question": "Could a swan carry a piano?", "answer": false, "facts": ["A swan weighs 10 kg."],
     "decomposition": ["How much does a swan weigh?", …], "evidence": [[[["Swan-3"]], ["operation"]], …]}

Official files and Hugging Face rows (`facts` as one text, no evidence) are read by the same function. The facts give
the answer away, so they are no documents: the paragraphs come from `--corpus`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewoo_bench.loaders.row_fields import Row, RowError, gold, identifier, text
from rewoo_bench.scoring.yes_no import says_yes
from rewoo_bench.types import Example, Hop


def strategyqa_example(row: Row) -> Example:
    """A row as an example whose answer is `yes` or `no`. Raises `RowError`."""
    return Example(
        identifier(row, "qid"), text(row, "question"), (yes_or_no(row, "answer", "answers"),), chain=_chain(row)
    )


def yes_or_no(row: Row, *keys: str) -> str:
    """The answer under the first of the keys that the row has, as `yes` or `no`. Raises `RowError`."""
    value = gold(row, *keys)
    if isinstance(value, list):  # of a CSV file
        value = value[0]
    says = value if isinstance(value, bool) else says_yes(str(value))
    if says is None:
        raise RowError(f"{keys[0]!r} is {value!r:.80}, expected true or false, or a text that says yes or no")
    return "yes" if says else "no"


def _chain(row: Row) -> tuple[Hop, ...]:
    """The pages that the first annotator took evidence from, as look-ups that need no other; empty without any."""
    pages: dict[str, str] = {}
    questions = row.get("decomposition") or []
    for number, step in enumerate(_first(row.get("evidence"))):
        ask = questions[number] if number < len(questions) else ""
        for paragraph in _paragraphs(step):
            pages.setdefault(paragraph.rpartition("-")[0] or paragraph, str(ask))
    return tuple(Hop(title, "", ask) for title, ask in pages.items())


def _first(evidence: Any) -> list[Any]:
    """The steps of the first annotator."""
    first = evidence[0] if isinstance(evidence, list) and evidence else []
    return first if isinstance(first, list) else []


def _paragraphs(step: Any) -> Iterator[str]:
    """Ids of paragraphs, `Swan-3`, among marks such as "operation" and "no_evidence"."""
    for part in step if isinstance(step, list) else ():
        yield from (str(each) for each in part if each) if isinstance(part, list) else ()
