"""The command as a user gives it: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rewoo_bench.cli import main
from rewoo_bench.loaders import load_dataset_examples
from rewoo_bench.results import load
from rewoo_bench.testing import Fault, ModelServer, Reply

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_bench.py"
KEY = "sk-live-0123456789abcdef"
FILES = ["calls.parquet", "journal.sqlite", "questions.parquet", "run.json", "traces.jsonl"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in an empty folder; whatever they keep goes into it too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REWOO_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda request: "Thought: I know.\nAnswer: Neva") as server:
        yield server


def run(*arguments: object) -> int:
    """`rewoo-bench run …` in this process; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *map(str, arguments)])
    return int(ended.value.code or 0)


def hosted(server: ModelServer, *arguments: object) -> int:
    """A run of direct and cot over three questions, answered by the test's server."""
    return run(
        "--arch",
        "direct,cot",
        "-n",
        3,
        "--model",
        "openai/test",
        "--api-base",
        server.api_base,
        "--no-progress",
        *arguments,
    )


def start(*arguments: object, env: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
    """`python scripts/run_bench.py …` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, arguments)],
        env={name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def contents(folder: Path) -> str:
    """All text in a run folder, that of the parquet files as rows."""
    texts = [path.read_text(errors="replace") for path in folder.iterdir() if path.suffix != ".parquet"]
    return "\n".join([*texts, *(str(pd.read_parquet(path).to_dict()) for path in folder.glob("*.parquet"))])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--arch", "rewo"],
            "unknown architecture 'rewo', did you mean 'rewoo'? available: cot, direct, plan-execute, react, ",
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
        (["--arch", "direct", "--timeout", "nan"], "'nan' is not a number"),
        ([], "Missing option '--arch'"),
        (["--arch", "direct", "--lmit", "3"], "No such option '--lmit'"),
        (["--arch", "direct", "-n", "0"], "Invalid value for '-n' / '--limit': 0 is not in the range x>=1"),
        (["--arch", "direct", "--concurrency", "many"], "Invalid value for '--concurrency': 'many' is not a valid"),
        (["--arch", "direct", "--temperature", "-1"], "Invalid value for '--temperature'"),
        (["--arch", "direct", "--time-limit", "0"], "Invalid value for '--time-limit'"),
        (["--arch", "direct", "--fail-on-error", "1.5"], "1.5 is neither a count (1, 2, …) nor a fraction"),
        (["--arch", "direct", "--fail-on-error", "inf"], "inf is neither a count (1, 2, …) nor a fraction"),
        (["--arch", "direct", "--style", "poem"], "'poem' is not one of 'auto', 'chat', 'completion'"),
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
    assert err.startswith("Usage: ")
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


def test_a_run_writes_its_folder_and_prints_its_table(
    server: ModelServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert hosted(server, "--out", "here") == 0
    out, err = capfd.readouterr()
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == FILES
    assert "sample, openai/test: n = 3 questions, means per question\n" in out
    assert [line.split()[0] for line in out.splitlines() if "/ 0 / 3" in line] == ["direct", "cot"]
    assert "unknown" in out  # the price
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
    assert hosted(server) == 0
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


def test_progress_goes_to_standard_error(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    run("--arch", "direct", "-n", 2, "--model", "openai/test", "--api-base", server.api_base)
    assert "2/2 questions, " in capfd.readouterr().err


def test_a_smaller_limit_is_a_prefix_of_a_larger(server: ModelServer, tmp_path: Path) -> None:
    for limit in (3, 7):
        assert hosted(server, "-n", limit, "--out", limit) == 0
    three, seven = (load(tmp_path / name)["example_id"].unique().tolist() for name in ("3", "7"))
    assert seven[:3] == three


def test_two_runs_join_in_two_lines(server: ModelServer, tmp_path: Path) -> None:
    for arch in ("direct", "cot"):
        run("--arch", arch, "-n", 3, "--model", "openai/test", "--api-base", server.api_base, "--out", arch)
    direct, cot = (pd.read_parquet(tmp_path / arch / "questions.parquet") for arch in ("direct", "cot"))
    both = direct.merge(cot, on=["example_id", "trial"], suffixes=("_direct", "_cot"))
    assert len(both) == 3
    assert (both["input_tokens_cot"] > both["input_tokens_direct"]).all()


def test_a_cap_keeps_what_is_done_and_exits_with_3(
    server: ModelServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert hosted(server, "--max-total-tokens", 1, "--concurrency", 1, "--out", "here") == 3
    out, err = capfd.readouterr()
    assert "1 / 0 / 1" in out
    assert err.startswith("incomplete: used ")
    manifest = json.loads((tmp_path / "here" / "run.json").read_text())
    assert (manifest["status"], manifest["rows"]) == ("incomplete", 1)
    assert len(load(tmp_path / "here")) == 1


def test_a_run_in_which_everything_failed_is_not_done(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: Fault(status=400, message="too rude")) as server:
        assert hosted(server, "--max-retries", 0) == 3
    out, err = capfd.readouterr()
    assert "0 / 3 / 3" in out
    assert "nan" not in out
    assert "every question failed; last: 'openai/test' answered 400: too rude" in err


def test_what_failed_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    def reply(request: dict[str, Any]) -> str | Fault:
        return "Answer: x" if "step by step" in request["messages"][0]["content"] else Fault(status=400, message="rude")

    with ModelServer(reply) as server:
        assert hosted(server) == 0
    assert "3 of 6 failed, most of them so: 'openai/test' answered 400: rude" in capfd.readouterr().err


def test_a_refused_key_is_a_wrong_command_and_leaves_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: Fault(status=401, message=f"no such key: {KEY}")) as server:
        assert hosted(server, "--out", "here") == 2
    err = capfd.readouterr().err
    assert not (tmp_path / "here").exists()
    assert err == "rewoo-bench: 'openai/test' answered 401: no such key: [key]\n"


def test_the_key_stays_out_of_everything(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    replies: list[str | Fault] = [*["Answer: Neva"] * 9, Fault(status=400, message=f"bad {KEY}")]
    with ModelServer(lambda request: replies.pop()) as server:
        hosted(server, "--out", "here")
        assert server.books[0].headers["authorization"] == f"Bearer {KEY}"
    out, err = capfd.readouterr()
    assert "bad [key]" in contents(tmp_path / "here")
    assert KEY not in contents(tmp_path / "here") + out + err


def test_a_role_can_have_a_model_of_its_own(tmp_path: Path, server: ModelServer) -> None:
    hosted(server, "--judge-model", "openai/judge", "--out", "here")
    asked = {entry.request["model"] for entry in server.books}
    assert asked == {"test", "judge"}
    calls = pd.read_parquet(tmp_path / "here" / "calls.parquet")
    assert set(zip(calls["role"], calls["name"], strict=True)) == {("agent", "openai/test"), ("judge", "openai/judge")}


def test_code_of_ones_own_is_found_beside_the_command(tmp_path: Path, server: ModelServer) -> None:
    (tmp_path / "parrot.py").write_text(
        "from rewoo_bench import Trajectory\n\n\nclass Parrot:\n    def __init__(self, prompts): ...\n\n"
        "    async def run(self, question, *, model, tools):\n        return Trajectory(question, 'answered')\n"
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "architecture.toml").write_text('name = "mine"\ndescription = "d"\nrunner = "parrot:Parrot"\n')
    process = start("--arch", "./mine", "-n", 1, "--model", "openai/test", "--api-base", server.api_base)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "1 / 0 / 1" in out) == (0, True), err


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_is_done(tmp_path: Path, interrupt: signal.Signals) -> None:
    def reply(request: dict[str, Any]) -> Reply | Fault:
        return Reply("Answer: Neva") if len(slow.books) < 5 else Fault("hang")

    with ModelServer(reply) as slow:
        process = start(
            "--arch",
            "direct",
            "--model",
            "openai/test",
            "--api-base",
            slow.api_base,
            "--out",
            "here",
            "--concurrency",
            2,
            "--grace",
            0.5,
        )
        _wait_until(lambda: len(slow.books) >= 7)
        process.send_signal(interrupt)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "rewoo-bench: interrupted; waiting up to 0.5 s for the calls in flight" in err
    assert err.endswith("incomplete: interrupted\n")
    assert "Traceback" not in err
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == FILES
    assert len(load(tmp_path / "here")) == 5
    manifest = json.loads((tmp_path / "here" / "run.json").read_text())
    assert (manifest["status"], manifest["reason"], manifest["rows"]) == ("incomplete", "interrupted", 5)


def test_a_background_job_can_be_ended(tmp_path: Path) -> None:
    """A shell starts a background job with SIGINT ignored; SIGTERM ends it all the same."""
    with ModelServer(lambda request: Fault("hang")) as slow:
        command = f"trap '' INT; exec {sys.executable} {SCRIPT} --arch direct --model openai/test --out here --grace 0"
        with subprocess.Popen(["sh", "-c", f"{command} --api-base {slow.api_base}"], stderr=subprocess.PIPE) as process:
            _wait_until(lambda: bool(slow.books))
            process.terminate()
            _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err


def test_questions_without_documents_need_a_corpus(
    server: ModelServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    row = {"question_id": "q1", "question": "Which river?", "answer": {"value": "Neva", "aliases": []}}
    (tmp_path / "trivia.jsonl").write_text(json.dumps(row) + "\n")
    model = ["--model", "openai/test", "--api-base", server.api_base, "--no-progress"]
    assert run("--arch", "react", "--dataset", "trivia.jsonl", *model) == 2
    assert "give passages with --corpus FILE" in capfd.readouterr().err
    assert run("--arch", "direct", "--dataset", "trivia.jsonl", *model) == 0


def test_a_cost_cap_without_a_price_stops_the_run(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert hosted(server, "--max-total-cost", 1, "--concurrency", 1) == 3
    assert "the price of a call isn't known" in capfd.readouterr().err


def test_list_names_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["list"])
    assert not ended.value.code
    out = capfd.readouterr().out
    assert all(f"  {name} " in out for name in ("rewoo", "react", "sample", "triviaqa", "local/smollm2-135m"))


def _wait_until(happened: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)
