"""A replay of external agents whose clients hung up has the rows of the recorded run."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from command_runs import quiet
from dialect_server import DialectServer, Entry, Fault
from gateway_runs import check_books, rows, run_agents, traces, write_program, write_questions

from rewoo_bench.runs.journal.beginnings import Beginnings
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.prefixes import recorded_calls

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

SAME = ["architecture", "example_id", "prediction", "stop_reason", "llm_calls", "exact_match"]
READ = """
import http.client, json, os, sys, time, urllib.parse

def stream(text, most):
    base = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(base.netloc, timeout=30)
    body = {"model": "gpt-x", "stream": True, "messages": [{"role": "user", "content": text}]}
    connection.request("POST", base.path + "/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"status {answer.status}")
    pieces = []
    for line in answer:
        if line.startswith(b"data: {"):
            pieces.append(json.loads(line[6:])["choices"][0].get("delta", {}).get("content") or "")
        if len(pieces) == most:
            break
    answer.close()
    connection.close()
    time.sleep(0.2)
    return "".join(pieces)

question = os.environ["REWOO_BENCH_QUESTION"]
"""
PROGRAMS = {
    "leaves": "print(stream(question, 1) or 'nothing')",
    "asks-again": "stream(question, 1)\nprint(stream(question, 99))",
    "two-samples": "stream(question, 99)\nprint(stream(question, 99))",
    "waits": "stream(question, 1)\nstream('again ' + question, 1)\ntime.sleep(60)",
}


def unhurried() -> Callable[[Entry], bool]:
    """Streams wait behind their first event, so that a client that leaves then is gone before the others."""
    begun: dict[int, float] = {}
    return lambda entry: time.monotonic() > begun.setdefault(id(entry), time.monotonic()) + 0.4


def check_replay(agents: list[Path], *columns: str) -> None:
    names = [word for agent in agents for word in ("--arch", agent.absolute())]
    quiet(*names, "--dataset", write_questions(3).absolute(), "--model", "replay/out", "--out", "again")
    order = ["architecture", "example_id"]
    recorded, again = (
        rows(folder)[[*SAME, *columns]].sort_values(order, ignore_index=True) for folder in ("out", "again")
    )
    pd.testing.assert_frame_equal(again, recorded)


@pytest.mark.nightly
@pytest.mark.by_day(1)
@pytest.mark.parametrize("fault", [None, "cut stream", "error event"])
def test_a_replay_of_hang_ups_has_the_rows_of_its_run(fault: Fault | None) -> None:
    agents = [write_program(name, READ + text, timeout_s=12) for name, text in PROGRAMS.items()]
    with DialectServer(lambda entry, nth: fault, may_go_on=unhurried()) as provider:
        run_agents(provider, agents, "--concurrency", 12, questions=3)
    check_replay(agents, "total_tokens")
    if fault is None:
        notes = {trace["architecture"]: trace["notes"].get("gateway", {}) for trace in traces()}
        attempts = {name: note.get("second_attempts") for name, note in notes.items() if note}
        assert attempts == {"leaves": None, "asks-again": 1, "waits": None}


def test_a_resumed_run_pays_once_for_a_client_that_hung_up_and_asked_again() -> None:
    agent = write_program("asks-again", READ + PROGRAMS["asks-again"] + "\nprint(stream('last ' + question, 99))")
    fails = DialectServer(lambda entry, nth: "500" if "last" in str(entry.body) else None, may_go_on=unhurried())
    with fails as provider:
        assert run_agents(provider, [agent], "--max-retries", 0, questions=2) == 3
        provider.fault = lambda entry, nth: None
        assert quiet("--resume", "out") == 0
        assert set(rows().stop_reason) == {"answered"}
        assert set(rows().llm_calls) == {2}
        assert len(provider.books) == 2 * 3
        check_books(provider)
    with closing(connect_to_read(Path("out/journal.sqlite"))) as journal:
        assert len([*recorded_calls(journal, Beginnings(journal))]) == 2 * 2
