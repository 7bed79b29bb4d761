"""Agents as programs and workers that misbehave: each is one clear row or one line, and none outlives its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering import KEY
from command_runs import quiet, start
from dialect_server import DialectServer
from gateway_runs import check_books, rows, run_agents, traces, write_agent, write_program, write_questions

from rewoo_bench import compare
from rewoo_bench.runs.manifest import read_manifest

pytestmark = pytest.mark.usefixtures("own_folder")
SHORT = ("--no-progress", "--no-report")

ASK = """
import json, os, urllib.request

def ask(text, base_url=os.environ.get("OPENAI_BASE_URL", ""), key=os.environ.get("OPENAI_API_KEY", "")):
    body = {"model": os.environ.get("REWOO_BENCH_MODEL", "x"), "messages": [{"role": "user", "content": text}]}
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    request = urllib.request.Request(base_url + "/chat/completions", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""
WORKER = (
    ASK
    + """
import sys, threading

def answer(task):
    said = ask(task["question"], task["base_url"], task["api_key"])
    sys.stdout.write(json.dumps({"id": task["id"], "answer": said}) + "\\n")  # in one piece, unlike print's
    sys.stdout.flush()

for number, line in enumerate(sys.stdin):
    task = json.loads(line)
    DIES
    threading.Thread(target=answer, args=(task,)).start()
"""
)
PROGRAMS = {
    "raises": ("raise ValueError('no idea')", "agent_failed", "the agent ended with exit code 1: ValueError: no idea"),
    "exits": ("import sys; sys.exit(3)", "agent_failed", "the agent ended with exit code 3"),
    "silent": ("pass", "empty_answer", "the agent gave no answer"),
    "waits": ("import time; time.sleep(60)", "time_limit", "no answer within 5 s"),
}


@pytest.fixture
def provider() -> Iterator[DialectServer]:
    with DialectServer() as provider:
        yield provider


def test_programs_that_fail_are_rows_with_the_reason(provider: DialectServer) -> None:
    agents = [write_program(name, text, timeout_s=5) for name, (text, *_) in PROGRAMS.items()]
    assert run_agents(provider, agents, questions=1) == 1
    found = {row.architecture: (row.stop_reason, row.error) for row in rows().itertuples()}
    assert found == {name: (reason, error) for name, (_, reason, error) in PROGRAMS.items()}
    assert any("Traceback" in trace["notes"]["stderr"] for trace in traces() if trace["architecture"] == "raises")


def test_the_import_of_a_worker_is_no_latency_of_its_first_questions(provider: DialectServer) -> None:
    worker = write_program("slow", "import time; time.sleep(5)\n" + WORKER.replace("DIES", ""), protocol="worker")
    assert run_agents(provider, [worker], "--concurrency", 2, questions=4) == 0
    startup_s = rows().sort_values("started_at").startup_s
    assert (startup_s[:2] > 4.9).all()
    assert (startup_s[2:] == 0).all()
    assert (rows().latency_s < 4.9).all()


def test_an_agent_that_failed_on_every_question_is_no_success(
    provider: DialectServer, capfd: pytest.CaptureFixture[str]
) -> None:
    agents = [write_agent("typo", command=["python", "no-such-file.py"]), write_program("works", "print('Neva')")]
    assert run_agents(provider, agents, "--no-report", questions=2) == 1
    (line,) = (line for line in capfd.readouterr().err.splitlines() if "most common error" in line)
    failed = "the agent 'typo' failed on all of its 2 questions; most common error: the agent ended with exit code 2: "
    assert line.startswith(failed)
    assert "no-such-file.py" in line
    assert read_manifest(Path("out")).status == "done"
    assert quiet("--resume", "out") == 1


def test_a_program_sees_its_own_keys_alone(provider: DialectServer) -> None:
    text = f"import os; print({KEY!r} in str(os.environ), os.environ['OPENAI_API_KEY'][:2])"
    assert run_agents(provider, [write_program("looks", text)], questions=1) == 1  # it asks no model
    assert list(rows().prediction) == ["False q-"]


def test_a_command_that_does_not_exist_is_one_line(provider: DialectServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_agents(provider, [write_agent("no-program", command=["no-such-program"])], questions=2) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "agent: can't start 'no-such-program': no such program" in line
    assert not Path("out").exists()


def test_a_worker_answers_several_questions_at_once(provider: DialectServer) -> None:
    agent = write_program("worker", WORKER.replace("DIES", ""), protocol="worker")
    assert run_agents(provider, [agent], "--concurrency", 8) == 0
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    check_books(provider)


def test_a_worker_that_dies_is_started_again(provider: DialectServer) -> None:
    dies = "if 'q02' in line: sys.exit('out of memory')"
    agent = write_program("worker", WORKER.replace("DIES", dies), protocol="worker")
    assert run_agents(provider, [agent], "--concurrency", 1, questions=5) == 0
    failed = rows()[rows().stop_reason != "answered"]
    assert list(failed.example_id) == ["q02"]
    assert list(failed.error) == ["the worker ended with exit code 1: out of memory"]


def test_a_worker_that_prints_garbage_is_a_row(provider: DialectServer) -> None:
    agent = write_program("worker", "input(); print('Loading …', flush=True); input()", protocol="worker")
    assert run_agents(provider, [agent], questions=1) == 1
    (error,) = rows().error
    assert error.startswith("the worker printed 'Loading …' on standard output, which is for JSON lines with an id")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_run_leaves_no_agent_behind_and_resumes_without_paying_twice() -> None:
    child = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)  # MARK'])\n"
    program = ASK + child.replace("MARK", str(Path.cwd())) + "ask('first ' + os.environ['REWOO_BENCH_QUESTION'])\n"
    program += f"print(ask('second ' + os.environ['REWOO_BENCH_QUESTION']))  # {Path.cwd()}\n"
    agent = write_program("two", program)
    with DialectServer() as provider:
        model = ("--model", "openai/gpt-x", "--api-base", provider.api_base, "--out", "out", *SHORT)
        asked = ("--arch", agent, "--dataset", write_questions(6), "--concurrency", 2)
        provider.fault = lambda entry, nth: "slow" if "second" in str(entry.body) else None
        process = start(*asked, *model)
        wait_until(lambda: sum(entry.status == 200 for entry in provider.books) >= 5)
        assert agents_of(Path.cwd())
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        wait_until(lambda: not agents_of(Path.cwd()), 5)
        provider.fault = lambda entry, nth: None
        resumed = start("--resume", "out", *SHORT)
        resumed.communicate(timeout=60)
        assert resumed.returncode == 0
        assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
        assert set(rows().llm_calls) == {2}
        first = [entry for entry in provider.books if "first" in str(entry.body)]
        assert len(first) <= len(rows()) + 2  # only what was in flight when it was killed is asked again
        assert not agents_of(Path.cwd())


DAEMON = """
import subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
for _ in range(2):
    subprocess.Popen(sleep, start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", ["print('Neva')", "import time; time.sleep(60)"])
def test_processes_that_left_their_group_end_with_their_question(provider: DialectServer, end: str) -> None:
    others = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], cwd=write_agent("other"))
    try:
        run_agents(provider, [write_program("leaves", DAEMON + end, timeout_s=2)], questions=2)
        assert agents_of(Path.cwd()) == [others.pid]
    finally:
        others.kill()
        others.wait()


def wait_until(is_so: object, seconds: float = 30.0) -> None:
    assert callable(is_so)
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def agents_of(folder: Path) -> list[int]:
    """The living processes that were started in a folder's agents, and their children."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            here = (process / "cwd").readlink()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if folder in here.parents and state != "Z":
            found.append(int(process.name))
    return found


def test_an_agent_that_gives_up_while_the_run_ends_is_asked_again() -> None:
    """Its second request is held back, since another agent's call is still open, and its own timeout is short."""
    impatient = "import time\ntry:\n    ask('first ' + os.environ['REWOO_BENCH_QUESTION'])\n    time.sleep(1)\n"
    impatient += (
        "    print(ask('second ' + os.environ['REWOO_BENCH_QUESTION']))\nexcept OSError:\n    print('gave up')\n"
    )
    agents = [
        write_program("impatient", ASK + impatient),
        write_program("patient", ASK + "print(ask('patient ' + os.environ['REWOO_BENCH_QUESTION']))"),
    ]
    with DialectServer(lambda entry, nth: "slow" if "patient" in str(entry.body) else None) as provider:
        provider.slow_s = 5.0
        names = [word for agent in agents for word in ("--arch", agent)]
        model = ("--model", "openai/gpt-x", "--api-base", provider.api_base, "--out", "out", *SHORT)
        process = start(*names, "--dataset", write_questions(1), "--concurrency", 2, *model)
        wait_until(lambda: any(entry.status == 200 and "first" in str(entry.body) for entry in provider.books))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert "impatient" not in set(rows().architecture)
        assert quiet("--resume", "out") == 0
        assert dict(zip(rows().architecture, rows().llm_calls, strict=True)) == {"impatient": 2, "patient": 1}
        assert "gave up" not in set(rows().prediction)
        assert len(provider.books) == 3


BYPASS = f"{ASK}print(ask(os.environ['REWOO_BENCH_QUESTION'], os.environ['ELSEWHERE'], 'none'))"


def test_an_agent_that_bypasses_the_gateway_is_in_no_ratio_and_the_run_says_so(
    provider: DialectServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with DialectServer() as elsewhere:
        env = {"ELSEWHERE": elsewhere.api_base}
        agents = [write_program("mine", BYPASS, env=env), write_program("fair", f"{ASK}print(ask(input()))")]
        assert run_agents(provider, agents, questions=4) == 0
    found = rows().set_index("architecture")
    assert [list(flags) for flags in found["flags"]["mine"]] == [["unmetered"]] * 4
    assert [list(flags) for flags in found["flags"]["fair"]] == [[]] * 4
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "unmetered" in line]
    assert line.startswith("mine answered without a metered model call")
    assert line.endswith("4 of 4 rows")
    comparison = compare(rows(), baseline="fair")
    assert comparison.pairs[0].figures == ()
    assert comparison.systems[0].summary.unmetered == 4
    assert comparison.warnings == (line,)


REMEMBERS = (
    ASK
    + """
import sys
kept = {}
for line in sys.stdin:
    task = json.loads(line)
    if task["question"] not in kept:
        kept[task["question"]] = ask(task["question"], task["base_url"], task["api_key"])
    print(json.dumps({"id": task["id"], "answer": kept[task["question"]]}), flush=True)
"""
)


def test_a_worker_that_remembers_is_flagged(provider: DialectServer, capfd: pytest.CaptureFixture[str]) -> None:
    worker = write_program("keeps", REMEMBERS, protocol="worker")
    assert run_agents(provider, [worker], "--trials", 2, "--concurrency", 1, questions=3) == 0
    found = rows().sort_values(["trial", "started_at"])["flags"]
    assert [sorted(each) for each in found] == [*[[]] * 3, *[["no_call", "unmetered"]] * 3]
    assert "(no_call): 3 of 6 rows" in capfd.readouterr().err


def test_one_script_runs_twice_with_other_settings(provider: DialectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMTH", "1")
    Path("a.py").write_text(f"{ASK}ask(input()); print(os.environ['TEMPERATURE'])")
    both = ("--agent", "cold=TEMPERATURE=0 python a.py", "--agent", "warm=TEMPERATURE=$WARMTH python a.py")
    assert run_agents(provider, [], *both, questions=1) == 0
    assert dict(zip(rows().architecture, rows().prediction, strict=True)) == {"cold": "0", "warm": "1"}


def test_what_an_agent_did_before_a_limit_is_kept(provider: DialectServer) -> None:
    search = (
        'import urllib.request as u; u.urlopen(u.Request(os.environ["REWOO_BENCH_TOOLS_URL"] + "/Search", '
        """b'{"query": "Kyiv"}', {"Content-Type": "application/json"}))"""
    )
    text = (
        f"{ASK}{search}\nimport sys; print('I looked', file=sys.stderr, flush=True)\nwhile True: ask(str(id(object())))"
    )
    assert run_agents(provider, [write_program("busy", text)], "--question-tokens", 300, questions=1) in (0, 1)
    ((trace, row),) = zip(traces(), rows().itertuples(), strict=True)
    assert row.stop_reason == "token_limit"
    assert [step["tool"] for step in trace["steps"]] == ["Search"]
    assert "I looked" in trace["notes"]["stderr"]


def test_the_end_of_a_process_after_its_answer_is_no_latency_but_work_is(provider: DialectServer) -> None:
    ends = write_program("ends", f"{ASK}print(ask(input()), flush=True)\nimport time; time.sleep(5)")
    works = write_program("works", f"{ASK}print(ask(input()), flush=True)\nimport time; time.sleep(5); ask('on')")
    assert run_agents(provider, [ends, works], questions=1) == 0
    latency_s = rows().set_index("architecture").latency_s
    assert latency_s["ends"] < 4.9 < latency_s["works"]


def test_an_agent_whose_own_request_was_refused_has_failed() -> None:
    with DialectServer(lambda entry, nth: "bad option" if "q00" in entry.names else None) as provider:
        drops = write_program("drops", f"{ASK}print(ask(input()))")
        assert run_agents(provider, [drops], questions=2) == 0
    found = rows().set_index("example_id")
    assert dict(found.stop_reason) == {"q00": "agent_failed", "q01": "answered"}
    assert found.exact_match["q00"] == 0
    assert "stream_options" in found.error["q00"]
