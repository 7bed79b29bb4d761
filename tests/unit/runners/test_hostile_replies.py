"""Any reply, through every architecture: it ends in a typed way, and what came of it can be written and read back.

REWOO_BENCH_FUZZ_EXAMPLES=10000 pytest tests/unit/runners/test_hostile_replies.py   # by hand; the default is for CI
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import BufferOutputStream, BufferReader
from pydantic_core import from_json

from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result, Task, rows_of, trace
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.runs.journal.records import as_bytes
from rewoo_bench.runs.journal.tables import tables_of
from rewoo_bench.testing.scripted_model import ScriptedModel, ScriptLine
from rewoo_bench.types import Completion, Document, Example, ToolCall

EXAMPLES = int(os.environ.get("REWOO_BENCH_FUZZ_EXAMPLES", "20"))
ARCHITECTURES = [
    *("rewoo", "rewoo-json", "react", "react-native", "rewoo-react", "llmcompiler", "plan-execute", "direct", "cot"),
    *("rewoo-code?timeout_s=0.2", "react-code?timeout_s=0.2"),
]
ARCHITECTURES += ["router?policy=model"]
RUN = {"run_id": "r", "dataset": "d", "model": "m", "planner_model": "m", "solver_model": "m"}
QUESTION = Example("q", "Which river?", ("Neva",), (Document("Oslo", "Oslo is a city. It has a river."),))


def nested(depth: int, inner: Any = "Oslo") -> Any:
    for level in range(depth):
        inner = [inner] if level % 2 else {"query": inner}
    return inner


PIECES = [
    *(
        "Action:",
        "Action 1:",
        "Thought:",
        "Answer:",
        "Final answer",
        "Plan:",
        "Observation:",
        "1.",
        "2)",
        "- ",
        "**",
        "`",
    ),
    *("Search[", "Lookup[", "LLM[", "Calculator[", "Finish[", "Nothing[", "]", "[", "{", "}", '"', "'", ",", ":", "="),
    *("1. Search(", '2. LLM("', "$1", "${2}", "$99", '")\n', "query=", "3. join()", "after $1", "Replan:"),
    *("#E1", "#E2 = ", "#E1 = Search[", "after #E1", "{{E1}}", "{E2}", "[#E1]", "#E999999999", "#E99999999999"),
    *('"name":', '"arguments":', '"tool":', '"steps":', '"args":', '"query":', "NaN", "-Infinity", "1e999", "null"),
    *(
        "\n",
        "\r\n",
        " ",
        "\x00",
        "\x1b",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ufffe",
        "\ud800",
        "\udfff",
        "\\ud800",
        "\\u0000",
    ),
    *(
        "²",
        "٣",
        "İ",
        "ß",
        "e\u0301",
        "🙂",
        "unknown",
        "Oslo",
        "river",
        "1,250",
        "2^3",
        "&#9;",
        "&#x110000;",
        "<|endoftext|>",
    ),
    *('{"a":', '[{"a":', "9", "x"),
    *("```python\n", "```", "await ", "print(", "Search(", "gather(", "while True:\n", "for x in ", "x = ", "\n    "),
]
pieces = st.sampled_from(PIECES)
runs = st.builds(lambda piece, times: piece * times, pieces, st.sampled_from([40, 400, 5000]))
texts = st.lists(pieces | st.text(st.characters(), max_size=4) | runs, max_size=8).map("".join)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([10**400, 10**4000]) | texts
deep = st.builds(nested, st.sampled_from([30, 33, 150, 600]), texts)
values = deep | st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=4
)
names = st.sampled_from(["Search", "Lookup", "LLM", "Calculator", "Finish"])
fields = st.dictionaries(st.sampled_from(["query", "keyword", "question", "expression"]) | texts, values, max_size=2)


def as_json(value: Any) -> str:
    """JSON as a model may write it, half pairs and numbers out of range included."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # a number of too many digits
        return "9" * 5000


steps = st.fixed_dictionaries(
    {"tool": names | values},
    optional={"id": st.sampled_from(["E1", "E2"]) | values, "args": fields | values, "depends_on": values},
)
arguments = texts | fields.map(as_json)
replies = st.one_of(
    texts,
    st.builds("Plan: {}\n#E1 = {}[{}]\nPlan: on\n#E2 = LLM[#E1 {}]".format, texts, names, arguments, texts),
    st.builds("Thought: {}\nAction: {}[{}]".format, texts, names, arguments),
    st.builds("1. {}\n2. {}".format, texts, texts),
    st.builds("Answer: {}".format, texts),
    st.builds("Thought: {}\n```python\nprint(await {}({}))\n{}\n```".format, texts, names, arguments, texts),
    st.lists(steps, max_size=4).map(lambda plan: as_json({"steps": plan})),
    st.builds(lambda name, given: as_json({"name": name, "arguments": given}), names | values, fields | values),
)
calls: st.SearchStrategy[Any] = st.builds(
    ToolCall,
    texts | st.none() | st.integers(),
    names | values,
    fields | values | st.dictionaries(st.integers(), scalars, max_size=1) | texts.map(lambda text: {"__raw__": text}),
)
completions = st.builds(
    lambda text, asked, reason: Completion(text, finish_reason=reason, tool_calls=tuple(asked)),
    replies,
    st.lists(calls, min_size=1, max_size=3),
    st.sampled_from(["stop", "length", "tool_calls"]),
)
lines: st.SearchStrategy[Any] = st.sampled_from([replies, completions]).flatmap(lambda kind: kind)  # as often each


@cache
def architecture(name: str) -> Architecture:
    return load_architecture(name, style="multihop")


def put(name: str, said: Sequence[ScriptLine]) -> Result:
    """What comes of a question whose model says these replies, and then the same again."""
    rest = itertools.cycle(said)
    evaluator = Evaluator({"": ScriptedModel(lambda messages, role: next(rest))}, "hotpotqa")
    return anyio.run(evaluator.run_task, Task(0, QUESTION, 0, architecture(name)))


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", ARCHITECTURES)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(said=st.lists(lines, min_size=1, max_size=4))
def test_any_reply_ends_in_a_row_and_a_trace(name: str, said: list[ScriptLine]) -> None:
    result = put(name, said)  # raises for whatever is no RewooBenchError; warnings are errors
    questions, made = tables_of([rows_of(result, RUN).decode()])
    for table in (questions, made):
        sink = BufferOutputStream()
        pq.write_table(table, sink)
        assert pq.read_table(BufferReader(sink.getvalue())).equals(table)
    assert questions["prediction"].to_pylist() == [result.trajectory.answer]
    assert from_json(as_bytes(trace(result, "r")))["answer"] == result.trajectory.answer
