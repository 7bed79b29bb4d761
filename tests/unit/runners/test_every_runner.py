"""What holds for every bundled architecture: its answer, its books, its limits, and how it takes what goes wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parts import Told, said, toolbox
from pyarrow import BufferOutputStream, BufferReader
from pydantic_core import from_json

import rewoo_bench
from rewoo_bench import Document, Example, Result
from rewoo_bench.config.names import bundled_names
from rewoo_bench.errors import LimitReached, ModelError, SpecError, ToolError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Task, rows_of, trace
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.runners.programs import fenced
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.runs.journal.records import as_bytes
from rewoo_bench.runs.journal.tables import tables_of
from rewoo_bench.testing.scripted_model import Script, ScriptedModel, ScriptLine
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import Completion, Message, Runner, ToolCall, Trajectory

QUESTION = "Where is the river of Oslo?"
ANSWER = "Answer: Akerselva"
TEXT_PLAN = {"planner": ["Plan: find the city\n#E1 = Search[Oslo]"], "solver": [ANSWER]}
LOOKED_UP = {"tool": "Search", "args": {"query": "Oslo"}}
FINISHED = {"tool": "Finish", "args": {"answer": "Akerselva"}}
JSON_PLAN = json.dumps({"steps": [{"id": "E1", **LOOKED_UP}]})
LAZY_PLAN = json.dumps({"steps": [{"id": "E1", **LOOKED_UP}, {"id": "E2", **FINISHED}]})
PROGRAM = fenced('print(await Search("Oslo"))')
SCRIPTS: dict[str, Any] = {  # one call of Search, where the architecture has any, and the answer
    "cot": [f"Thought: I know it.\n{ANSWER}"],
    "direct": [ANSWER],
    "llmcompiler": {"planner": ['1. Search("Oslo")\n2. join()'], "solver": [f"Thought: it says so\n{ANSWER}"]},
    "plan-execute": ["Plan:\n1. Find the city.", "Action: Search[Oslo]", ANSWER],
    "react": ["Thought: find it\nAction: Search[Oslo]", "Thought: I know it\nAction: Finish[Akerselva]"],
    "react-code": [f"Thought: find it\n{PROGRAM}", f"Thought: I know it\n{ANSWER}"],
    "react-json": [json.dumps({"action": LOOKED_UP}), json.dumps({"action": FINISHED})],
    "react-native": [Completion("", tool_calls=(ToolCall("1", "Search", {"query": "Oslo"}),)), ANSWER],
    "rewoo": TEXT_PLAN,
    "rewoo-code": {"planner": [PROGRAM], "solver": [ANSWER]},
    "rewoo-json": {"planner": [JSON_PLAN], "solver": [ANSWER]},
    "rewoo-lazy": [LAZY_PLAN],
    "rewoo-react": TEXT_PLAN,
    "router": TEXT_PLAN,
}
NAMES = bundled_names("architectures")
WITH_TOOLS = [name for name in NAMES if name not in ("cot", "direct")]
ended = pytest.mark.parametrize("name", NAMES)
acting = pytest.mark.parametrize("name", WITH_TOOLS)
RUN = {"run_id": "r", "dataset": "d", "model": "m", "planner_model": "m", "solver_model": "m"}
OSLO = Document("Oslo", "Oslo is a city. It lies on the Akerselva.")


@cache
def architecture(name: str) -> Architecture:
    return load_architecture(f"{name}?timeout_s=0.2" if name.endswith("-code") else name, style="multihop")


async def ask(
    name: str, lines: Script, search: Told | None = None, question: str = QUESTION
) -> tuple[Trajectory, ScriptedModel]:
    """What its runner makes of a question; its other tools say nothing."""
    model = ScriptedModel(lines)
    others = [Told(lambda query: "", name=tool) for tool in ("Lookup", "LLM")]
    tools = toolbox(search or Told(), *others) if name in WITH_TOOLS else {}
    return await architecture(name).runner.run(question, model=model, tools=tools), model


async def put(name: str, lines: Script, **more: Any) -> tuple[Result, ScriptedModel]:
    """What a run makes of the question, whose gold answer is in no text."""
    model, example = ScriptedModel(lines), Example("q", QUESTION, ("Quokka",), (OSLO,))
    (result,) = await rewoo_bench.evaluate([example], [name], model=model, scoring="hotpotqa", **more)
    return result, model


def first_reply(script: Any) -> ScriptLine:
    reply: ScriptLine = script["planner"][0] if isinstance(script, dict) else script[0]
    return reply


def test_every_bundled_architecture_is_here() -> None:
    assert sorted(SCRIPTS) == sorted(NAMES)
    assert all(isinstance(architecture(name).runner, Runner) for name in NAMES)


@ended
@pytest.mark.anyio
async def test_it_answers_and_every_call_is_in_its_books_and_none_has_gold(name: str) -> None:
    result, model = await put(name, SCRIPTS[name])
    assert (result.trajectory.answer, result.trajectory.stop_reason) == ("Akerselva", "answered")
    asked = [call for call in result.calls if call.kind == "model"]
    assert len(asked) == len(model.requests)
    counted = [call.usage.total_tokens for call in asked]
    assert all(tokens > 0 for tokens in counted) or name == "react-native"  # its first reply has a usage of its own
    searched = [call for call in result.calls if call.kind == "tool"]
    assert [call.name for call in searched] == (["Search"] if name in WITH_TOOLS else [])
    assert all(call.place.name for call in result.calls)
    assert "Quokka" not in "".join(said(request.messages) for request in model.requests)
    assert result.score is not None
    assert not result.score.exact_match


@ended
@pytest.mark.anyio
async def test_what_is_the_same_for_every_question_comes_first(name: str) -> None:
    first, second = [(await ask(name, SCRIPTS[name], question=q))[1].requests[0].messages for q in ("One?", "Two?")]
    assert first[:-1] == second[:-1]
    assert (first[-1], second[-1]) == (Message("user", "Question: One?"), Message("user", "Question: Two?"))


@pytest.mark.anyio
async def test_questions_at_once_do_not_mix() -> None:
    def facts(results: Sequence[Result]) -> list[Any]:
        ordered = sorted(results, key=lambda result: result.task.index)
        return [(each.trajectory.answer, [call.usage for call in each.calls]) for each in ordered]

    alone, together = [
        await rewoo_bench.evaluate("sample", NAMES, model="oracle", questions=3, concurrency=at_once)
        for at_once in (1, 16)
    ]
    by_place = [[(answer, sorted(map(repr, usages))) for answer, usages in facts(each)] for each in (alone, together)]
    assert by_place[0] == by_place[1]


@acting
@pytest.mark.anyio
async def test_a_tool_that_fails_is_a_failed_step_and_no_failed_question(name: str) -> None:
    def refuse(query: str) -> str:
        raise ToolError("no page of that name")

    script = SCRIPTS[name]
    lines = script | {"agent": ["Action: Finish[Akerselva]"]} if isinstance(script, dict) else script * 9
    trajectory, _ = await ask(name, lines, Told(refuse))
    assert trajectory.stop_reason in ("answered", "step_limit")
    assert trajectory.steps[0].failed


@acting
@pytest.mark.anyio
@pytest.mark.parametrize("error", [ModelError("down", status=503), LimitReached("token_limit", "used 9 of 9")])
async def test_a_failing_provider_or_a_limit_in_a_tool_ends_the_question_as_itself(name: str, error: Exception) -> None:
    def fail(query: str) -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        await ask(name, SCRIPTS[name], Told(fail))
    assert caught.value is error


@ended
@pytest.mark.anyio
async def test_a_model_that_fails_is_no_answer(name: str) -> None:
    with pytest.raises(ModelError, match="down"):
        await ask(name, [ModelError("down")])
    if isinstance(SCRIPTS[name], dict):
        with pytest.raises(ModelError, match="down"):
            await ask(name, {**SCRIPTS[name], "solver": [ModelError("down")]})


@acting
@pytest.mark.anyio
async def test_a_limit_of_tokens_ends_the_question(name: str) -> None:
    first = SCRIPTS[name] if name != "react-native" else ['{"name": "Search", "arguments": {"query": "Oslo"}}']
    result, model = await put(name, first, question_tokens=1)
    assert (result.trajectory.answer, result.trajectory.stop_reason) == (None, "token_limit")
    assert len(model.requests) == 1


@acting
@pytest.mark.anyio
async def test_a_model_that_never_ends_is_ended(name: str) -> None:
    search = Told()
    trajectory, model = await ask(name, lambda messages, role: first_reply(SCRIPTS[name]), search)
    assert trajectory.stop_reason in ("answered", "step_limit", "unparsable", "invalid_plan")
    assert max(len(model.requests), len(search.asked)) <= 31


@ended
@pytest.mark.anyio
async def test_a_reply_that_is_cut_or_empty_is_no_answer(name: str) -> None:
    for reply in (Completion("", finish_reason="length"), "", " \n", "Answer:"):
        trajectory, _ = await ask(name, lambda messages, role, reply=reply: reply)  # type: ignore[misc]
        assert (trajectory.answer, trajectory.steps and trajectory.steps[0].tool) in ((None, ()), (None, None))
        assert trajectory.stop_reason != "answered"


@acting
@pytest.mark.anyio
async def test_a_long_result_is_shortened(name: str) -> None:
    trajectory, _ = await ask(name, SCRIPTS[name], Told(lambda query: "river " * 5000))
    assert 150 < count_tokens(trajectory.steps[0].observation) <= 200
    assert trajectory.notes["cuts"]


@pytest.mark.parametrize("name", sorted({*NAMES} - {"router"}))
def test_a_missing_prompt_is_found_before_the_first_question(name: str) -> None:
    made = architecture(name)
    with pytest.raises(SpecError):
        type(made.runner)(Prompts(), made.settings)  # type: ignore[call-arg]


# Any reply: the pieces that models write, and what no file or table takes as it is.

PIECES = [
    *("Action:", "Thought:", "Answer:", "Plan:", "Replan:", "Observation:", "1.", "2) ", "- ", "**", "`", "\n", " "),
    *("Search[", "LLM[", "Finish[", "Nothing[", "]", "[", "{", "}", '"', "'", ",", "=", "1. Search(", "$1", '")\n'),
    *("#E1", "#E2 = ", "#E1 = Search[", "after #E1", "{{E1}}", "[#E1]", "#E99999999999", "3. join()"),
    *('"name":', '"arguments":', '"tool":', '"steps":', '"args":', "NaN", "1e999", "null", "9", "Oslo", "unknown"),
    *("\x00", "\x1b", "\u2028", "\ufeff", "\ud800", "\\ud800", "²", "İ", "e\u0301", "🙂", "<|endoftext|>"),
    *("```python\n", "```", "await ", "print(", "Search(", "gather(", "while True:\n", "for x in ", "x = ", "\n    "),
]
pieces = st.sampled_from(PIECES)
long_runs = st.builds(lambda piece, times: piece * times, pieces, st.sampled_from([40, 5000]))
texts = st.lists(pieces | st.text(st.characters(), max_size=4) | long_runs, max_size=8).map("".join)


def nested(depth: int) -> Any:
    value: Any = "Oslo"
    for level in range(depth):
        value = [value] if level % 2 else {"query": value}
    return value


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.just(10**400) | texts
values = st.sampled_from([30, 33, 600]).map(nested) | st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=4
)
names = st.sampled_from(["Search", "Lookup", "LLM", "Finish"])
fields = st.dictionaries(st.sampled_from(["query", "question"]) | texts, values, max_size=2)
steps = st.fixed_dictionaries(
    {"tool": names | values},
    optional={"id": st.sampled_from(["E1", "E2"]) | values, "args": fields | values, "depends_on": values},
)
arguments = texts | fields.map(json.dumps)
replies = st.one_of(
    texts,
    st.builds("Plan: {}\n#E1 = {}[{}]\nPlan: on\n#E2 = LLM[#E1 {}]".format, texts, names, arguments, texts),
    st.builds("Thought: {}\nAction: {}[{}]".format, texts, names, arguments),
    st.builds("Plan:\n1. {}\n2. {}\nAnswer: {}".format, texts, texts, texts),
    st.builds("Thought: {}\n```python\nprint(await {}({}))\n{}\n```".format, texts, names, arguments, texts),
    st.lists(steps, max_size=4).map(lambda plan: json.dumps({"steps": plan}, ensure_ascii=False)),
)
calls: st.SearchStrategy[Any] = st.builds(
    ToolCall, texts | st.none() | st.integers(), names | values, fields | values | st.just({1: "a", "__raw__": "{"})
)
completions = st.builds(
    lambda text, asked, reason: Completion(text, finish_reason=reason, tool_calls=tuple(asked)),
    replies,
    st.lists(calls, min_size=1, max_size=3),
    st.sampled_from(["stop", "length", "tool_calls"]),
)
lines: st.SearchStrategy[Any] = st.sampled_from([replies, completions]).flatmap(lambda kind: kind)  # as often each


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", [*NAMES, "router?policy=model"])
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(script=st.lists(lines, min_size=1, max_size=4))
def test_any_reply_ends_in_a_row_and_a_trace(name: str, script: list[ScriptLine]) -> None:
    rest = itertools.cycle(script)
    model = ScriptedModel(lambda messages, role: next(rest))
    task = Task(0, Example("q", QUESTION, ("Neva",), (OSLO,)), 0, architecture(name))
    result = anyio.run(Evaluator({"": model}, "hotpotqa").run_task, task)  # raises for a fault of ours
    questions, made = tables_of([rows_of(result, RUN).decode()])
    for table in (questions, made):
        sink = BufferOutputStream()
        pq.write_table(table, sink)
        assert pq.read_table(BufferReader(sink.getvalue())).equals(table)
    assert questions["prediction"].to_pylist() == [result.trajectory.answer]
    assert from_json(as_bytes(trace(result, "r")))["answer"] == result.trajectory.answer
