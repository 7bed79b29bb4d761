"""A study over HTTP: its runs grow question by question, and an end at any point loses and pays for nothing twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any
from zlib import crc32

import pytest
from model_server import ModelServer, ServerFault

from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.text.words import counted

STUDY = """
[study]
question = "Which is cheaper?"
settings.api_base = "{address}"
settings.max_retries = 0

[models]
hosted.model = "openai/mine"
other.model = "oracle"

[datasets]
sample.dataset = "sample"
chain.dataset = "chain?hops=2"

[[cells]]
name = "main"
models = ["hosted"]
datasets = ["sample", "chain"]
architectures = ["direct", "cot"]
n = 6
conditions.temperature = [{temperatures}]

[[outcomes]]
name = "tokens"
cells = "main"
architectures = ["cot", "direct"]
measure = "total_tokens"
statistic = "ratio"
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda request: "Answer: Paris") as running:
        yield running


def written(folder: Path, server: ModelServer, temperatures: str = "0.0", **changes: str) -> Path:
    text = STUDY.replace("{address}", server.api_base).replace("{temperatures}", temperatures)
    for old, new in changes.items():
        text = text.replace(old.replace("_", " "), new)
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def study(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["study", *map(str, arguments)])
    return int(ended.value.code or 0)


def temperatures_asked(server: ModelServer) -> list[float]:
    return [entry.request["temperature"] for entry in server.books]


def test_the_runs_take_turns(tmp_path: Path, server: ModelServer) -> None:
    file = written(tmp_path, server, "0.0, 0.5")
    assert study("run", file, "--out", tmp_path / "runs", "--block", 1, "-n", 3) == 0
    asked = temperatures_asked(server)
    assert len(asked) == 4 * 3 * 2
    for round_ in range(3):  # of four runs, each with a question of two architectures
        assert Counter(asked[8 * round_ : 8 * round_ + 8]) == {0.0: 4, 0.5: 4}
    rows = load(*(tmp_path / "runs").iterdir())
    assert Counter(rows["run_folder"]) == {path.name: 6 for path in (tmp_path / "runs").iterdir()}


def test_more_questions_go_on_from_what_is_there(tmp_path: Path, server: ModelServer) -> None:
    file = written(tmp_path, server)
    assert study("run", file, "--out", tmp_path / "runs", "-n", 2) == 0
    first = load(tmp_path / "runs/main-sample-hosted-temperature=0.0")
    assert study("run", file, "--out", tmp_path / "runs") == 0
    assert study("run", file, "--out", tmp_path / "runs") == 0
    assert len(server.books) == 2 * 6 * 2  # each question once
    later = load(tmp_path / "runs/main-sample-hosted-temperature=0.0")
    assert set(first["example_id"]) < set(later["example_id"])
    assert later["example_id"].nunique() == 6
    manifest = json.loads((tmp_path / "runs/main-sample-hosted-temperature=0.0/run.json").read_text())
    assert manifest["study"]["cell"] == "main-sample-hosted-temperature=0.0"
    assert len(manifest["sessions"]) == 1  # the second command; the third had nothing to ask


def test_a_run_that_was_begun_with_other_settings_is_stale_and_the_others_go_on(
    tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, server)
    assert study("run", file, "--out", tmp_path / "runs", "-n", 1) == 0
    text = file.read_text().replace('chain.dataset = "chain?hops=2"', 'chain = { dataset = "chain?hops=2", seed = 5 }')
    file.write_text(text)
    assert study("run", file, "--out", tmp_path / "runs", "-n", 2) == 3
    assert (
        "main-chain-hosted-temperature=0.0: --seed was 0 in this run: take that back in the file, or give the cell "
        "another name\n"
    ) in capsys.readouterr().err
    assert len(load(tmp_path / "runs/main-sample-hosted-temperature=0.0")) == 4
    assert len(load(tmp_path / "runs/main-chain-hosted-temperature=0.0")) == 2
    assert study("status", file, "--out", tmp_path / "runs") == 0
    said = capsys.readouterr().out
    assert "stale: main-chain-hosted-temperature=0.0: --seed was 0 in this run" in said
    assert "stale: main-sample" not in said
    assert "exploratory: main-sample-hosted-temperature=0.0: begun before the study was changed" in said


def test_status_counts_what_is_left(tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, server)
    assert study("status", file, "--out", tmp_path / "runs", "--json") == 0
    assert [(row["asked"], row["wanted"], row["calls_left"], row["hours_left"]) for row in _printed(capsys)] == [
        (0, 6, 12.0, None),
        (0, 6, 12.0, None),
    ]
    assert study("run", file, "--out", tmp_path / "runs", "-n", 4) == 0
    capsys.readouterr()
    assert study("status", file, "--out", tmp_path / "runs", "--json") == 0
    for row in _printed(capsys):
        assert (row["asked"], row["wanted"], row["calls_left"]) == (4, 6, 4.0)
        seconds = load(tmp_path / "runs" / str(row["cell"]))["latency_s"].mean()
        assert row["hours_left"] == pytest.approx(4 * seconds / 3600)
    for n, wanted, left in ((5, 5, 2.0), (3, 4, 0.0)):  # a run has more than the latter
        assert study("status", file, "--out", tmp_path / "runs", "-n", n, "--json") == 0
        found = [(row["asked"], row["wanted"], row["calls_left"], row["exploratory"]) for row in _printed(capsys)]
        assert found == [(4, wanted, left, None)] * 2
    assert not server.books[16:]


def test_status_adds_up_what_is_known(tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, server)
    assert study("status", file, "--out", tmp_path / "runs") == 0
    lacking = "2 of 2 runs lack questions: 24 calls"
    assert lacking in capsys.readouterr().out.splitlines()
    price = "models.hosted.price=input=1.00,output=2.00"
    assert study("run", file, "--out", tmp_path / "runs", "-n", 1, "--set", price) == 0
    capsys.readouterr()
    assert study("status", file, "--out", tmp_path / "runs", "--set", price) == 0
    total = next(line for line in capsys.readouterr().out.splitlines() if " lack questions" in line)
    assert re.fullmatch(r"2 of 2 runs lack questions: 20 calls, 0.0 hours one after the other, \d.\d\d dollars", total)


def test_a_limit_for_all_runs_together_holds_over_sessions(
    tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    price = ("--set", "models.hosted.price=input=100,output=1000")

    def paid() -> float:
        used = server.totals()
        return (100 * used.input_tokens + 1000 * used.output_tokens) / 1e6

    file = written(tmp_path, server)
    assert study("run", file, "--out", tmp_path / "runs", "-n", 1, *price) == 0  # four calls, of 24
    first = paid()
    limit = round(2.5 * first, 4)
    arguments = ("run", file, "--out", tmp_path / "runs", *price)
    capsys.readouterr()
    assert study(*arguments, "--study-cost", limit, "--block", 1) == 3
    said = capsys.readouterr().err
    assert said.count("unfinished: main-") == 2
    assert f"of {limit:g} USD (--study-cost)" in said
    assert limit <= paid() < limit + first / 2  # a call of each run may end beyond it
    asked = len(server.books)
    reached = [len(load(tmp_path / f"runs/main-{name}-hosted-temperature=0.0")) for name in ("sample", "chain")]
    assert min(reached) > 2
    assert max(reached) - min(reached) <= 3  # balanced, as without a limit: a question has two rows
    assert study(*arguments, "--study-cost", limit, "--datasets", "chain") == 3  # the other run's cost counts
    assert len(server.books) == asked
    assert study(*arguments, "--study-cost", 100 * limit) == 0
    assert len(server.books) == 24
    assert study("run", file, "--out", tmp_path / "without", "--study-cost", 5) == 3
    assert "--study-cost 5: the price of 'openai/mine' at --api-base isn't known" in capsys.readouterr().err
    assert len(server.books) == 24


def test_a_limit_of_the_study_binds_no_later_session(tmp_path: Path, server: ModelServer) -> None:
    file = written(tmp_path, server)
    price = ("--set", "models.hosted.price=input=100,output=1000")
    arguments = ("run", file, "--out", tmp_path / "runs", "--datasets", "sample", *price)
    assert study(*arguments, "--study-cost", 0.001) == 3  # the first call ends it
    run = tmp_path / "runs/main-sample-hosted-temperature=0.0"
    assert read_manifest(run).options["run_cost"] is None  # as declared
    assert study(*arguments) == 0


def test_status_says_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        return "Answer: Paris" if crc32(str(request["messages"]).encode()) % 5 else ServerFault("status")

    with ModelServer(reply) as failing:
        file = written(tmp_path, failing)
        assert study("run", file, "--out", tmp_path / "runs") == 3
        capsys.readouterr()
        assert study("status", file, "--out", tmp_path / "runs") == 0
    said = capsys.readouterr().out
    for run in ("main-sample-hosted-temperature=0.0", "main-chain-hosted-temperature=0.0"):
        rows = load(tmp_path / "runs" / run)
        failed = int((rows["stop_reason"] != "answered").sum())
        assert failed > 0
        assert f"failed: {run}: {counted(failed, 'answer')}; most common error: " in said


def asked_of_each(server: ModelServer, questions: list[str]) -> list[int]:
    prompts = [json.dumps(entry.request["messages"], ensure_ascii=False) for entry in server.books]
    return [
        sum(json.dumps(question, ensure_ascii=False)[1:-1] in prompt for prompt in prompts) for question in questions
    ]


def test_a_question_that_is_always_refused_holds_no_other_up_and_is_asked_again_at_the_end(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        asked = json.dumps(request["messages"], ensure_ascii=False)
        return ServerFault("status", status=400, message="content filter") if refused in asked else "Answer: Paris"

    run = "main-sample-hosted-temperature=0.0"
    refused = "no question"
    with ModelServer(reply) as server:
        file = written(tmp_path, server)
        assert study("run", file, "--out", tmp_path / "first") == 0
        questions = list(load(tmp_path / "first" / run)["question"].unique())
        refused = questions[1]
        for session in (1, 2):
            server.books.clear()
            assert study("run", file, "--out", tmp_path / "runs", "--block", 1, "--datasets", "sample") == 3
            first = 2 if session == 1 else 0  # of two architectures
            assert asked_of_each(server, questions) == [first + 2 if each == refused else first for each in questions]
        refused = "no question"
        assert study("run", file, "--out", tmp_path / "runs", "--block", 1, "--datasets", "sample") == 0
    assert set(load(tmp_path / "runs" / run)["stop_reason"]) == {"answered"}


def test_an_outage_leaves_a_run_to_a_later_session_after_three_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        return "Answer: Paris" if len(failing.books) < 4 else ServerFault("status", status=503)

    with ModelServer(reply) as failing:
        file = written(tmp_path, failing)
        assert study("run", file, "--out", tmp_path / "runs", "--block", 1, "--datasets", "sample") == 3
        assert len(failing.books) == 2 * (2 + 3)
    said = capsys.readouterr().err
    assert "unfinished: main-sample-hosted-temperature=0.0: 6 of 10 answers failed" in said


def test_a_page_says_how_many_questions_a_figure_is_of_and_whether_tokens_are_estimated(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        number = crc32(str(request["messages"]).encode()) % 5
        fault = ServerFault("status") if number == 0 else ServerFault("no_usage", message="Answer: Paris")
        return fault if number < 2 else "Answer: Paris"

    with ModelServer(reply) as server:
        file = written(tmp_path, server)
        text = file.read_text().replace('["direct", "cot"]', '["direct", "react", "rewoo"]')
        file.write_text(text.replace('["cot", "direct"]', '["react", "rewoo"]'))
        assert study("run", file, "--out", tmp_path / "runs", "--datasets", "sample") == 3
    assert study("publish", file, "--out", tmp_path / "runs", "--to", tmp_path / "page") == 0
    rows = load(tmp_path / "runs/main-sample-hosted-temperature=0.0")
    failed = rows[rows["stop_reason"] == "error"]["example_id"].nunique()
    both = rows[rows["architecture"].isin(["react", "rewoo"])]
    known = 6 - both[both["stop_reason"] == "error"]["example_id"].nunique()
    assert failed > 0
    assert 0 < known < 6
    page = (tmp_path / "page/README.md").read_text("utf-8")
    assert f"(n = {known} of 6)" in page
    assert "Tokens are estimated, in part or all, in main-sample-hosted-temperature=0.0" in page
    assert "| main-chain-hosted-temperature=0.0 | 0 | 6 | not run |" in page


def test_the_questions_of_a_killed_round_are_asked_to_their_end(tmp_path: Path, server: ModelServer) -> None:
    file = written(tmp_path, server)
    folder = tmp_path / "runs/main-sample-hosted-temperature=0.0"
    assert study("run", file, "--out", tmp_path / "runs", "--datasets", "sample", "-n", 4) == 0
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**manifest, "status": "running", "rows": None}))  # as a kill leaves it
    for n in (2, 4):
        assert study("run", file, "--out", tmp_path / "runs", "--datasets", "sample", "-n", n) == 0
        assert len(server.books) == 4 * 2


def test_status_of_data_that_isnt_here_is_a_line_beside_the_other_runs(
    tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, server)
    file.write_text(file.read_text().replace('"chain?hops=2"', '"hotpotqa=nowhere.json"'))
    assert study("status", file, "--out", tmp_path / "runs") == 0
    said = capsys.readouterr().out
    assert re.search(r"^main-sample-hosted-temperature=0.0\n +0 of 6 +12 +not begun +no price$", said, re.MULTILINE)
    assert "can't be asked here: main-chain-hosted-temperature=0.0: " in said
    assert "nowhere.json" in said


def _printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@pytest.mark.by_day(1)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_is_ended_goes_on_and_asks_nothing_twice(how: signal.Signals, tmp_path: Path) -> None:
    with ModelServer(lambda request: "Answer: Paris", latency_s=0.05) as server:
        file = written(tmp_path, server, "0.0, 0.5")
        command = [sys.executable, "-m", "rewoo_bench", "study", "run", str(file), "--out", str(tmp_path / "runs")]
        for reached in (9, 25):
            process = subprocess.Popen(
                [*command, "--block", "1"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)
            )
            while len(server.books) < reached:
                assert process.poll() is None, process.communicate()
                sleep(0.01)
            process.send_signal(how)
            process.communicate(timeout=60)
            assert process.returncode in ((3, 130) if how is signal.SIGINT else (-9,))  # 130: between two rounds
        assert study("run", file, "--out", tmp_path / "runs") == 0
    asked = Counter(json.dumps([entry.request["messages"], entry.request["temperature"]]) for entry in server.books)
    assert len(asked) == 4 * 6 * 2
    again = sum(asked.values()) - len(asked)
    assert again <= (0 if how is signal.SIGINT else 2 * 2)  # of a killed process, the calls in flight
    for folder in (tmp_path / "runs").iterdir():
        rows = load(folder)
        assert len(rows) == 12
        assert not rows[["example_id", "architecture"]].duplicated().any()


def test_a_model_that_isnt_there_and_a_damaged_folder_leave_the_other_runs_alone(
    tmp_path: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, server)
    address = f'settings.api_base = "{server.api_base}"'
    text = file.read_text().replace(address, "").replace('other.model = "oracle"', 'gone.model = "local/nowhere.gguf"')
    text = text.replace("[datasets]", address.replace("settings", "hosted") + "\n\n[datasets]")
    file.write_text(text.replace('models = ["hosted"]', 'models = ["gone", "hosted"]'))
    damaged = tmp_path / "runs/main-chain-hosted-temperature=0.0/run.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    assert study("run", file, "--out", tmp_path / "runs", "-n", 2) == 3
    assert len(server.books) == 2 * 2
    said = capsys.readouterr().err
    for name, fault in (("main-sample-gone", "can't read the model file"), ("main-chain-hosted", "not valid JSON")):
        assert [line for line in said.splitlines() if line.startswith(f"unfinished: {name}") and fault in line]
    assert damaged.read_text() == "{"
    assert study("status", file, "--out", tmp_path / "runs") == 0
    assert "stale: main-chain-hosted-temperature=0.0: " in capsys.readouterr().out


def test_only_the_runs_of_a_data_set_are_asked(
    server: ModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, server)
    runs = tmp_path / "runs"
    assert study("run", file, "--out", runs, "--datasets", "chain", "-n", 1) == 0
    assert [path.name for path in runs.iterdir()] == ["main-chain-hosted-temperature=0.0"]
    capsys.readouterr()
    assert study("status", file, "--out", runs, "--datasets", "chian") == 2
    assert "--datasets: unknown name 'chian', did you mean 'chain'?" in capsys.readouterr().err
