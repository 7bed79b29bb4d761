"""Several questions of a data set as one task: `hotpotqa?objectives=3`, as in Otani et al. 2026, arXiv 2605.08477.

    join([Example("a", "Who …?", ("Utzon",)), Example("b", "Where …?", ("Oslo",))], 2)
    # Example("a+b", 'Answer these 2 questions … (1) Who …? (2) Where …?', ("Utzon | Oslo",))

Tasks are made of consecutive questions in the order of the run's seed, so each question is in one task. Documents and
gold chains are joined: a chain's depth stays, its breadth grows.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from rewoo_bench.errors import DataError
from rewoo_bench.text.scoring import BETWEEN_ANSWERS
from rewoo_bench.types import Example, Hop

OBJECTIVES = "objectives"
_MOST = 20
_BAR = BETWEEN_ANSWERS.strip()  # in an answer it would make two of one


def split_objectives(dataset: str) -> tuple[str, int]:
    """A data set's name without the option `objectives`, and its value, which is 1 without it. Raises `DataError`."""
    name, mark, options = dataset.partition("?")
    parts = options.split("&") if mark else []
    given = [part.partition("=")[2] for part in parts if part.partition("=")[0] == OBJECTIVES]
    if not given:
        return dataset, 1
    if len(given) > 1 or not (given[0].isascii() and given[0].isdecimal() and 1 <= int(given[0][:9]) <= _MOST):
        number, mark, file = given[0].partition("=")
        hint = f"; a file comes before it: {name}={file}?{OBJECTIVES}={number}" if mark and number else ""
        hint = hint or ("; a range isn't allowed" if ".." in given[0] else "")
        raise DataError(f"{dataset!r:.300}: objectives is given once, as a number from 1 to {_MOST}{hint}")
    rest = "&".join(part for part in parts if part.partition("=")[0] != OBJECTIVES)
    return f"{name}?{rest}" if rest else name, int(given[0])


def join(examples: Iterable[Example], objectives: int) -> Iterator[Example]:
    """Tasks of so many questions each, in their order; the last questions that fill no task are left out.

    A question waits for the next task where a page of it has the title, and not the text, of one in the task.
    """
    waiting = deque(examples)
    while len(waiting) >= objectives:
        task, later, pages = list[Example](), list[Example](), dict[str, str]()
        while waiting and len(task) < objectives:
            example = waiting.popleft()
            own = {page.title: page.text for page in example.documents}
            if all(pages.get(title, text) == text for title, text in own.items()):
                task.append(example)
                pages |= own
            else:
                later.append(example)
        if len(task) < objectives:
            return
        waiting.extendleft(reversed(later))
        yield _joined(task)


def _joined(task: list[Example]) -> Example:
    if len(task) == 1:
        return task[0]
    listed = " ".join(f"({number}) {example.question}" for number, example in enumerate(task, start=1))
    hops = list[Hop]()
    for example in task:
        hops += _moved(example.chain, len(hops))
    most = max(len(example.answers) for example in task)
    golds = [[example.answers[min(n, len(example.answers) - 1)] for example in task] for n in range(most)]
    asked = f"Answer these {len(task)} questions in their order, with{BETWEEN_ANSWERS}between the answers: {listed}"
    return Example(
        id="+".join(example.id for example in task),
        question=asked,
        answers=tuple(BETWEEN_ANSWERS.join(answer.replace(_BAR, " ") for answer in answers) for answers in golds),
        documents=tuple(dict.fromkeys(chain.from_iterable(example.documents for example in task))),
        kind="+".join(sorted({example.kind for example in task} - {""})),
        chain=tuple(hops) if all(example.chain for example in task) else (),
        level="+".join(sorted({example.level for example in task} - {""})),
    )


def _moved(hops: Iterable[Hop], by: int) -> list[Hop]:
    """Hops at later positions of a chain."""

    def move(place: re.Match[str]) -> str:
        return f"{{{int(place[1]) + by}}}"

    return [
        replace(
            hop,
            needs=tuple(need + by for need in hop.needs),
            title=re.sub(r"\{(\d+)\}", move, hop.title) if hop.tool == "Calculator" else hop.title,
        )
        for hop in hops
    ]
