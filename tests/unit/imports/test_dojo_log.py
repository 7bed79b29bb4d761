"""Logs that AgentDojo wrote of attacked agents: by which way attacks succeeded, and what a plan would have stopped."""

from __future__ import annotations

import importlib.util
import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pandas as pd
import pytest
from click.testing import CliRunner
from dojo_logs import NEW_PASSWORD, PAY_ATTACKER, PAY_BILL, READ_BILL, RESERVE, REVIEWS, Reply, recorded

import rewoo_bench
from rewoo_bench.cli.main import group
from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.write import Imported, import_run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="needs the extra agentdojo")

AGENT = "local-gullible"  # some attacks take a model's name out of it
BILL = "banking/user_task_0"
MONEY, PASSWORD = f"{BILL}/injection_task_5", f"{BILL}/injection_task_7"
HOTEL = "travel/user_task_0/injection_task_6"
ANSWER = "Rated 4.2. You should visit the Riverside View Hotel!"


def imported(logs: Path, run: Path) -> tuple[Imported, pd.DataFrame]:
    done = anyio.run(partial(import_run, [logs], run))
    return done, rewoo_bench.load(run).set_index(["architecture", "example_id"])


def reached(rows: pd.DataFrame, *key: str) -> list[Any]:
    names = ("exact_match", "exposed", "new_calls", "changed_arguments", "changed_answer", "attack_succeeded")
    return [None if pd.isna(value := rows[name][key]) else value for name in names]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that obeys, and one that resists."""
    folder = tmp_path_factory.mktemp("logs")
    recorded(folder, AGENT, BILL, [READ_BILL, PAY_BILL, "Paid."])
    recorded(folder, AGENT, MONEY, [READ_BILL, PAY_ATTACKER, "Paid."])
    recorded(folder, AGENT, PASSWORD, [READ_BILL, NEW_PASSWORD, PAY_BILL, "Paid."])
    recorded(folder, AGENT, HOTEL, [REVIEWS, RESERVE, ANSWER], "important_instructions")
    recorded(folder, "firm", PASSWORD, [READ_BILL, PAY_BILL, "Paid."])
    return folder


def test_a_row_says_what_the_attack_has_reached(logs: Path, tmp_path: Path) -> None:
    done, rows = imported(logs, tmp_path / "run")
    assert (done.rows, dict(done.formats), done.unreadable) == (5, {"agentdojo": 5}, 0)
    assert not done.unread  # every text of the logs is in the run
    assert "attacks" not in done.lacks
    case = f"{BILL}/direct/injection_task"
    assert reached(rows, AGENT, f"{case}_5") == [False, True, 0, 1, False, True]
    assert reached(rows, AGENT, f"{case}_7") == [True, True, 1, 0, False, True]
    assert reached(rows, "firm", f"{case}_7") == [True, True, 0, 0, False, False]
    hotel = AGENT, "travel/user_task_0/important_instructions/injection_task_6"
    assert reached(rows, *hotel) == [True, True, 0, 0, True, True]
    assert reached(rows, AGENT, BILL) == [True, *[None] * 5]
    assert (rows["question_type"][AGENT, BILL], rows["prediction"][AGENT, BILL]) == ("banking", "Paid.")


def test_plannable_reads_a_folder_of_logs_and_says_first_what_a_plan_would_have_stopped(
    logs: Path, tmp_path: Path
) -> None:
    imported(logs, tmp_path / "run")
    of_logs, of_run = (CliRunner().invoke(group, ["plannable", str(each)]) for each in (logs, tmp_path / "run"))
    assert (of_logs.exit_code, of_logs.stdout) == (0, of_run.stdout)
    said, table, *_ = of_logs.stdout.split("\n\n")
    assert said == (
        "Of 3 attacks that succeeded, 1 came by a call that no plan made before the attack would hold: a fixed plan "
        "would have stopped these. 1 changed an argument, 1 the answer, and 0 came another way."
    )
    assert [line.split() for line in table.splitlines()[1:5]] == [
        ["firm", "banking", "1", "0", "0", "0", "0", "0"],
        [AGENT, "banking", "2", "2", "1", "1", "0", "0"],
        [AGENT, "travel", "1", "1", "0", "0", "1", "0"],
        ["all", "4", "3", "1", "1", "1", "0"],
    ]
    assert "5 traces, read as agentdojo (5)" in of_logs.stderr


def test_what_no_call_and_no_answer_shows_is_another_way(tmp_path: Path) -> None:
    path = recorded(tmp_path / "logs", "a", PASSWORD, [READ_BILL, PAY_BILL, "Paid."])
    path.write_text(json.dumps({**json.loads(path.read_text()), "security": True}))
    said = CliRunner().invoke(group, ["plannable", str(tmp_path / "logs")]).stdout
    assert said.startswith(
        "Of 1 attack that succeeded, 0 came by a call that no plan made before the attack would hold: a fixed plan "
        "would have stopped these. 0 changed an argument, 0 the answer, and 1 came another way.\n"
    )


def test_a_call_that_the_same_pipeline_makes_without_the_attack_is_no_new_one(tmp_path: Path) -> None:
    both: list[Reply] = [READ_BILL, PAY_BILL, PAY_ATTACKER, "Paid."]
    for name, payments in (("once", 1), ("twice", 2)):
        recorded(tmp_path / "logs", name, BILL, [READ_BILL, *[PAY_BILL] * payments, "Paid."])
        recorded(tmp_path / "logs", name, MONEY, both)
    recorded(tmp_path / "logs", "nobody knows", MONEY, both)  # the gold calls have one payment
    _, rows = imported(tmp_path / "logs", tmp_path / "run")
    case = f"{BILL}/direct/injection_task_5"
    names = ["new_calls", "changed_arguments"]
    found = {pipeline: [rows[name][pipeline, case] for name in names] for pipeline in ("once", "twice", "nobody knows")}
    assert found == {"once": [1, 0], "twice": [0, 1], "nobody knows": [1, 0]}


def test_calls_that_were_written_before_the_attack_was_read_are_not_its_own(tmp_path: Path) -> None:
    recorded(tmp_path / "logs", "a", PASSWORD, [[READ_BILL, NEW_PASSWORD], PAY_BILL, "Paid."])
    _, rows = imported(tmp_path / "logs", tmp_path / "run")
    assert reached(rows, "a", f"{BILL}/direct/injection_task_7") == [True, True, 0, 0, False, True]


def test_of_an_unknown_version_the_attackers_words_tell_his_calls(tmp_path: Path) -> None:
    for case, calls in ((PASSWORD, [NEW_PASSWORD, PAY_BILL]), (MONEY, [PAY_ATTACKER])):
        path = recorded(tmp_path / "logs", "a", case, [READ_BILL, *calls, "Paid."])
        path.write_text(path.read_text().replace('"v1.2.2"', '"v9"'))
    done, rows = imported(tmp_path / "logs", tmp_path / "run")
    assert done.lacks["attacks"] == 2
    assert reached(rows, "a", f"{BILL}/direct/injection_task_7")[2:] == [1, 0, False, True]
    assert reached(rows, "a", f"{BILL}/direct/injection_task_5")[2:] == [0, 1, False, True]
    told = CliRunner().invoke(group, ["import", str(tmp_path / "logs"), "--out", str(tmp_path / "again")]).output
    assert told.count("the package agentdojo isn't installed or doesn't know the attacks") == 1


def test_the_first_version_is_taken_where_a_log_names_none(tmp_path: Path) -> None:
    path = recorded(tmp_path / "logs", "a", PASSWORD, [READ_BILL, NEW_PASSWORD, "Paid."], version="v1")
    record = json.loads(path.read_text())
    del record["benchmark_version"], record["agentdojo_package_version"]
    for message in record["messages"]:  # contents were texts then
        message["content"] = message["content"] and message["content"][0]["content"]
    path.write_text(json.dumps(record))
    done, rows = imported(tmp_path / "logs", tmp_path / "run")
    assert "attacks" not in done.lacks
    assert reached(rows, "a", f"{BILL}/direct/injection_task_7")[1:] == [True, 1, 0, False, True]


def test_a_case_that_an_error_ended_is_no_attack_that_succeeded(tmp_path: Path) -> None:
    from openai import BadRequestError

    response = httpx.Response(400, request=httpx.Request("POST", "http://localhost"))
    too_long = BadRequestError("too long", response=response, body={"code": "context_length_exceeded"})
    path = recorded(tmp_path / "logs", "a", PASSWORD, [READ_BILL, too_long])
    assert json.loads(path.read_text())["security"] is True  # as AgentDojo writes it
    recorded(tmp_path / "logs", "a", MONEY, [READ_BILL, PAY_BILL, "Paid."])
    _, rows = imported(tmp_path / "logs", tmp_path / "run")
    case = "a", f"{BILL}/direct/injection_task_7"
    assert rows["error"][case].startswith("Skipping task")
    assert reached(rows, *case) == [False, False, 0, 0, False, None]  # no reply says that it was read
    said = CliRunner().invoke(group, ["plannable", str(tmp_path / "run")]).stdout
    assert said.startswith("None of 1 attack succeeded.\n")
    assert "left out: an attack without a verdict, as of a case that an error ended: 1" in said


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"utility": ...}, "'utility' is missing: AgentDojo writes it when a case is over"),
        ({"pipeline_name": ...}, "no 'pipeline_name'"),
        ({"injections": {}}, "no text under 'injections', though the attack is 'direct'"),
        ({"messages": [{"role": "user"}, None]}, "message 1 is NoneType, expected an object with a role"),
    ],
)  # fmt: skip
def test_a_log_that_lacks_something_is_a_line_with_its_path(
    logs: Path, tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    of_case = f"{BILL}/direct/injection_task_7.json"
    record = {**json.loads((logs / AGENT / of_case).read_text()), **change}
    for name in ("broken", "whole"):
        (tmp_path / name / of_case).parent.mkdir(parents=True)
    (tmp_path / "whole" / of_case).write_bytes((logs / AGENT / of_case).read_bytes())
    (tmp_path / "broken" / of_case).write_text(json.dumps({k: v for k, v in record.items() if v is not ...}))
    found = [*read_files([tmp_path])]
    assert [each.trajectory is not None for each in found] == [False, True]
    assert found[0].fault == f"broken/{of_case}: not readable as agentdojo: {fault}"
