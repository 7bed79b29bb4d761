"""The oracle in the example world: what each architecture can do of five tasks, and what it makes of them."""

from __future__ import annotations

from pathlib import Path
from string import Template

import pandas as pd
import pytest

import rewoo_bench
from rewoo_bench import evaluate
from rewoo_bench.models.oracle.actions import ActionPath
from rewoo_bench.types import Example, GoldAction

pytestmark = pytest.mark.anyio
TEMPLATES = Path(rewoo_bench.__file__).parent / "cli" / "templates" / "world"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example world: tasks that ask, change, follow a customer, decide by a rule, and repeat for each order."""
    folder = tmp_path_factory.mktemp("shop")
    values = {"name": "shop", "class_name": "Shop"}
    for template, file in (("__name__.py.template", "shop.py"), ("questions.jsonl.template", "questions.jsonl")):
        (folder / file).write_text(Template((TEMPLATES / template).read_text("utf-8")).substitute(values), "utf-8")
    return folder


async def asked(shop: Path, architecture: str) -> pd.DataFrame:
    results = await evaluate(
        str(shop / "questions.jsonl"), architecture, model="oracle", world=str(shop / "shop.py"), progress=False
    )
    return results.to_frame().sort_values("example_id").reset_index(drop=True)


LOOPS = ("react", "react-json", "react-native", "react-native?references=true", "react-native?parallel=no",
         "plan-execute", "rewoo-react")  # fmt: skip


@pytest.mark.parametrize("architecture", [*LOOPS, "llmcompiler?max_replans=4"])
async def test_loops_and_new_plans_do_every_task(shop: Path, architecture: str) -> None:
    rows = await asked(shop, architecture)
    assert rows["exact_match"].tolist() == [True] * 5
    assert rows["state_changes"].tolist() == [0, 1, 1, 1, 2]
    assert rows["unasked_changes"].sum() == 0


@pytest.mark.parametrize("architecture", ["rewoo", "rewoo-json", "rewoo-lazy", "rewoo-json?solver_evidence=unread"])
async def test_a_plan_does_what_the_task_decides_and_no_more(shop: Path, architecture: str) -> None:
    rows = await asked(shop, architecture)
    assert rows["exact_match"].tolist() == [True, True, True, False, False]
    assert rows["state_changes"].tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("architecture", ["rewoo-code", "react-code"])
async def test_programs_do_what_a_rule_decides(shop: Path, architecture: str) -> None:
    pytest.importorskip("pydantic_monty")
    rows = await asked(shop, architecture)
    assert rows["exact_match"].tolist() == [True] * 5


async def test_independent_calls_share_a_turn_and_a_turn_waits_for_what_must_be_read(shop: Path) -> None:
    rows = await asked(shop, "react-native")
    # Of the last task: the orders; both of them; both changes; the answer.
    assert rows["llm_calls"].tolist() == [2, 3, 4, 3, 4]
    assert rows["tool_calls"].tolist() == [1, 2, 3, 2, 5]


async def test_without_calls_only_the_words_are_right(shop: Path) -> None:
    assert (await asked(shop, "direct"))["exact_match"].tolist() == [True, False, False, False, False]


def test_a_change_waits_for_the_calls_before_it() -> None:
    """A call whose arguments are known isn't made before a change that comes first and can't be made yet."""
    actions = (
        GoldAction("look", {"x": 1}),
        GoldAction("change", {"y": 2}, read={"y": (0,)}, changes_state=True),
        GoldAction("look", {"x": 3}),
        GoldAction("change", {"y": 4}, changes_state=True),
    )
    path = ActionPath(Example("e", "q", (), actions=actions))
    assert path.next_actions([False] * 4) == [0]
    assert path.next_actions([True, False, False, False]) == [1, 2, 3]
    assert path.stages(has_reader=True) == [0, 0, 0, 0]
    assert path.stages(has_reader=False) == [0, 1, 1, 1]


def test_whole_results_are_passed_on_within_a_turn_with_references() -> None:
    actions = (GoldAction("price", {"sku": "mug"}), GoldAction("pay", {"amount": "#1"}, changes_state=True))
    path = ActionPath(Example("e", "q", (), actions=actions))
    assert path.next_actions([False, False]) == [0]
    assert path.next_actions([False, False], references=True) == [0, 1]
    assert path.stages(has_reader=False) == [0, 0]


@pytest.mark.parametrize("architecture", ["rewoo", "rewoo-json", "react-native"])
async def test_a_call_that_the_task_decides_waits_for_no_result_but_those_that_it_takes(
    tmp_path: Path, architecture: str
) -> None:
    (tmp_path / "line.py").write_text(LINE, "utf-8")
    (tmp_path / "rows.json").write_text(ROWS.replace('{"stop": "#1"}', '{"stop": "#1"}, "after": [1]'), "utf-8")
    results = await evaluate(
        str(tmp_path / "rows.json"), architecture, model="oracle", world=str(tmp_path / "line.py"), progress=False
    )
    assert results.to_frame()["exact_match"].tolist() == [True, True]
    actions = (GoldAction("look", {"x": 1}), GoldAction("look", {"x": 2}, after=(0,)))
    path = ActionPath(Example("e", "q", (), actions=actions))
    assert path.next_actions([False, False]) == [0, 1]
    assert path.stages(has_reader=False) == [0, 0]


LINE = """
from rewoo_bench import changes_state

class Line:
    def __init__(self, row):
        self.seats = 2
    def stop_after(self, stop: str) -> str:
        "Says the next stop."
        return {"Harbour": "Market", "Market": "Station", "Station": "Zoo"}.get(stop, "none")
    @changes_state
    def book(self, seats: int) -> int:
        "Books seats, and says how many are booked."
        self.seats += seats
        return self.seats
    def solved(self, answer):
        return answer in ("Zoo", "8") and (answer == "Zoo" or self.seats == 8)
"""
ROWS = """
[{"question": "Which stop is three after Harbour?", "answers": ["Zoo"], "calls": [
  {"tool": "stop_after", "arguments": {"stop": "Harbour"}}, {"tool": "stop_after", "arguments": {"stop": "#1"}},
  {"tool": "stop_after", "arguments": {"stop": "#2"}}]},
 {"question": "Book 2 seats, and then as many as are booked.", "answers": ["8"], "calls": [
  {"tool": "book", "arguments": {"seats": 2}}, {"tool": "book", "arguments": {"seats": "#1"}}]}]
"""


@pytest.mark.parametrize("architecture", ["rewoo", "rewoo-json", *LOOPS])
async def test_a_tool_that_is_called_again_with_its_result_is_called_as_often_as_the_task_says(
    tmp_path: Path, architecture: str
) -> None:
    (tmp_path / "line.py").write_text(LINE, "utf-8")
    (tmp_path / "rows.json").write_text(ROWS, "utf-8")
    results = await evaluate(
        str(tmp_path / "rows.json"), architecture, model="oracle", world=str(tmp_path / "line.py"), progress=False,
        out=tmp_path / "run",
    )  # fmt: skip
    calls = pd.read_parquet(tmp_path / "run" / "calls.parquet")
    made = calls[(calls["kind"] == "tool") & calls["name"].isin(["stop_after", "book"])]
    assert made["name"].value_counts().to_dict() == {"stop_after": 3, "book": 2}
    assert results.to_frame()["exact_match"].tolist() == [True, True]
