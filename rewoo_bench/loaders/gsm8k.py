"""Rows of GSM8K (Cobbe et al., 2021, arXiv:2110.14168) as examples.

    {"question": "Ann has 8 pens and buys 4 times as many. How many has she?",
     "answer": "She buys 4*8=<<4*8=32>>32 pens.\\nShe has 32+8=<<32+8=40>>40 pens.\\n#### 40"}

The official file and the Hugging Face rows are the same. They have no ids: the row's number is the id. The answer is
the number behind `####`; the calculations in `<<…>>` become the gold chain.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from math import isclose

from rewoo_bench.errors import ToolError
from rewoo_bench.loaders.row_fields import Row, RowError, gold, identifier, text
from rewoo_bench.scoring.gsm8k import MARK
from rewoo_bench.scoring.numbers import find_numbers
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.types import Example, Hop

_CALCULATION = re.compile(r"<<([^<>=]+)=([^<>=]+)>>")
_OPERAND = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)(?![\w.])")
_CALCULATION_PLACE = re.compile(r"\{(\d+)\}")
_CLOSE = 1e-9  # relative: floating-point numbers that mean the same


def is_gsm8k(row: Row) -> bool:
    """Whether an answer ends on a marked number, which no other data set has."""
    return re.search(rf"(?m)^{MARK} ", _solution(row.get("answer") or row.get("answers"))) is not None


def gsm8k_example(row: Row) -> Example:
    """A row as an example with its number as the answer. Raises `RowError`."""
    solution = _solution(gold(row, "answer", "answers"))
    number = solution.rpartition(MARK)[2].strip()
    if not find_numbers(number):
        raise RowError(f"'answer' is {solution!r:.80}, expected a text that ends in {MARK} and a number")
    question = text(row, "question")
    return Example(identifier(row, "id"), question, (number,), chain=calculation_chain(question, solution, number))


def _solution(value: object) -> str:
    """The text of an answer; a CSV file gives a list of one."""
    return str(value[0] if isinstance(value, list) and value else value).strip()


def calculation_chain(question: str, solution: str, answer: str) -> tuple[Hop, ...]:
    """The calculations of a solution as hops of the Calculator; empty where they don't lead to the answer.

    An operand that equals an earlier result stands for it, as `{0}`: first for the latest result that no calculation
    has used yet, since each is there for a later one. A number of the question stays as it is otherwise, and any
    other operand stands for the latest equal result. Each value is what the Calculator shows. It has to be the
    solution's own result, rounded as that is, and the last one has to equal the answer.
    """
    stated = frozenset(float(number.value) for number in find_numbers(question))
    hops: list[Hop] = []
    for expression, result in _CALCULATION.findall(solution):
        title = _with_places(expression.strip(), hops, stated)
        value = _calculated(title, hops)
        if value is None or not _rounds_to(value, result):
            return ()
        needs = sorted({int(place) for place in _CALCULATION_PLACE.findall(title)})
        hops.append(Hop(title, value, needs=tuple(needs), tool="Calculator"))
    is_whole = bool(hops) and isclose(float(hops[-1].value), float(find_numbers(answer)[0].value), rel_tol=_CLOSE)
    return tuple(hops) if is_whole else ()


def _with_places(expression: str, hops: Sequence[Hop], stated: Container[float]) -> str:
    """The expression with places for results of earlier hops: `32+8` becomes `{0}+8`."""
    used = {need for hop in hops for need in hop.needs}

    def place(match: re.Match[str]) -> str:
        value = float(match[0])
        equal = [at for at, hop in enumerate(hops) if isclose(float(hop.value), value, rel_tol=_CLOSE)]
        unused = [at for at in equal if at not in used]
        if unused or (equal and value not in stated):
            return f"{{{(unused or equal)[-1]}}}"
        return match[0]

    return _OPERAND.sub(place, expression)


def _calculated(title: str, hops: Sequence[Hop]) -> str | None:
    """The Calculator's result, or None where it has none."""
    try:
        return show_number(calculate(title.format(*(hop.value for hop in hops))))
    except ToolError:
        return None


def _rounds_to(value: str, result: str) -> bool:
    """Whether a value is the result that a solution states, in as many decimals as that has."""
    numbers = find_numbers(result)
    if len(numbers) != 1:
        return False
    stated = float(numbers[0].value)
    rounding = 0 if "/" in result else 0.5 * 10 ** -len(result.strip().partition(".")[2])
    return abs(float(value) - stated) <= rounding + abs(stated) * _CLOSE
