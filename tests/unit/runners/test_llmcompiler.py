"""LLMCompiler as a conversation: what runs while the plan is being written, and how a question ends."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import Told, said, toolbox
from writing_models import Pieces, WritingModel

from rewoo_bench.errors import LimitReached, ModelError
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.llmcompiler import LLMCompiler, LLMCompilerSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Completion, Message, Trajectory

pytestmark = pytest.mark.anyio

PROMPTS = load_architecture("llmcompiler", style="multihop").prompts
PLAN = '1. Search("Hermitage")\n2. Search("$1")\n3. join()'
QUESTION = "Which river flows through the Hermitage's city?"
ANSWER = "Thought: It is known.\nAnswer: Neva"
REPLAN = "Thought: It isn't known.\nReplan: the river"


def compiler(**wanted: Any) -> LLMCompiler:
    return LLMCompiler(PROMPTS, LLMCompilerSettings(**wanted))


async def ask(lines: Script, *tools: Any, **wanted: Any) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    return await compiler(**wanted).run(QUESTION, model=model, tools=toolbox(*tools)), model


async def write(drafts: list[Pieces], planner: list[str], *tools: Any, **wanted: Any) -> Trajectory:
    """The trajectory where the planner's drafts are shown in these pieces; `planner` has them as they end."""
    model = WritingModel({"planner": planner, "solver": [ANSWER]}, drafts)
    with anyio.fail_after(30):
        return await compiler(**wanted).run(QUESTION, model=model, tools=toolbox(*tools))


def arguments(trajectory: Trajectory) -> list[str]:
    return [step.argument for step in trajectory.steps]


async def test_a_plan_and_one_join_answer_the_question() -> None:
    search = Told()
    trajectory, model = await ask([PLAN, ANSWER], search)
    assert [request.role for request in model.requests] == ["planner", "solver"]
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == ("Neva", "answered", 0)
    assert search.asked == ["Hermitage", "page of Hermitage"]
    assert trajectory.evidence == {"E1": "page of Hermitage", "E2": "page of page of Hermitage"}
    assert [step["args"] for step in trajectory.plan or ()] == ["Hermitage", "{{E1}}"]


async def test_a_task_starts_when_its_line_has_ended_and_before_the_plan_does() -> None:
    started = anyio.Event()

    async def answer(query: str) -> str:
        started.set()
        return f"page of {query}"

    search = Told(answer)
    asked_at_half_a_line: list[list[str]] = []

    async def look() -> None:
        await anyio.wait_all_tasks_blocked()
        asked_at_half_a_line.append(list(search.asked))

    pieces: Pieces = [
        '1. Search("Herm',
        look,
        'itage")',
        look,
        "\n2. Sea",
        started.wait,
        look,
        'rch("$1")\n',
        "3. join()",
    ]
    trajectory = await write([pieces], [PLAN], search)
    assert asked_at_half_a_line == [[], [], ["Hermitage"]]
    assert (arguments(trajectory), trajectory.notes["early_steps"]) == (["Hermitage", "page of Hermitage"], 2)


async def test_a_task_that_the_plan_does_not_have_in_the_end_is_discarded_with_all_that_use_it() -> None:
    hanging = anyio.Event()

    async def answer(query: str) -> str:
        if query == "slow":
            await hanging.wait()
        return f"page of {query}"

    search = Told(answer)
    other = '1. Search("Winter Palace")\n2. Search("$1")\n4. Search("kept")\n5. join()'
    begun: Pieces = [
        '1. Search("Hermitage")\n2. Search("$1")\n3. Search("slow")\n4. Search("kept")\n', anyio.wait_all_tasks_blocked
    ]  # fmt: skip
    trajectory = await write([begun], [other], search)
    assert search.asked == ["Hermitage", "slow", "kept", "page of Hermitage", "Winter Palace", "page of Winter Palace"]
    assert arguments(trajectory) == ["Winter Palace", "page of Winter Palace", "kept"]
    assert [(each["id"], each["ended"]) for each in trajectory.notes["discarded"]] == [
        ("E1", True), ("E2", True), ("E3", False)
    ]  # fmt: skip


async def test_only_tasks_that_can_run_start_early() -> None:
    search = Told()
    pieces: Pieces = [
        '1. Nothing("x")\n2. Search("$1")\n3. Search("{{E9}}")\n4. Search("")\n',
        '5. Search("fine")\n6. Search("too many")\n',
        anyio.wait_all_tasks_blocked,
    ]
    trajectory = await write([pieces], ["no plan", PLAN], search, max_steps=5, max_replans=1)
    assert search.asked[0] == "fine"
    assert "too many" not in search.asked
    assert arguments(trajectory) == ["Hermitage", "page of Hermitage"]


async def test_a_broken_plan_gets_one_more_attempt_that_is_told_all_faults_in_its_own_names() -> None:
    trajectory, model = await ask(['1. Serch("a")\n9. Search("$7")', PLAN, ANSWER], max_replans=1)
    complaint = model.requests[1].messages[-1].content
    assert "$1 uses the unknown tool 'Serch'; the tools are: Search; $9 uses $7, which no step defines" in complaint
    assert (trajectory.answer, trajectory.replans) == ("Neva", 1)


@pytest.mark.parametrize("max_replans", [0, 1, 2])
async def test_a_plan_that_stays_broken_ends_the_question(max_replans: int) -> None:
    search = Told()
    broken = '1. Search("a")\n2. Serch("b")\n'
    trajectory, model = await ask({"planner": [broken] * 3}, search, max_replans=max_replans)
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == (None, "invalid_plan", max_replans)
    assert [request.role for request in model.requests] == ["planner"] * (1 + max_replans)
    assert (trajectory.steps, trajectory.plan, trajectory.evidence) == ((), None, None)
    assert [each["id"] for each in trajectory.notes["discarded"]] == ["E1"]


async def test_a_replan_sees_what_was_found_and_numbers_on() -> None:
    second = '3. Search("river of $2")\n4. join()'
    trajectory, model = await ask([PLAN, REPLAN, second, ANSWER], max_replans=1)
    asked = model.requests[2].messages[-1].content
    assert '2. Search("$1")\nResult: page of page of Hermitage' in asked
    assert "Still missing: the river\n" in asked
    assert "with numbers from 3." in asked
    assert model.requests[2].messages[-2] == Message("assistant", PLAN)
    assert arguments(trajectory) == ["Hermitage", "page of Hermitage", "river of page of page of Hermitage"]
    assert (trajectory.answer, trajectory.replans, list(trajectory.evidence or ())) == ("Neva", 1, ["E1", "E2", "E3"])


@pytest.mark.parametrize("max_replans", [0, 1, 3])
async def test_replans_are_bounded_and_the_last_joiner_can_only_answer(max_replans: int) -> None:
    planners = [f'{n}. Search("page {n}")\n' for n in range(1, 9)]
    trajectory, model = await ask({"planner": planners, "solver": [REPLAN] * 9}, max_replans=max_replans)
    roles = [request.role for request in model.requests]
    assert roles == ["planner", "solver"] * (1 + max_replans)
    assert (trajectory.answer, trajectory.stop_reason, trajectory.replans) == (None, "step_limit", max_replans)
    asked = [request.messages[0] for request in model.requests[1::2]]
    forms = ["Replan" in str(request.grammar) for request in model.requests[1::2]]
    assert asked == [PROMPTS.system("joiner_replan")] * max_replans + [PROMPTS.system("joiner")]
    assert "Replan" not in said(model.requests[-1].messages)
    assert forms == [True] * max_replans + [False]


async def test_a_broken_replan_leaves_the_results_for_a_last_join() -> None:
    trajectory, model = await ask([PLAN, REPLAN, '1. Search("again")', ANSWER], max_replans=1)
    assert [request.role for request in model.requests] == ["planner", "solver", "planner", "solver"]
    assert trajectory.notes["drafts"][1]["faults"] == ["#E1 was done by an earlier plan; number on from there"]
    assert (trajectory.answer, len(trajectory.steps)) == ("Neva", 2)


@pytest.mark.parametrize(
    ("reply", "answer", "stop_reason"),
    [
        ("Neva", "Neva", "answered"),
        ("Thought: so.\n**Answer:** Neva\nReplan: more", "Neva", "answered"),
        ("Answer:\nReplan: more", None, "empty_answer"),
        ("Thought: only this", None, "empty_answer"),
        (Completion("Thought: cut", finish_reason="length"), None, "length_limit"),
    ],
)
async def test_a_joiner_that_says_neither_is_read_as_an_answer(
    reply: Any, answer: str | None, stop_reason: str
) -> None:
    trajectory, _ = await ask([PLAN, reply])
    assert (trajectory.answer, trajectory.stop_reason) == (answer, stop_reason)


async def test_an_error_of_a_task_ends_the_planner_and_is_raised_as_it_is() -> None:
    async def limited(query: str) -> str:
        raise LimitReached("token_limit", "used 9 of 8 tokens")

    ended: list[str] = []

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("planner")

    with pytest.raises(LimitReached, match="used 9 of 8"):
        await write([['1. Search("a")\n', hang]], [PLAN], Told(limited))
    assert ended == ["planner"]


async def test_a_failing_planner_ends_the_tasks_that_it_has_started() -> None:
    ended: list[str] = []

    async def hang(query: str) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(query)
        return ""

    model = WritingModel({"planner": [ModelError("down")]}, [['1. Search("a")\n', anyio.wait_all_tasks_blocked]])
    with pytest.raises(ModelError, match="down"), anyio.fail_after(30):
        await compiler().run(QUESTION, model=model, tools=toolbox(Told(hang)))
    assert ended == ["a"]


LINES = [
    '1. Search("ä")', '2. Search("$1 🙂")', '3. Search("b $1 $2")', '1. Search("c")', '2. LLM("x")', "2. Search(",
    "Thought: é", "3. join()", "prose", '4. Search("$3")', '3. Search("{{E4}}")',
]  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), max_size=6), st.data())
def test_a_streamed_plan_gives_what_the_whole_plan_gives(lines: list[str], data: st.DataObject) -> None:
    """Cut anywhere, with an attempt that broke off before it: the trajectory is that of the same plan unstreamed."""
    text = "\n".join(lines)
    other = "\n".join(data.draw(st.lists(st.sampled_from(LINES), max_size=4)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces: list[Any] = [other, anyio.wait_all_tasks_blocked, ""]
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        if start < end:
            pieces += [text[start:end], anyio.wait_all_tasks_blocked]

    async def both() -> tuple[Trajectory, Trajectory]:
        streamed = await write([pieces], [text], max_replans=0)
        whole, _ = await ask({"planner": [text], "solver": [ANSWER]}, stream=False, max_replans=0)
        return streamed, whole

    streamed, whole = anyio.run(both)
    assert streamed.steps == whole.steps
    assert (streamed.plan, streamed.evidence, streamed.answer) == (whole.plan, whole.evidence, whole.answer)
    assert streamed.stop_reason == whole.stop_reason
