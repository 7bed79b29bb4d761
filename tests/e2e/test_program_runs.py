"""Runs of architectures that write programs, ended in the middle of one: what was called isn't called again."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_runs import quiet, start
from model_server import ModelServer
from processes import under

from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

PROGRAM = """```python
page = await Search("Kyiv")
rivers = []
for n in range(3):
    rivers.append(await LLM(f"River {n}? " + page))
print(await gather(LLM("Left? " + rivers[0]), LLM("Right? " + rivers[2])))
```"""
CALLS = ["planner", "River 0", "River 1", "River 2", "Left", "Right", "solver"]  # of a question
SAME = ["prediction", "stop_reason", "llm_calls", "tool_calls", "input_tokens", "output_tokens"]


def role_of(request: dict[str, Any]) -> str:
    last = str(request["messages"][-1]["content"])
    if str(request["messages"][0]["content"]).startswith("Write one Python program"):
        return "planner"
    return "solver" if "Output:\n" in last else next(name for name in CALLS if f"{name}?" in last)


def reply(request: dict[str, Any]) -> str:
    role = role_of(request)
    return PROGRAM if role == "planner" else f"Answer: the {role}"


def asked(server: ModelServer) -> Counter[str]:
    return Counter(role_of(dict(entry.request)) for entry in server.books)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [{"id": f"q{n}", "question": f"Which river, {n}?", "answers": ["the solver"]} for n in range(2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "passages.jsonl").write_text(json.dumps({"title": "Kyiv", "text": "Kyiv lies on the Dnieper."}))
    return path


def arguments(server: ModelServer, questions: Path, out: str) -> list[object]:
    corpus = questions.with_name("passages.jsonl")
    model = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1)
    return ["--arch", "rewoo-code", "--dataset", questions, "--corpus", corpus, *model, "--no-report", "--out", out]


def calls_of(folder: str) -> pd.DataFrame:
    calls = pd.read_parquet(Path(folder) / "calls.parquet")
    return calls[["example_id", "kind", "name", "place", "status", "input_tokens"]].sort_values(
        ["example_id", "kind", "place", "input_tokens"], ignore_index=True
    )


def test_a_cap_in_the_middle_of_a_program_is_a_place_to_go_on_from(questions: Path) -> None:
    with ModelServer(reply) as server:
        assert quiet(*arguments(server, questions, "unbroken")) == 0
    assert asked(server) == dict.fromkeys(CALLS, 2)
    whole = int(load("unbroken")["billed_tokens"].sum())
    stops = 0
    with ModelServer(reply) as server:
        code = quiet(*arguments(server, questions, "capped"), "--run-tokens", 1)
        for cap in range(whole // 20, 2 * whole, whole // 20):
            stops += code == 3
            code = quiet("--resume", "capped", "--run-tokens", cap)
            assert code in (0, 3)
    assert code == 0
    assert stops > 8  # in programs, too: a question's planner and solver are four of its fourteen calls
    assert asked(server) == dict.fromkeys(CALLS, 2)
    assert load("capped")["billed_tokens"].sum() == whole
    pd.testing.assert_frame_equal(load("capped")[SAME], load("unbroken")[SAME])
    pd.testing.assert_frame_equal(calls_of("capped"), calls_of("unbroken"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_kill_in_the_middle_of_a_program_leaves_no_worker_and_pays_for_what_was_in_flight_alone(
    questions: Path,
) -> None:
    with ModelServer(reply, latency_s=0.3) as server:
        running = start(*arguments(server, questions, "broken"), "-n", 1, "--no-progress", env={"OPENAI_API_KEY": "x"})
        deadline = time.monotonic() + 60
        while "River 2" not in asked(server) and time.monotonic() < deadline:
            time.sleep(0.01)
        workers = under(running.pid)
        running.kill()
        running.communicate()
        assert running.returncode == -signal.SIGKILL
        assert asked(server) == dict.fromkeys(CALLS[:4], 1)
        assert workers
        while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline + 10:
            time.sleep(0.05)
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        assert quiet("--resume", "broken") == 0
    assert asked(server) == {**dict.fromkeys(CALLS, 1), "River 2": 2}
    [row] = load("broken").to_dict("records")
    assert (row["prediction"], row["llm_calls"], row["tool_calls"]) == ("the solver", 7, 6)
