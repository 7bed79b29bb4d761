"""Commands that are refused or fail: a wrong value, flag or key is one line, and a fault says what it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from answering import KEY
from command_runs import hosted, quiet, run, start

from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.testing.server import ModelServer, ServerFault, ServerReply
from rewoo_bench.types import Usage

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--arch", "rewo"],
            "unknown architecture 'rewo', did you mean 'rewoo'? available: cot, direct, llmcompiler, plan-execute, ",
        ),
        (["--arch", " , "], "--arch: no architecture given"),
        (["--arch", "direct,direct"], "--arch: 'direct' twice; two folders need two names"),
        (["--dataset", "hotpot"], "unknown data set 'hotpot', did you mean 'hotpotqa'? available: "),
        (["--dataset", "gone.jsonl"], "no such data file or folder: 'gone.jsonl'"),
        (["--dataset", "empty.jsonl"], "empty.jsonl is empty"),
        (["--dataset", "cut.jsonl"], "cut.jsonl: not valid JSON, or cut off"),
        (["--corpus", "gone.jsonl"], "gone.jsonl: no such file; expected a corpus"),
        (["--corpus", "blank.jsonl"], "blank.jsonl: no passage with text"),
        (["--out", "used"], "--out: 'used' holds another run; choose a new folder"),
        (["--out", "empty.jsonl/run"], "--out: can't write into the folder 'empty.jsonl/run': Not a directory"),
        (["--model", "orcale"], "unknown model 'orcale', did you mean 'oracle': litellm knows no provider"),
        (["--arch", "copied"], "no such prompt file: copied/../rewoo/solver.txt; it is outside the folder: copy it"),
        (["--model", "nothing"], "unknown model 'nothing': litellm knows no provider of that name"),
        (["--model", "openai/x", "--api-base", "localhost:8000/v1"], "--api-base: 'localhost:8000/v1' is no address"),
        (
            ["--model", "local/smollm2-135m", "--llama-server", "no-such-server"],
            "--llama-server: 'no-such-server' can't be started",
        ),
        (["--model", "local/nope"], "unknown local model 'nope'; available: "),
        (["--model", "local/missing.gguf"], "can't read the model file 'missing.gguf': No such file or directory"),
        (["--model", "anthropic/claude-sonnet-4-5"], "needs an API key: set ANTHROPIC_API_KEY"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_is_one_line(
    arguments: Sequence[str],
    message: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "cut.jsonl").write_text('{"id": "1", "quest')
    (tmp_path / "blank.jsonl").write_text('{"title": "a", "text": " "}\n')
    (tmp_path / "used").mkdir()
    shutil.copytree(ROOT / "architectures" / "rewoo-json", tmp_path / "copied")
    (tmp_path / "used" / "run.json").write_text("{}")
    defaults = [] if "--arch" in arguments else ["--arch", "direct"]
    defaults += [] if "--model" in arguments else ["--model", "openai/test", "--api-base", "http://127.0.0.1:9/v1"]
    assert run(*defaults, *arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("rewoo-bench: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arch", "direct", "--timeout", "nan"], "--timeout nan: it should be a finite number"),
        ([], "Missing option '--arch'"),
        (["--arch", "direct", "--drop-param", ""], "expected the name of a parameter"),
        (["--arch", "direct", "--model", "oracle", "--api-base", "http://h/v1"], "--api-base: no model of this run"),
        (["--arch", "direct", "--model", "oracle", "--provider-cache"], "--provider-cache: no model of this run"),
        (["--arch", "direct", "--api-base", "http://h/v1"], "--api-base: no model of this run"),
        (["--arch", "direct", "--lmit", "3"], "No such option '--lmit'"),
        (["--arch", "direct", "-n", "0"], "--questions 0: it should be greater than or equal to 1"),
        (["--arch", "direct", "--concurrency", "many"], "Invalid value for '--concurrency': 'many' is not a valid"),
        (["--arch", "direct", "--temperature", "-1"], "--temperature -1.0: it should be greater than or equal to 0"),
        (["--arch", "direct", "--question-time", "0"], "--question-time 0.0: it should be greater than 0"),
        (
            ["--arch", "direct", "--fail-on-error", "1.5"],
            "--fail-on-error 1.5: it should be a count (0, 1, 2, …) or a fraction",
        ),
        (["--arch", "direct", "--fail-on-error", "inf"], "--fail-on-error inf: it should be a finite number"),
        (["--arch", "direct", "--prompt-form", "poem"], "'poem' is not one of 'auto', 'chat', 'completion'"),
        (["--arch", "direct", "--out", "file"], "Directory 'file' is a file"),
        (["--arch", "direct", "more"], "Got unexpected extra argument (more)"),
    ],
)
def test_a_wrong_flag_is_named(
    arguments: Sequence[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(*arguments) == 2
    _, err = capfd.readouterr()
    assert message in err
    assert err.startswith(("Usage: ", "rewoo-bench: "))
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "env", "message"),
    [
        (["--model", "openai/gpt-4o-mini"], {"OPENAI_API_KEY": None}, "needs an API key: set OPENAI_API_KEY"),
        (["--model", "openai/gpt-4o-mini"], {"OPENAI_API_KEY": ""}, "needs an API key: set OPENAI_API_KEY"),
        (
            ["--dataset", "hotpotqa"],
            {"HF_HUB_OFFLINE": "1", "HF_HOME": "hub"},
            "can't read hotpotqa/hotpot_qa (distractor)",
        ),
    ],
    ids=["no key", "empty key", "no hub"],
)
def test_what_only_a_new_process_shows(arguments: Sequence[str], env: dict[str, str | None], message: str) -> None:
    process = start("--arch", "direct", *arguments, env=env)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("rewoo-bench: ")
    assert message in err


def test_a_run_in_which_everything_failed_is_not_done(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: ServerFault(status=400, message="too rude")) as server:
        assert hosted(server, "--max-retries", 0) == 3
    out, err = capfd.readouterr()
    table = out.strip().split("\n\n")[1].splitlines()
    assert [line.split()[-2:] for line in table] == [["answered", "error"], ["0", "3"], ["0", "3"]]
    assert "nan" not in out
    assert "every question failed; last: 'openai/test' answered 400: too rude" in err


def test_what_failed_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        return (
            "Answer: x"
            if "step by step" in request["messages"][0]["content"]
            else ServerFault(status=400, message="rude")
        )

    with ModelServer(reply) as server:
        assert hosted(server) == 3
    assert "3 of 6 answers failed; most common error: 'openai/test' answered 400: rude" in capfd.readouterr().err


def test_a_run_with_failed_questions_is_incomplete_unless_they_are_tolerated(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = [True]

    def reply(request: dict[str, Any]) -> str | ServerFault:
        fails = broken[0] and "step by step" not in request["messages"][0]["content"]
        return ServerFault(status=400, message="rude") if fails else "Answer: x"

    folder = tmp_path / "a run"
    with ModelServer(reply) as server:
        assert hosted(server, "--fail-on-error", 3, "--out", tmp_path / "tolerated") == 0
        assert hosted(server, "--out", folder) == 3
        assert "incomplete: 3 of 6 answers failed" in (err := capfd.readouterr().err)
        assert err.splitlines()[-1] == f"rewoo-bench run --resume '{folder}'"
        assert read_manifest(folder).status == "incomplete"
        broken[0] = False
        assert quiet("--resume", folder, "--api-base", server.api_base) == 0
    assert read_manifest(folder).status == "done"
    assert load(folder)["exact_match"].notna().all()


def test_a_refused_key_is_a_wrong_command_and_leaves_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: ServerFault(status=401, message=f"no such key: {KEY}")) as server:
        assert hosted(server, "--out", "here") == 2
    err = capfd.readouterr().err
    assert not (tmp_path / "here").exists()
    assert err == "rewoo-bench: 'openai/test' answered 401: no such key: [key]\n"


def test_questions_without_documents_need_a_corpus(
    server: ModelServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    row = {"question_id": "q1", "question": "Which river?", "answer": {"value": "Neva", "aliases": []}}
    (tmp_path / "trivia.jsonl").write_text(json.dumps(row) + "\n")
    model = ["--model", "openai/test", "--api-base", server.api_base, "--no-progress"]
    assert run("--arch", "react", "--dataset", "trivia.jsonl", *model) == 2
    assert "give passages with --corpus FILE" in capfd.readouterr().err
    assert run("--arch", "direct", "--dataset", "trivia.jsonl", *model) == 0


@pytest.mark.parametrize("flag", ["--run-cost", "--question-cost"])
def test_a_limit_in_dollars_without_a_price_is_refused_before_the_first_call(
    server: ModelServer, flag: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert hosted(server, flag, 1, "--out", "here") == 2
    error = capfd.readouterr().err
    assert (
        f"{flag} 1: the price of 'openai/test' at --api-base isn't known; give it (--price input=0.15,output=0.6)"
        in error
    )
    assert "(--run-tokens, --question-tokens)" in error
    assert not server.books
    assert not Path("here").exists()


@pytest.mark.parametrize("flag", ["--run-cost", "--question-cost"])
def test_a_limit_in_dollars_lets_the_oracle_pass(flag: str) -> None:
    assert quiet("--arch", "rewoo", "--model", "oracle", "-n", 2, flag, 0.01) == 0


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("--drop-param", "stopp", "unknown parameter 'stopp', did you mean 'stop'?"),
        ("--drop-param", "stop,messages", "unknown parameter 'messages'"),
        ("--extra-body", "[1]", "expected a JSON object"),
        ("--extra-body", "{", "is not JSON"),
        ("--extra-body", '{"temperature": 2}', "'temperature' is set by --temperature"),
        ("--extra-body", '{"model": "y"}', "'model' is set by --model"),
        ("--extra-body", '{"messages": []}', "'messages' is set by the harness itself"),
    ],
)
def test_fields_of_requests_are_checked_before_a_run(
    flag: str, value: str, says: str, server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert hosted(server, flag, value, "--out", "here") == 2
    assert says in capfd.readouterr().err
    assert not server.books


def test_why_questions_were_not_answered_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda _: ServerReply("", finish_reason="length", usage=Usage(9, 0, 512))) as server:
        assert hosted(server, "--out", "here") == 0
    said = capfd.readouterr().err
    assert "ended without an answer: direct: 3 reasoning_truncated; cot: 3 reasoning_truncated" in said
    assert "6 were cut while the model was thinking: raise --reply-tokens" in said
