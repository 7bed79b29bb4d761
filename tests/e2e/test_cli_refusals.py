"""Commands that are refused or fail: a wrong value, flag or key is one line, and a fault says what it was."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from answering import KEY
from command_runs import hosted, quiet, run, start
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.types import Usage

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "refusals.txt"

pytestmark = pytest.mark.usefixtures("own_folder")


def refusals() -> str:
    """What commands say that are refused, each below its line; tests/golden/refusals.txt has their words."""
    shutil.copytree(ROOT / "architectures" / "rewoo-json", "copied")
    Path("empty.jsonl").touch()
    Path("cut.jsonl").write_text('{"id": "1", "quest')
    Path("blank.jsonl").write_text('{"title": "a", "text": " "}\n')
    Path("none.txt").write_text("none\n")
    Path("wrong.toml").write_text("modle = 'oracle'")
    assert quiet("--arch", "direct", "--model", "oracle", "-n", 4, "--out", "here") == 0
    said = []
    for command in re.findall(r"^\$ rewoo-bench (.*)$", GOLDEN.read_text(), re.MULTILINE):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(shlex.split(command))
        assert (ended.value.code, out.getvalue()) == (2, ""), command
        said.append(f"$ rewoo-bench {command}\n{err.getvalue()}")
    return "\n".join(said)


def test_a_command_that_is_refused_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert refusals() == GOLDEN.read_text()
    assert not Path("results").exists()


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


def test_why_questions_were_not_answered_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda _: ServerReply("", finish_reason="length", usage=Usage(9, 0, 512))) as server:
        assert hosted(server, "--out", "here") == 0
    said = capfd.readouterr().err
    assert "ended without an answer: direct: 3 reasoning_truncated; cot: 3 reasoning_truncated" in said
    assert "6 were cut while the model was thinking: raise --reply-tokens" in said


if __name__ == "__main__":  # PYTHONPATH=tests/support python tests/e2e/test_cli_refusals.py
    with TemporaryDirectory() as folder, chdir(folder):
        GOLDEN.write_text(refusals())
