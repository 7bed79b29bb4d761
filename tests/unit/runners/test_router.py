"""The router: which architecture it chooses, by which policy, and that the chosen one runs as it does alone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench import Document, Example, Result, ScriptedModel
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.config.router import RouterSettings
from rewoo_bench.errors import SpecError
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runs.columns import question_row
from rewoo_bench.testing.scripted_model import Script

PLAN = "Plan: find the city\n#E1 = Search[Oslo]"
FINISH = "Thought: I know it\nAction: Finish[Akerselva]"
OSLO = (Document("Oslo", "Oslo is a city on the Akerselva."),)
RUN = {"run_id": "r", "dataset": "d", "model": "m", "planner_model": "m", "solver_model": "m"}
COMPARED = "Is Oslo or Bergen older?"
DESCRIBED = "Which river flows through the city where the treaty was signed?"


def question(text: str = COMPARED) -> Example:
    return Example("q", text, ("Akerselva",), OSLO)


async def ask(name: str, lines: Script, text: str = COMPARED, **more: Any) -> tuple[Result, ScriptedModel]:
    model = ScriptedModel(lines)
    (result,) = await rewoo_bench.evaluate([question(text)], [name], model=model, scoring="hotpotqa", **more)
    return result, model


def by_name(results: Sequence[Result], name: str) -> list[Result]:
    return [result for result in results if result.task.architecture.name == name]


@pytest.mark.anyio
async def test_the_first_rule_that_fits_chooses() -> None:
    result, model = await ask("router", {"planner": [PLAN], "solver": ["Answer: Akerselva"]})
    assert [request.role for request in model.requests] == ["planner", "solver"]
    assert result.trajectory.notes["routed"] == {"policy": "rule", "to": "rewoo", "rule": 1}
    assert {call.place.name for call in result.calls} == {"rewoo/planner 0", "rewoo/E1", "rewoo/solver"}
    other, _ = await ask("router", [FINISH], DESCRIBED)
    assert other.trajectory.notes["routed"] == {"policy": "rule", "to": "react", "rule": 2}
    assert [call.place.name for call in other.calls] == ["react/turn 1"]


@pytest.mark.anyio
async def test_a_routed_question_costs_what_the_chosen_one_costs() -> None:
    """With the oracle, whose counts are exact."""
    results = await rewoo_bench.evaluate("sample", ["rewoo", "react", "router"], model="oracle", questions=30)
    alone = {(each.task.architecture.name, each.task.example.id): each for each in results}
    chosen = [(each, alone[each.trajectory.notes["routed"]["to"], each.task.example.id])
              for each in by_name(list(results), "router")]  # fmt: skip
    assert {parent.task.architecture.name for _, parent in chosen} == {"rewoo", "react"}
    for routed, parent in chosen:
        assert [call.usage for call in routed.calls] == [call.usage for call in parent.calls]
        assert routed.trajectory.answer == parent.trajectory.answer


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "to", "readable"),
    [
        ("Agent: 2", "react", True),
        ("2", "react", True),
        ("Agent: 12", "rewoo", False),
        ("the second one", "rewoo", False),
    ],
)
async def test_a_model_chooses_by_number(reply: str, to: str, readable: bool) -> None:
    lines = {"router": [reply], "planner": [PLAN], "solver": ["Answer: x"], "agent": [FINISH]}
    result, model = await ask("router?policy=model", lines)
    assert result.trajectory.notes["routed"] == {"policy": "model", "to": to, "reply": reply, "readable": readable}
    first = model.requests[0]
    assert (first.role, first.max_tokens, result.calls[0].place.name) == ("router", 8, "router")
    assert "1. rewoo: plan every tool call" in first.messages[0].content
    assert "2. react: think, act, observe" in first.messages[0].content
    assert question_row(result, RUN)["router_tokens"] == result.calls[0].usage.total_tokens > 0
    assert question_row(result, RUN)["total_tokens"] == sum(call.usage.total_tokens for call in result.calls)


@pytest.mark.anyio
async def test_the_oracle_routes_by_whether_everything_can_be_foreseen() -> None:
    chosen = {}
    for dataset in ("chain?hops=3", "chain?hops=3&branching=2"):
        results = await rewoo_bench.evaluate(dataset, ["router?policy=model"], model="oracle", questions=2)
        chosen[dataset] = {question_row(result, RUN)["routed_to"] for result in results}
        assert all(result.score and result.score.exact_match for result in results)
    assert chosen == {"chain?hops=3": {"rewoo"}, "chain?hops=3&branching=2": {"react"}}


@pytest.mark.anyio
async def test_a_limit_is_of_the_router_and_its_parent_together_and_the_row_says_who_was_chosen() -> None:
    lines = {"router": ["Agent: 2"], "agent": ["Thought: look\nAction: Search[Oslo]", FINISH]}
    whole, _ = await ask("router?policy=model", lines)
    most = sum(call.usage.total_tokens for call in whole.calls[:2])  # the router's, and one turn
    result, _ = await ask("router?policy=model", lines, question_tokens=most)
    assert result.trajectory.stop_reason == "token_limit"
    assert question_row(result, RUN)["routed_to"] == "react"
    alone, _ = await ask("react", lines, question_tokens=most)
    assert alone.trajectory.stop_reason == "answered"
    assert question_row(alone, RUN)["routed_to"] is None


def test_a_copy_can_choose_between_folders_beside_it(tmp_path: Path) -> None:
    for name in ("rewoo", "react", "router"):
        shutil.copytree(bundled_folder("architectures") / name, tmp_path / name)
    mine = tmp_path / "rewoo" / "architecture.toml"
    mine.write_text(mine.read_text().replace('name = "rewoo"', 'name = "mine"'))
    toml = tmp_path / "router" / "architecture.toml"
    text = (
        toml.read_text()
        .replace('"rewoo", "react"', '"../rewoo?max_steps=5", "react"')
        .replace('"rewoo"', '"mine?max_steps=5"')
    )
    toml.write_text(text)
    assert [parent.name for parent in load_architecture(str(tmp_path / "router"), style="trivia").parents] == [
        "mine?max_steps=5",
        "react",
    ]


AGENT = 'name = "own"\n[agent]\ncommand = ["true"]\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("parents=rewoo", "parents: expected two different architectures, as in rewoo+react, got 'rewoo'"),
        ("parents=rewo+react", "unknown architecture 'rewo', did you mean 'rewoo'?"),
        ("parents=router+react", "'router' can't be a parent"),
        ("parents=cot+direct", "rule 1 chooses 'rewoo'; the parents are cot and direct"),
        ("tools=Search", "its tools are those of its parents"),
    ],
)
def test_a_router_that_cannot_be_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    Path("own/architecture.toml").write_text(AGENT)
    with pytest.raises(SpecError) as raised:
        load_architecture(f"router?{options}", style="multihop")
    assert str(raised.value).startswith(f"architecture 'router?{options}': ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"choose": "rewoo"}, "a rule needs a condition; without one it fits every question"),
        ({"choose": "rewoo", "pattern": "("}, "not a regular expression"),
    ],
)
def test_a_wrong_rule_is_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RouterSettings(rules=(rule,))  # type: ignore[arg-type]
