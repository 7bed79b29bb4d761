"""`rewoo-bench new`: each example runs as it was written."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest
from answering import KEY
from command_runs import quiet, start
from model_server import ModelServer

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

ROOT = Path(__file__).parents[2]


def new(kind: str, name: str, *flags: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["new", kind, name, *flags])
    return int(ended.value.code or 0)


def test_a_new_architecture_runs_with_the_oracle(capsys: pytest.CaptureFixture[str]) -> None:
    assert new("arch", "mine") == 0
    out, err = capsys.readouterr()
    assert "mine/architecture.toml" in out.splitlines()
    assert err == "next: rewoo-bench run --arch ./mine,rewoo --model oracle -n 10\n"
    assert quiet("--arch", "./mine", "--model", "oracle", "-n", 6, "--out", "here") == 0
    rows = load("here")
    assert set(rows["architecture"]) == {"mine"}
    assert rows["error"].isna().all()
    assert rows["exact_match"].mean() > 0.5


@pytest.mark.parametrize("original", ["rewoo-json", "rewoo-react"])  # which has two prompts by one file's name
def test_a_copied_architecture_costs_what_its_original_does(original: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert new("arch", "mine", "--from", original) == 0
    assert "mine/rewoo/llm.txt" in capsys.readouterr().out.splitlines()
    assert "../" not in Path("mine/architecture.toml").read_text("utf-8")
    assert quiet("--arch", f"./mine,{original}", "--model", "oracle", "-n", 4, "--out", "here") == 0
    tokens = load("here").groupby("architecture", observed=True)["total_tokens"].agg(list)
    assert tokens["mine"] == tokens[original]


def test_only_a_bundled_architecture_is_copied(capsys: pytest.CaptureFixture[str]) -> None:
    assert new("arch", "mine", "--from", "rewoo-jso") == 2
    assert "--from: unknown architecture 'rewoo-jso', did you mean 'rewoo-json'?" in capsys.readouterr().err
    assert new("dataset", "mine", "--from", "rewoo") == 2
    assert "write `new arch mine --from rewoo`" in capsys.readouterr().err
    assert not Path("mine").exists()


def test_a_new_agent_runs_beside_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    assert new("agent", "my-agent") == 0
    assert capfd.readouterr().out == "my-agent/agent.py\nmy-agent/architecture.toml\n"
    with ModelServer(lambda request: "Neva") as server:
        process = start("--arch", "./my-agent,direct", "-n", 2, "--model", "openai/test", "--api-base", server.api_base,
                        "--out", "here", env={"OPENAI_API_KEY": KEY})  # fmt: skip
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    rows = load("here")
    rows = rows[rows["architecture"] == "my-agent"]
    assert rows[["prediction", "stop_reason", "llm_calls", "tool_calls", "steps"]].to_numpy().tolist() == [
        ["Neva", "answered", 1, 1, 1]
    ] * 2  # fmt: skip


def test_a_new_runner_runs_in_a_process_of_its_own() -> None:
    assert new("runner", "look_once") == 0
    with ModelServer(lambda request: "Neva") as server:
        process = start("--arch", "./look_once", "-n", 2, "--model", "openai/test", "--api-base", server.api_base,
                        "--out", "here", env={"OPENAI_API_KEY": KEY})  # fmt: skip
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert load("here")["prediction"].tolist() == ["Neva", "Neva"]
    assert load("here")["tool_calls"].tolist() == [1, 1]


def test_a_new_tool_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    assert new("tool", "day_count") == 0
    monkeypatch.syspath_prepend(str(Path.cwd()))
    turns = ["Thought: a\nAction: DayCount[2001-02-03 2001-02-05]", "Thought: b\nAction: DayCount[x]",
             "Thought: c\nAction: Finish[2 days]"]  # fmt: skip
    model = ScriptedModel(turns)
    (result,) = anyio.run(lambda: rewoo_bench.evaluate("sample", "./day_count", model=model, questions=1))
    assert [step.observation for step in result.trajectory.steps[:2]] == [
        "2 days",
        "ERROR: expected two dates such as 2001-02-03 2004-05-06, got 'x'",
    ]
    assert result.trajectory.answer == "2 days"


@pytest.mark.skipif(not (find_spec("ruff") and find_spec("mypy")), reason="needs the extra 'dev': ruff and mypy")
def test_the_python_of_an_example_is_clean() -> None:
    assert new("runner", "look_once") == new("tool", "day_count") == 0
    files = [Path(file).resolve() for file in ("look_once/runner.py", "day_count/tool.py")]
    for check in (["ruff", "check"], ["mypy"]):  # where mypy has checked the project, it knows what they import
        subprocess.run([sys.executable, "-m", *check, "--config", "pyproject.toml", *files], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("runner", "look-once", "'look-once' is no name; use letters, digits and '_'"),
        ("runner", "json", "there is a Python module 'json' already"),
        ("tool", "class", "is a word of Python's own; choose another name, such as 'my_class'"),
        ("runner", "own_loop", "there is a Python module 'own_loop' already"),
        ("arch", "rewoo", "the architecture 'rewoo' exists already, in rewoo-bench; choose another name"),
        ("tool", "Search", "the tool 'Search' exists already"),
        ("arch", "..", "'..' is no name"),
        ("arch", "taken", "'taken' exists already"),
        ("agnt", "mine", "'agnt' is not one of 'arch', 'runner', 'tool', 'dataset', 'agent'"),
    ],
)
def test_a_wrong_name_is_refused(kind: str, name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").mkdir()
    Path("own_loop.py").touch()
    assert new(kind, name) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1 or "Usage" in err
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["own_loop.py", "taken"]
