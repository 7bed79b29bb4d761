"""`--world` and `--tools FILE.py` from end to end: fresh worlds, worlds that fail, rows of every format, kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_runs import quiet, start
from model_server import ModelServer, ServerFault

from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

COUNTER = """
from rewoo_bench import changes_state

made = []

class Counter:
    worlds = []

    def __init__(self, row):
        made.append(self)
        self.worlds.append(self)
        self.row, self.n = row, int(row["n"])
        row["n"] = 100

    def get(self) -> int:
        return self.n

    @changes_state
    def add(self, by: int) -> int:
        self.n += by
        return self.n

    def solved(self, answer):
        return self.n == int(self.row["after"]) and len(made) == len(self.worlds) == 1
"""
DOUBLE = "def double(number: int) -> int:\n    return _own() * number\n\ndef _own() -> int:\n    return 2\n"
SHORT = ("--no-progress", "--no-report")


def calls(by: int) -> list[dict[str, Any]]:
    return [{"tool": "get"}, {"tool": "add", "arguments": {"by": by}}]


ROWS = [{"id": f"q{n}", "question": f"Add {n}.", "n": 1, "after": 1 + n, "calls": calls(n)} for n in (1, 2, 3)]


def write(rows: Sequence[object] = ROWS, world: str = COUNTER) -> list[object]:
    """The flags of a run in these worlds, whose files are written."""
    Path("counter.py").write_text(world)
    Path("tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return ["--world", "counter.py", "--dataset", "tasks.jsonl"]


def oracle(*flags: object) -> int:
    return quiet("--arch", "react", "--model", "oracle", "--out", "here", *flags)


def body(method: str, code: str) -> str:
    """The counter with other code in a method."""
    head, found, rest = COUNTER.partition(f"def {method}")
    assert found
    signature, _, rest = rest.partition("\n")
    return f"{head}{found}{signature}\n        {code}\n{rest}"  # before what it does


def test_questions_trials_and_architectures_at_once_see_nothing_of_each_other() -> None:
    flags = write()
    assert oracle(*flags, "--arch", "rewoo,react-native", "--trials", 2, "--concurrency", 18) == 0
    rows = load("here")
    assert len(rows) == 18
    assert rows["exact_match"].all()
    assert set(rows["state_changes"]) == {1}
    assert set(rows["unasked_changes"]) == {0}


def _as_json(rows: list[dict[str, Any]]) -> None:
    Path("rows.json").write_text(json.dumps(rows))


def _as_csv(rows: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(rows)
    frame["calls"] = frame["calls"].map(json.dumps)
    frame.to_csv("rows.csv", index=False)


def _as_pandas_writes_it(rows: list[dict[str, Any]]) -> None:
    pd.DataFrame(rows).to_csv("rows.csv", index=False)


def _as_parquet(rows: list[dict[str, Any]]) -> None:
    pd.DataFrame(rows).to_parquet("rows.parquet")


@pytest.mark.parametrize(
    ("suffix", "write_rows"),
    [("json", _as_json), ("csv", _as_csv), ("csv", _as_pandas_writes_it), ("parquet", _as_parquet)],
)
def test_rows_of_every_format_are_the_state(suffix: str, write_rows: Callable[[list[dict[str, Any]]], None]) -> None:
    write()
    write_rows(ROWS)  # parquet gives `get` an argument `by` without a value
    assert oracle("--world", "counter.py", "--dataset", f"rows.{suffix}") == 0
    rows = load("here")
    assert rows["exact_match"].tolist() == [True] * 3


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ([{"tool": "ad", "arguments": {"by": 1}}], "question 'q': call 1 of 'calls': unknown tool 'ad', did you mean"),
        ([{"tool": "add", "arguments": {"bye": 1}}], "call 1 of 'calls': unknown argument of add 'bye'"),
        ([{"tool": "add", "arguments": {"by": "x"}}], "call 1 of 'calls': by: Input should be a valid integer"),
        (
            [{"tool": "get"}, {"tool": "add", "arguments": {"by": "#2"}}],
            "call 2 of 'calls': '#2' names no earlier call",
        ),
        ([{"tool": "get", "after": [2]}], "tasks.jsonl, row 1: 'calls': call 1 names call 2, expected earlier calls"),
        ([*calls(1), {"tool": "add", "arguments": {"by": 1}, "read": {"n": 1}}], "call 3 reads 'n', which is none of"),
        ("get()", "tasks.jsonl, row 1: 'calls' is not valid JSON: Expecting value"),
    ],
)
def test_gold_calls_that_no_world_could_make_are_refused_in_one_line(
    written: object, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = write([{"id": "q", "question": "Do it.", "n": 1, "after": 2, "calls": written}])
    assert oracle(*flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert not Path("here").exists()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (
            ("--dataset", "tasks.jsonl?objectives=2"),
            "--world: each task has a world of its own, so several can't be one",
        ),
        (("--dataset", "hotpot.json"), "'hotpot': the oracle needs the gold calls of each task, under 'calls'"),
        (("--world", "none.py"), "--world none.py: no such file"),
        (("--tools", "clash.py"), "--world: 'react' has 'get' already; give the world's method another name"),
        (("--tools", "counter.py:get"), "--tools: "),
    ],
)
def test_flags_that_a_world_can_not_have_are_refused_in_one_line(
    flags: Sequence[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("clash.py").write_text("def get() -> int:\n    return 3\n")
    row = {"_id": "h", "question": "Which river?", "answer": "Neva", "type": "bridge", "level": "hard"}
    Path("hotpot.json").write_text(json.dumps([{**row, "supporting_facts": [["K", 0]], "context": [["K", ["A."]]]}]))
    world = COUNTER.replace('int(row["n"])', 'int(row.get("n", 0))')
    assert oracle(*write(world=world), *flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


# Worlds that fail.


@pytest.mark.parametrize(
    ("method", "code", "error"),
    [
        ("__init__", 'row["n"] == 1 or 1 / 0', "WorldFault: Counter({…}) raised ZeroDivisionError: division by zero"),
        ("solved", "return self.n == 2 or [][0]", "WorldFault: solved raised IndexError: list index out of range"),
        ("solved", "return self.n == 2 or None", "WorldFault: solved returned None, expected True or False"),
        (
            "get",
            "import time; time.sleep(self.n - 1); return 1",
            "WorldFault: solved took longer than",
        ),
    ],
)
def test_a_world_that_fails_is_its_own_questions_error_and_nobody_elses(method: str, code: str, error: str) -> None:
    rows = [{**row, "n": n, "after": n + 1, "calls": calls(1)} for row, n in zip(ROWS, (1, 3, 1), strict=True)]
    assert oracle(*write(rows, body(method, code)), "--mcp-timeout", 0.3) == 3
    found = load("here").set_index("example_id")
    assert found["exact_match"].isna().to_dict() == {"q1": False, "q2": True, "q3": False}
    assert found["error"]["q2"].startswith(error)
    assert found["exact_match"]["q1"]
    assert found["exact_match"]["q3"]


def test_a_tool_that_exits_has_failed_and_the_run_goes_on() -> None:
    world = body("get", "import sys; sys.exit(0)").replace("def get", "async def get")
    assert oracle(*write(world=world.replace("def add", "async def add"))) == 0
    assert load("here")["exact_match"].tolist() == [True] * 3  # the oracle goes on
    made = pd.read_parquet("here/calls.parquet")
    assert made[made["name"] == "get"]["status"].tolist() == ["error"] * 3


def test_a_tool_that_interrupts_ends_the_run_in_one_line_and_its_question_is_asked_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = write(world=body("get", "raise KeyboardInterrupt"))
    assert oracle(*flags, "--concurrency", 1) == 3
    said = capsys.readouterr().err
    assert "get raised KeyboardInterrupt" in said
    assert "Traceback" not in said
    assert load("here").empty


# Runs that are interrupted, replayed, spread, or of somebody else.


def test_a_killed_question_is_continued_in_a_new_world_without_asking_twice() -> None:
    """Killed after a change, while the model is asked what comes next."""
    is_slow = True

    def reply(request: dict[str, Any]) -> str | ServerFault:
        said = str(request["messages"][-1]["content"])
        if "Observation: 3" in said or "Observation: 4" in said:
            return ServerFault("hang") if is_slow else "Thought: b\nAction: Finish[done]"
        return f"Thought: a\nAction: add[{2 if 'Add 2' in said else 3}]"

    with ModelServer(reply) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base)
        process = start("--arch", "react", *write(ROWS[1:]), *model, "--out", "here", *SHORT)
        deadline = time.monotonic() + 30
        while len(server.books) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert len(server.books) == 4
        is_slow = False
        assert quiet("--resume", "here") == 0
        assert len(server.books) == 6  # what came next, of each question
    rows = load("here")
    assert rows["exact_match"].tolist() == [True, True]  # with a second `add` in one world, or none, it wouldn't be
    assert rows["state_changes"].tolist() == [1, 1]
    assert rows["tool_calls"].tolist() == [1, 1]
    assert rows["error"].isna().all()

    assert quiet("--arch", "react", "--world", "counter.py", "--dataset", "tasks.jsonl", "--model", "replay/here",
                 "--out", "again") == 0  # fmt: skip
    assert load("again")["exact_match"].tolist() == [True, True]


def test_functions_of_a_file_are_tools_and_private_ones_are_not(server: ModelServer) -> None:
    Path("my_tools.py").write_text(DOUBLE)
    assert _hosted(server, "--arch", "react-native", "--tools", "my_tools.py", "--out", "here") == 0
    assert [tool["function"]["name"] for tool in server.books[0].request["tools"]] == ["double"]


def _hosted(server: ModelServer, *flags: object) -> int:
    model = ("--model", "openai/test", "--api-base", server.api_base)
    return quiet("--dataset", "sample", "-n", 1, *model, *flags)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("one.py,two.py", "double"),
        ("one.py,none.py", "--tools: no such file: 'none.py'"),
        ("one.py:_own", "unknown function '_own'; available: double"),
    ],
)
def test_files_whose_functions_can_not_be_told_apart_or_found_are_refused_in_one_line(
    server: ModelServer, names: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        Path(f"{name}.py").write_text(DOUBLE)
    assert _hosted(server, "--arch", "react", "--tools", names) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


@pytest.mark.parametrize("flag", ["--world", "--tools"])
def test_a_strangers_run_with_code_asks_for_trust(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_tools.py").write_text(DOUBLE)
    code, given = ("counter.py", write()) if flag == "--world" else ("my_tools.py", ["--tools", "my_tools.py", "-n", 1])
    assert quiet("--arch", "direct", *given, "--model", "oracle", "--out", "here") == 0
    shutil.rmtree("cache")  # with the runs that were begun here
    for arguments in (["--resume", "here"], ["--from", "here/run.json"]):
        assert quiet(*arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{flag} '{code}'" in line
        assert line.endswith("Give them again, or --trust")
    assert quiet("--resume", "here", "--trust") == 0


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray (the extra ray)")
def test_worlds_on_a_worker_are_those_of_one_process() -> None:
    flags = write()
    assert oracle(*flags) == 0
    assert quiet("--arch", "react", *flags, "--model", "oracle", "--workers", 1, "--out", "spread") == 0
    assert load("spread")["exact_match"].tolist() == [True] * 3
    columns = ["example_id", "exact_match", "state_changes", "tool_calls", "total_tokens"]
    pd.testing.assert_frame_equal(load("spread")[columns], load("here")[columns])
