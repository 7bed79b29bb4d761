"""The command as a user gives it: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_runs import hosted, quiet, run
from model_server import ModelServer, ServerFault

from rewoo_bench.cli.main import group, main
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

ASKED = ("--arch", "direct,cot", "-n", 3, "--model", "openai/test")
FILES = ["calls.parquet", "journal.sqlite", "questions.parquet", "report.html", "run.json", "run.lock", "traces.jsonl"]


def accuracy(out: str) -> list[dict[str, str]]:
    """The first table that a run prints: a row an architecture, by the names of its columns."""
    table = out.partition("means per question [95% interval]\n\n")[2].split("\n\n")[0]
    head, *lines = [re.split(r"\s{2,}", line) for line in table.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_a_run_writes_its_folder_and_prints_its_table(
    server: ModelServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(*ASKED, "--api-base", server.api_base, "--no-progress", "--out", "here") == 0
    out, err = capfd.readouterr()
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == FILES
    assert "sample, openai/test: means per question [95% interval]\n" in out
    assert [row["architecture"] for row in accuracy(out)] == ["direct", "cot"]
    assert [(row["n"], row["answered"]) for row in accuracy(out)] == [("3", "3")] * 2
    assert "At gpt-5-mini's prices" in out  # an example: the model's own aren't known
    assert out.endswith("here\n")
    assert err == ""
    frame = load(tmp_path / "here")
    assert (len(frame), frame["total_tokens"].sum()) == (6, server.totals().total_tokens)


def test_the_manifest_says_what_was_run(server: ModelServer, tmp_path: Path) -> None:
    hosted(server, "--out", "here", "--seed", 5)
    manifest = json.loads((tmp_path / "here" / "run.json").read_text())
    assert (manifest["status"], manifest["rows"], manifest["dataset"]["seed"]) == ("done", 6, 5)
    assert manifest["dataset"]["ids_hash"] == load_dataset_examples("sample", limit=3, seed=5).ids_hash
    assert [each["name"] for each in manifest["architectures"]] == ["direct", "cot"]
    assert manifest["models"]["default"]["name"] == "openai/test"
    assert manifest["run_id"] == load(tmp_path / "here")["run_id"].iloc[0]
    assert manifest["environment"]["packages"]["litellm"]


def test_a_run_without_a_folder_gets_one_of_its_own(server: ModelServer, tmp_path: Path) -> None:
    assert run(*ASKED, "--api-base", server.api_base) == 0
    (folder,) = (tmp_path / "results" / "local").iterdir()
    assert folder.name.split("-", 2)[2].startswith("direct+cot-")
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_json_is_all_that_is_printed(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert hosted(server, "--json", "--out", "here") == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["folder"], told["status"], told["reason"]) == ("here", "done", None)
    assert [each["architecture"] for each in told["summary"]] == ["direct", "cot"]
    assert told["summary"][0]["cost_usd"] is None
    assert told["summary"][0]["exact_match"]["n"] == 3


def test_a_judge_that_its_provider_failed_is_asked_again_and_nothing_else_is(
    capfd: pytest.CaptureFixture[str],
) -> None:
    down = True

    def reply(request: dict[str, Any]) -> str | ServerFault:
        if request["model"] == "judge":
            return ServerFault(status=503, message="the judge is out") if down else "yes"
        return "Answer: Neva"

    with ModelServer(reply) as server:
        judged = ("--judge-model", "openai/judge", "--max-retries", 0, "--out", "here")
        assert hosted(server, *judged) == 3
        told = capfd.readouterr().err
        assert "gave no verdict on 6 of 6 answers: most common error: " in told
        assert "the judge is out" in told
        assert "0 of 6 answers finished; continue with the rest, failed ones included:" in told
        down = False
        assert quiet("--resume", "here") == 0
        assert [entry.request["model"] for entry in server.books].count("test") == 6
    assert load("here")["judged_correct"].all()


def test_tools_that_fail_on_purpose_fail_for_every_architecture() -> None:
    turns = ["Thought: a\nAction: Search[Kyiv]", "Thought: b\nAction: Finish[Neva]"]

    def reply(request: dict[str, Any]) -> str:
        text = json.dumps(request["messages"])
        if "Make a plan" in text:
            return "#E1 = Search[Kyiv]"
        return turns["No results." in text] if "in turns of a thought" in text else "Answer: Neva"

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", "rewoo,react", "-n", 3, *hosted, "--tool-failure-rate", 1, "--out", "here") == 0
    calls = pd.read_parquet("here/calls.parquet")
    tools = calls[calls["kind"] == "tool"]
    assert set(tools["architecture"]) == {"rewoo", "react"}
    assert (tools["status"] == "empty").all()


def test_list_names_the_agents_of_other_frameworks_with_their_folders(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["list", "--agents"])
    assert not ended.value.code
    lines = [line.strip() for line in capfd.readouterr().out.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("smolagents "))
    assert load_architecture(lines[at + 1], style="multihop").name == "smolagents"


def test_a_fault_of_ours_has_an_exit_code_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    @group.command(name="broken")
    def broken() -> None:
        raise ZeroDivisionError

    try:
        with pytest.raises(SystemExit) as ended:
            main(["broken"])
    finally:
        del group.commands["broken"]
    assert ended.value.code == 70  # 1 says that a gate failed
    assert "ZeroDivisionError" in capfd.readouterr().err
