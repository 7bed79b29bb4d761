"""ReWOO with a program for its plan, as a conversation."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from parts import toolbox

from rewoo_bench.errors import SpecError
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.programs import fenced
from rewoo_bench.runners.rewoo_code import ReWOOCode, ReWOOCodeSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Message, Trajectory

pytestmark = pytest.mark.anyio

PROMPTS = load_architecture("rewoo-code", style="multihop").prompts
QUESTION = "Which river flows through the Hermitage's city?"
PROGRAM = 'page = await Search("Hermitage")\nprint(page)'


async def ask(lines: Script, *tools: Any, **settings: Any) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = ReWOOCode(PROMPTS, ReWOOCodeSettings(**settings))
    return await runner.run(QUESTION, model=model, tools=toolbox(*tools)), model


async def test_a_program_is_written_once_run_and_answered_from() -> None:
    trajectory, model = await ask({"planner": [f"Here it is:\n{fenced(PROGRAM)}\nDone."], "solver": ["Answer: Neva"]})
    planner, solver = model.requests
    assert "async def Search(query: str) -> str: ...  # finds a page." in planner.messages[0].content
    assert planner.messages[-1] == Message("user", f"Question: {QUESTION}")
    assert planner.grammar
    assert solver.messages[-1].content == (
        f"Question: {QUESTION}\n\nProgram:\n{fenced(PROGRAM)}\nOutput:\npage of Hermitage\n\nQuestion: {QUESTION}"
    )
    assert (trajectory.answer, trajectory.stop_reason, trajectory.plan) == ("Neva", "answered", None)
    assert [(step.id, step.tool, step.argument) for step in trajectory.steps] == [("E1", "Search", "Hermitage")]
    assert trajectory.notes["program"] == PROGRAM
    assert trajectory.notes["output"] == "page of Hermitage"


async def test_a_program_that_cant_be_parsed_is_told_why_once() -> None:
    broken = fenced("print(")
    trajectory, model = await ask([broken, fenced(PROGRAM), "Answer: Neva"])
    assert model.requests[1].messages[-2:] == (
        Message("assistant", broken),
        Message(
            "user",
            "The program can't be run: SyntaxError: unexpected EOF while parsing (line 1).\nWrite a new program.\n\n"
            f"Question: {QUESTION}",
        ),
    )
    assert (trajectory.answer, trajectory.replans) == ("Neva", 1)
    assert [bool(draft["faults"]) for draft in trajectory.notes["drafts"]] == [True, False]
    ended, model = await ask([broken, "I can't."])
    assert (ended.answer, ended.stop_reason, len(model.requests)) == (None, "invalid_plan", 2)
    at_once, model = await ask([broken], max_replans=0)
    assert (at_once.stop_reason, len(model.requests)) == ("invalid_plan", 1)


async def test_an_exception_is_evidence_beside_what_was_printed() -> None:
    trajectory, model = await ask([fenced(f"{PROGRAM}\n1 / 0"), "Answer: Neva"])
    output = "Output:\npage of Hermitage\nERROR: ZeroDivisionError: division by zero (line 3)\n\n"
    assert output in model.requests[1].messages[-1].content
    assert trajectory.notes["fault"] == "ZeroDivisionError: division by zero (line 3)"
    assert (trajectory.answer, trajectory.replans) == ("Neva", 0)


async def test_without_a_solver_the_value_is_the_answer() -> None:
    for program, answer in (('print("so")\n"Neva"', "Neva"), ('print("so")\nprint("Neva")', "Neva"), ("x = 1", None)):
        trajectory, model = await ask([fenced(program)], solver=False)
        assert (trajectory.answer, len(model.requests)) == (answer, 1)
        assert trajectory.stop_reason == ("answered" if answer else "empty_answer")


async def test_without_the_sandbox_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)  # as where it can't be imported
    for name in ("rewoo-code", "react-code"):
        with pytest.raises(SpecError, match=r"pip install 'rewoo-bench\[code\]'"):
            load_architecture(name, style="multihop")
