"""Rows of TriviaQA, StrategyQA, ReWOO's own files, ParallelQA, GSM8K and of this project's form as examples.

TriviaQA (Joshi et al., 2017, arXiv:1705.03551); a comment before each of the others has its form:

    {"question_id": "tc_1", "question": "…", "answer": {"value": "Mars", "aliases": ["Mars", "Red Planet"]},
     "entity_pages": {"title": ["Mars"], "wiki_context": ["Mars is …"]},
     "search_results": {"title": […], "search_context": […]}}

Official files spell it `QuestionId`, `Answer`, `Aliases`, and keep the text of their pages in
other files, so their examples have no documents; nor have those of the `.nocontext` rows.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from math import isclose
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from rewoo_bench.errors import ToolError
from rewoo_bench.loaders.row_fields import (
    ANSWER_KEYS,
    HIDDEN_ANSWER,
    RawRow,
    RowError,
    answers,
    gold,
    identifier,
    listed,
    paired_fields,
    plain_answer,
    text_field,
)
from rewoo_bench.text.numbers import find_numbers
from rewoo_bench.text.scoring import ANSWER_MARK, says_yes
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.types import Document, Example, GoldAction, Hop

_HIDDEN_VALUE = "<unk>"  # in Hugging Face rows of the test split


def triviaqa_example(row: RawRow) -> Example:
    """A Hugging Face row, or one of an official file's `Data`, as an example.

    Its answers are value, aliases and human answers: all that the official script accepts, in their own spelling. The
    script compares with the normalised aliases and the human answers; every alias normalises to one of the former.
    Raises `RowError`.
    """
    is_official = "QuestionId" in row and "Question" in row
    keys = ("QuestionId", "Question", "Answer") if is_official else ("question_id", "question", "answer")
    id_, question, answer = identifier(row, keys[0]), text_field(row, keys[1]), row.get(keys[2])
    pages = [] if is_official else paired_fields(row.get("entity_pages"), "title", "wiki_context")
    pages += [] if is_official else paired_fields(row.get("search_results"), "title", "search_context")
    if answer is None:
        raise RowError(f"no answer under {keys[2]!r}; {HIDDEN_ANSWER}")
    if not isinstance(answer, Mapping):
        raise RowError(f"{keys[2]!r} is {answer!r:.80}, expected an object with a value and aliases")
    fields = {name.replace("_", "").lower(): value for name, value in answer.items()}
    value = None if fields.get("value") == _HIDDEN_VALUE else fields.get("value")
    golds = [value, *(fields.get("aliases") or fields.get("normalizedaliases") or ()), *fields.get("humananswers", ())]
    documents = tuple(  # a web page may lack a title, and a page its text
        Document(str(title or ""), page.strip()) for title, page in pages if isinstance(page, str) and page.strip()
    )
    return Example(id_, question, answers(golds, keys[2]), documents, "trivia")


# Rows of StrategyQA (Geva et al., 2021, arXiv:2101.02235) as examples.
#
#     {"qid": "7ab0", "question": "Could a swan carry a piano?", "answer": false, "facts": ["A swan weighs 10 kg."],
#      "decomposition": ["How much does a swan weigh?", …], "evidence": [[[["Swan-3"]], ["operation"]], …]}
#
# Official files and Hugging Face rows (`facts` as one text, no evidence) are read by the same function. The facts give
# the answer away, so they are no documents: the paragraphs come from `--corpus`.


def strategyqa_example(row: RawRow) -> Example:
    """A row as an example whose answer is `yes` or `no`; also one of ReWOO's file (below). Raises `RowError`.

    The pages that the first annotator took evidence from are its chain, look-ups that need no other.
    """
    is_official = "qid" in row and "question" in row
    id_, question = (identifier(row, "qid"), text_field(row, "question")) if is_official else _input(row)
    value = gold(row, "answer", "answers") if is_official else gold(row, "target")
    if isinstance(value, list):  # of a CSV file
        value = value[0]
    says = value if isinstance(value, bool) else says_yes(str(value))
    if says is None:
        key = "answer" if is_official else "target"
        raise RowError(f"{key!r} is {value!r:.80}, expected true or false, or a text that says yes or no")
    pages: dict[str, str] = {}
    questions, evidence = row.get("decomposition") or [], row.get("evidence") or [[]]
    for ask, step in zip(questions, evidence[0], strict=False):
        # Lists of ids of paragraphs, `Swan-3`, stand among marks such as "operation" and "no_evidence".
        for paragraph in chain.from_iterable(part for part in step if isinstance(part, list)):
            pages.setdefault(paragraph.rpartition("-")[0] or paragraph, ask)
    hops = tuple(Hop(title, "", ask) for title, ask in pages.items())
    return Example(id_, question, ("yes" if says else "no",), chain=hops)


# Rows of the question files that came with the ReWOO paper (Xu et al., 2023, arXiv:2305.18323) as examples.
#
#     input,target
#     "How far does it fall in 2 s?","Can be one of ['19.6 m', '20 m']"     physics
#     "Determine whether … plausible or implausible: …",plausible            sports understanding
#     "Answer with 'Yes' or 'No': …",Yes                                     StrategyQA
#
# The three have the same columns, so their rows are read only under the name of a data set. They have no ids: the row's
# number is the id.

_CHOICE = "Can be one of "


def physics_example(row: RawRow) -> Example:
    """A physics question with every accepted rounding of its answer. Raises `RowError`."""
    target = str(gold(row, "target")).strip()
    golds = listed(target.removeprefix(_CHOICE)) if target.startswith(_CHOICE) else [target]
    if golds is None:
        raise RowError(f"'target' is {target!r:.80}, expected {_CHOICE}[…], a list of texts")
    return Example(*_input(row), answers(golds, "target"))


def sports_example(row: RawRow) -> Example:
    """A statement about sports that is plausible or implausible. Raises `RowError`."""
    target = str(gold(row, "target")).strip()
    if says_yes(target) is None:
        raise RowError(f"'target' is {target!r:.80}, expected plausible or implausible")
    return Example(*_input(row), (target,))


def _input(row: RawRow) -> tuple[str, str]:
    return identifier(row, "id"), text_field(row, "input")


# Rows of KILT's tasks (Petroni et al., 2021, arXiv:2009.02252) as examples.
#
#     {"id": "5ab2", "input": "When was the lighthouse built?",
#      "output": [{"answer": "1811", "provenance": [{"title": "Bell Rock", …}]}, {"provenance": […]}]}
#
# An output has an answer, or pages that show one, or both.


def kilt_example(row: RawRow) -> Example:
    """A row as an example with the answers of all its outputs. Raises `RowError`."""
    outputs = gold(row, "output")
    if not isinstance(outputs, list) or not all(isinstance(output, Mapping) for output in outputs):
        raise RowError(f"'output' is {outputs!r:.80}, expected a list of objects with an answer")
    return Example(*_input(row), answers((output.get("answer") for output in outputs), "output"))


# Rows of ParallelQA (Kim et al., 2024, arXiv:2312.04511) as examples.
#
#     {"id": 1, "question": "How much higher would … be in metres, if …?", "answer": "201.9", "branch": 2}
#
# `branch` is the number of independent look-ups. There are no documents and no gold chain: the pages are Wikipedia's.


def parallelqa_example(row: RawRow) -> Example:
    """A row as an example; its kind is its number of branches (`2 branches`). Raises `RowError`."""
    id_, question, answer = identifier(row, "id"), text_field(row, "question"), row.get("answer")
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        answer = str(answer)
    branches = row.get("branch")
    kind = "1 branch" if str(branches) == "1" else f"{branches} branches"
    return Example(id_, question, answers((answer,), "answer"), (), kind)


# Rows of GSM8K (Cobbe et al., 2021, arXiv:2110.14168) as examples.
#
#     {"question": "Ann has 8 pens and buys 4 times as many. How many has she?",
#      "answer": "She buys 4*8=<<4*8=32>>32 pens.\nShe has 32+8=<<32+8=40>>40 pens.\n#### 40"}
#
# The official file and the Hugging Face rows are the same. They have no ids: the row's number is the id. The answer is
# the number behind `####`; the calculations in `<<…>>` become the gold chain.

_CALCULATION = re.compile(r"<<([^<>=]+)=([^<>=]+)>>")
_OPERAND = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)(?![\w.])")
_CALCULATION_PLACE = re.compile(r"\{(\d+)\}")
_CLOSE = 1e-9  # relative: floating-point numbers that mean the same


def is_gsm8k(row: RawRow) -> bool:
    """Whether an answer ends on a marked number, which no other data set has."""
    return re.search(rf"(?m)^{ANSWER_MARK} ", _solution(row.get("answer") or row.get("answers"))) is not None


def gsm8k_example(row: RawRow) -> Example:
    """A row as an example with its number as the answer. Raises `RowError`."""
    solution = _solution(gold(row, "answer", "answers"))
    number = solution.rpartition(ANSWER_MARK)[2].strip()
    if not find_numbers(number):
        raise RowError(f"'answer' is {solution!r:.80}, expected a text that ends in {ANSWER_MARK} and a number")
    question = text_field(row, "question")
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
    given = frozenset(float(number.value) for number in find_numbers(question))
    hops: list[Hop] = []
    used: set[int] = set()

    def place(operand: re.Match[str]) -> str:
        value = float(operand[0])
        equal = [at for at, hop in enumerate(hops) if isclose(float(hop.value), value, rel_tol=_CLOSE)]
        unused = [at for at in equal if at not in used]
        return f"{{{(unused or equal)[-1]}}}" if unused or (equal and value not in given) else operand[0]

    for expression, result in _CALCULATION.findall(solution):
        if "{" in expression or "}" in expression:  # they would be taken for a place
            return ()
        title = _OPERAND.sub(place, expression.strip())  # `32+8` becomes `{0}+8`
        stated = find_numbers(result)
        try:
            value = show_number(calculate(title.format(*(hop.value for hop in hops))))
        except ToolError:
            return ()
        # The result may be rounded, to as many decimals as it has.
        rounding = 0 if "/" in result else 0.5 * 10 ** -len(result.strip().partition(".")[2])
        if len(stated) != 1 or abs(float(value) - (number := float(stated[0].value))) > rounding + abs(number) * _CLOSE:
            return ()
        needs = sorted({int(needed) for needed in _CALCULATION_PLACE.findall(title)})
        hops.append(Hop(title, value, needs=tuple(needs), tool="Calculator"))
        used |= {*needs}
    is_whole = bool(hops) and isclose(float(hops[-1].value), float(find_numbers(answer)[0].value), rel_tol=_CLOSE)
    return tuple(hops) if is_whole else ()


# Rows of this project's own format as examples; for the bundled sample and for sets of your own.
#
#     {"id": "s1", "type": "bridge", "question": "…", "answers": ["Oslo"],
#      "chain": [{"title": "Page A", "ask": "Who …?", "value": "Ann"},
#                {"title": "Page B", "ask": "Where was Ann …?", "value": "Oslo", "needs": [1]}]}
#
# `needs` counts hops from 1 in the file and from 0 in `Hop`. A hop may be a calculation in the place of a page; `{1}`
# in it stands for the value of hop 1. Its own `value` and `needs` may be left out, and are checked where they are
# given:
#
#     {"calculate": "{1} / 2", "ask": "half of the pages", "value": "24", "needs": [1]}
#
# `answer` or `golden_answers` may take the place of `answers`, and a text that of a list of one. `id` (the row's number
# without it), `type`, `level`, `chain` and `documents` (`[{"title", "text"}]`) may be left out; without documents the
# search tool needs a corpus.

_PLACE = re.compile(r"\{(\d{1,3})\}")


def sample_example(row: RawRow) -> Example:
    """A row as an example with its gold chain. Raises `RowError`."""
    key = next((key for key in ANSWER_KEYS if key in row), None)
    if key is None:
        has = ", ".join(sorted(str(key) for key, value in row.items() if key != "id" or not isinstance(value, int)))
        why = "tasks in a world are asked with --world FILE.py" if "calls" in row else HIDDEN_ANSWER
        raise RowError(f"no answer under 'answers' or 'answer'; it has {has}; {why}")
    hops: list[Hop] = []
    for number, hop in enumerate(row.get("chain") or (), start=1):
        if not isinstance(hop, dict):
            raise RowError(f"hop {number} is {hop!r}, expected an object with title or calculate, ask, value and needs")
        needs = hop.get("needs") or []
        if not all(isinstance(need, int) and 1 <= need < number for need in needs):
            raise RowError(f"hop {number} needs {needs!r}, expected numbers of earlier hops, counted from 1")
        ask, needed = str(hop.get("ask") or ""), tuple(need - 1 for need in needs)
        if "calculate" in hop:
            title, value, needed = _calculation(hop, needed, hops)
            hops.append(Hop(title, value, ask, needed, tool="Calculator"))
        else:
            hops.append(Hop(text_field(hop, "title"), str(hop.get("value") or ""), ask, needed))
    return Example(
        identifier(row, "id"),
        text_field(row, "question"),
        _golds(row, key),
        tuple(
            Document(str(title or ""), str(page))
            for title, page in paired_fields(row.get("documents"), "title", "text")
        ),
        str(row.get("type") or ""),
        tuple(hops),
        str(row.get("level") or ""),
    )


def _golds(row: RawRow, key: str) -> tuple[str, ...]:
    """The gold answers under a key, which has one or a list of them, also as a text."""
    golds = (listed(row[key]) if isinstance(row[key], str) else None) or row[key]
    return answers((plain_answer(gold, key) for gold in (golds if isinstance(golds, list) else [golds])), key)


# Rows of tasks in a world (docs/tools.md) as examples: `answers` may be missing, and `calls` are the
# gold calls, for the oracle. Numbers of calls are from 1 in the file, from 0 in `GoldAction`. CSV has `calls` as JSON.
#
#     {"id": "o1", "question": "Ann returns order 17 …", "stock": {"mug": 3},
#      "calls": [{"tool": "lookup_order", "arguments": {"order_id": 17}},
#                {"tool": "update_stock", "arguments": {"sku": "mug", "change": 1}, "read": {"sku": 1}}]}


def task_example(row: RawRow) -> Example:
    """A row as a task, which keeps its row. Raises `RowError`."""
    key = next((key for key in ANSWER_KEYS if row.get(key) not in (None, "", [])), None)
    return Example(
        identifier(row, "id"),
        text_field(row, "question"),
        _golds(row, key) if key else (),
        kind=str(row.get("type") or ""),
        level=str(row.get("level") or ""),
        actions=_actions(row.get("calls") or []),
        row=row,
    )


class _GoldCall(BaseModel):
    """A gold call as a row has it."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: dict[str, Any] = {}
    read: dict[str, int | list[int] | None] = {}
    decided: Literal["task", "program", "loop"] = "task"
    after: list[int] = []

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: Any) -> Any:
        """Parquet has every key in every row."""
        return {name: value for name, value in values.items() if value is not None} if type(values) is dict else values


def _parsed(text: str) -> object:
    """What a cell holds, as JSON or as pandas writes a list. Raises `ValueError` where it is neither."""
    try:
        return json.loads(text)
    except ValueError as error:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise error from None


def _actions(written: object) -> tuple[GoldAction, ...]:
    """The gold calls of a row, or the text of a CSV's cell with them. Raises `RowError`."""
    try:
        given = _parsed(written) if isinstance(written, str) else written
        calls = TypeAdapter(list[_GoldCall]).validate_python(given)
    except ValidationError as error:
        fault = error.errors()[0]
        number, *keys = fault["loc"] or (0,)
        raise RowError(f"'calls': call {int(number) + 1}: {'.'.join(map(str, keys))}: {fault['msg']}") from None
    except ValueError as error:
        raise RowError(f"'calls' is not valid JSON: {error}") from None
    actions: list[GoldAction] = []
    for number, call in enumerate(calls, start=1):
        read = {name: [each] if isinstance(each, int) else each for name, each in call.read.items() if each is not None}
        after = call.after or (list(range(1, number)) if call.decided != "task" else [])
        if wrong := [each for each in chain(after, *read.values()) if not 1 <= each < number]:
            raise RowError(f"'calls': call {number} names call {wrong[0]}, expected earlier calls, counted from 1")
        if strange := [name for name in read if name not in call.arguments]:
            raise RowError(f"'calls': call {number} reads {strange[0]!r}, which is none of its arguments")
        from_0 = {name: tuple(each - 1 for each in numbers) for name, numbers in read.items()}
        before = tuple(each - 1 for each in after)
        actions.append(GoldAction(call.tool, call.arguments, from_0, call.decided, before))
    return tuple(actions)


def _calculation(hop: RawRow, needs: tuple[int, ...], before: Sequence[Hop]) -> tuple[str, str, tuple[int, ...]]:
    """Title, value and needs of a calculation. Raises `RowError` where it can't be worked out, or not to its value."""
    where, written = f"hop {len(before) + 1}", text_field(hop, "calculate")
    named = {int(place) for place in _PLACE.findall(written)}
    if "title" in hop:
        raise RowError(f"{where} has a 'title' and 'calculate', expected one of them")
    if wrong := [place for place in sorted(named) if not 1 <= place <= len(before)]:
        raise RowError(f"{where} is {written!r} and names hop {wrong[0]}, expected earlier hops, counted from 1")
    filled = _PLACE.sub(lambda place: f"({before[int(place[1]) - 1].value})", written)
    try:
        result = show_number(calculate(filled))
        value = result if hop.get("value") is None else str(hop["value"])
        if not isclose(calculate(value), calculate(result), rel_tol=1e-9):
            raise RowError(f"{where}: {filled!r} is {result}, but its value is {value!r}")
    except ToolError as error:
        raise RowError(f"{where}: {written!r} can't be worked out: {error}") from None
    expression = _PLACE.sub(lambda place: f"{{{int(place[1]) - 1}}}", written)
    return expression, value, tuple(sorted({*needs, *(place - 1 for place in named)}))
