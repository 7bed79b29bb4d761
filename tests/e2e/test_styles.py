"""Styles of questions in whole runs: exemplars that fit, a notice where there are none, the tools of the data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runs import run

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.types import Message

pytestmark = pytest.mark.usefixtures("own_folder")

NOTICE = "mine has no exemplars for arithmetic questions (planner); those for multihop questions are used"


def own_architecture(folder: Path) -> str:
    """ReWOO with exemplars for multi-hop questions alone, as `mine`."""
    mine = folder / "mine"
    (mine / "exemplars").mkdir(parents=True)
    bundled = bundled_folder("architectures") / "rewoo"
    for file in ("planner.txt", "solver.txt", "llm.txt", "exemplars/multihop.txt"):
        (mine / file).write_text((bundled / file).read_text(encoding="utf-8"), encoding="utf-8")
    (mine / "architecture.toml").write_text(
        'runner = "rewoo"\n[prompts]\nplanner = "planner.txt"\nsolver = "solver.txt"\n'
        '[exemplars.planner]\nmultihop = "exemplars/multihop.txt"\n[tools.Search]\n[tools.LLM]\nprompt = "llm.txt"\n'
    )
    return "./mine"


def test_a_run_says_whose_exemplars_are_used_in_the_place_of_those_that_are_missing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = own_architecture(tmp_path)
    arguments = ("--dataset", "sample-arithmetic", "--model", "oracle", "-n", 3)
    assert run("--arch", f"{mine},rewoo", *arguments, "--out", "here") == 0
    assert capfd.readouterr().err.splitlines().count(NOTICE) == 1
    facts = {each.name: each.model_dump() for each in read_manifest(tmp_path / "here").architectures}
    assert facts["mine"]["fallback_styles"] == {"planner": "multihop"}
    assert "fallback_styles" not in facts["rewoo"]
    rows = rewoo_bench.load(tmp_path / "here")
    assert rows["exact_match"].mean() == 1.0


def test_a_run_says_whose_exemplars_show_a_tool_that_is_not_offered(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--arch", "rewoo,rewoo?tools=Search", "--dataset", "sample", "--model", "oracle", "-n", 2)
    assert run(*arguments) == 0
    notices = [line for line in capfd.readouterr().err.splitlines() if "exemplars" in line]
    assert notices == ["rewoo?tools=Search: its exemplars show LLM, which it isn't offered"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("dataset", "architecture", "listed"),
    [
        ("sample-arithmetic", "rewoo", ["Calculator", "LLM"]),
        ("sample-arithmetic", "react", ["Calculator", "Finish"]),
        ("sample-yes-no", "rewoo", ["Search", "LLM"]),
        ("sample-yes-no", "react", ["Search", "Lookup", "Finish"]),
    ],
)
async def test_a_prompt_lists_the_tools_of_the_data_set(dataset: str, architecture: str, listed: list[str]) -> None:
    prompts: list[str] = []

    def answer(messages: list[Message], role: str) -> str:
        prompts.append(messages[0].content)
        return "Action: Finish[yes]"

    model = ScriptedModel(lambda messages, role: answer(list(messages), role))
    await rewoo_bench.evaluate(dataset, [architecture], model=model, questions=1)
    tools = [line.partition("[")[0] for line in prompts[0].splitlines() if "]: " in line]
    assert tools == listed
