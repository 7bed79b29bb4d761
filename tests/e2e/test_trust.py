"""A run folder that somebody else made runs and contacts nothing that this user didn't ask for."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_runs import new, quiet, run
from model_server import ModelServer

from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.inputs import PythonInputs
from rewoo_bench.evaluation.prepare import prepared
from rewoo_bench.evaluation.trust import check_trusted
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.options import RunOptions

pytestmark = pytest.mark.usefixtures("own_folder")
READING = (
    *("report theirs --out page.html", "show theirs", "runs .", "compare theirs", "gate theirs", "plot theirs"),
    *("publish theirs --out published", "rescore theirs"),
)


def edited(**options: Any) -> Path:
    """The run `here` with other options, as somebody else may send it."""
    shutil.copytree("here", "theirs")
    path = Path("theirs/run.json")
    manifest = json.loads(path.read_text())
    manifest["options"] |= options
    manifest["status"] = "incomplete"
    path.write_text(json.dumps(manifest))
    return path.parent


def dangers(server: ModelServer) -> dict[str, tuple[Any, str]]:
    """Option -> what somebody else writes into it, and how it is said."""
    mark = str(Path("mark").absolute())
    Path("evil").mkdir()
    Path("evil/architecture.toml").write_text(f'name = "evil"\n[agent]\ncommand = ["touch", "{mark}"]\n')
    Path("evil/dataset.toml").write_text('name = "evil"\ngenerator = "evil_code:make"\n')
    Path("evil_code.py").write_text(f"open({mark!r}, 'w')\n")
    Path("private.txt").write_text("mine")
    address = f"oobabooga/{server.api_base}"
    return {
        "mcp": ([f"touch {mark}"], "--mcp"),
        "architectures": ([f"agent:touch {mark}"], "--arch"),
        "llama_server": (f"touch {mark}", "--llama-server"),
        "api_base": (server.api_base, "--api-base"),
        "tools": (["evil_code:make"], "--tools"),
        "dataset": ("evil", "--dataset"),
        "model": (address, "--model"),
        "planner_model": ("evil_code:make", "--planner-model"),
        "solver_model": (address, "--solver-model"),
        "judge_model": ("openai/the-dearest", "--judge-model"),
        "embedding_model": (address, "--embedding-model"),
        "corpus": (str(Path("private.txt").absolute()), "--corpus"),
        "extra_body": ('{"top_k": 1}', "--extra-body"),
        "prices": (["anthropic-5m"], "--prices"),  # of a cheaper model, so that a cap is never reached
        "price": (["input=0,output=0"], "--price"),
        "trials": (50, "--trials"),
        "questions": (100_000, "--questions"),
        "ids": (["1", "2"], "--ids"),
        "reply_tokens": (500_000, "--reply-tokens"),
        "reasoning_effort": ("high", "--reasoning-effort"),
        "provider_cache": (True, "--provider-cache"),
        "max_retries": (500, "--max-retries"),
        "max_steps": (500, "--max-steps"),
    }


def test_what_a_strangers_run_would_run_or_contact_is_said_and_not_done(
    server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(server, "--out", "here") == 0
    with ModelServer(lambda request: "no") as thief:
        named = dangers(thief)
        edited(**{name: value for name, (value, _) in named.items()})
        for more in ([], ["--dry-run"]):
            assert quiet("--resume", "theirs", *more) == 2
            assert quiet("--from", "theirs/run.json", "--out", "mine", *more) == 2
        for command in READING:
            with pytest.raises(SystemExit):
                main(command.split())
        assert (thief.books, thief.peak_connections) == ([], 0)
    assert not Path("mark").exists()
    refused = [line for line in capsys.readouterr().err.splitlines() if "wasn't begun by you" in line]
    assert len(refused) == 4
    for line in refused:
        assert all(flag in line for _, flag in named.values())
        assert "--trust" in line


def test_each_of_them_alone_is_asked_about(server: ModelServer) -> None:
    for name, (value, flag) in dangers(server).items():
        given = {} if name == "model" else {"model": "openai/x"}
        with pytest.raises(UsageError, match=f"{flag} '"):
            check_trusted({"options": {**given, name: value}}, given, "--from", trust=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("architectures", [each]) for each in ("router?parents=./evil+react", "rewoo?tools=..%2Fevil")),
        *(("architectures", [each]) for each in ("react?tools=evil_code%3Amake", "react?max_steps=500")),
        *(("dataset", each) for each in ("gsm8k=private.jsonl?objectives=2", "chain?hops=3", "./evil")),
    ],
)
def test_only_the_plain_name_of_what_is_bundled_is_taken_from_a_stranger(name: str, value: Any) -> None:
    for options, is_asked in (({name: value}, True), ({"architectures": ["rewoo"], "dataset": "gsm8k"}, False)):
        with pytest.raises(UsageError) if is_asked else nullcontext():
            check_trusted({"options": options}, {}, "--from", trust=False)
    check_trusted({"options": {name: value}}, {name: value}, "--from", trust=False)


def test_another_machines_run_goes_on_with_its_flags_or_with_trust(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert new(server, "--out", "here") == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("another-machine").absolute()))
    assert quiet("--resume", "here") == 2
    assert quiet("--resume", "here", "--api-base", server.api_base) == 2  # its model would spend this user's money
    asked = ("--api-base", server.api_base, "--model", "openai/test")
    assert quiet("--resume", "here", *asked) == 2  # and how many questions are asked
    assert quiet("--resume", "here", *asked, "-n", 4) == 0
    assert quiet("--resume", "here") == 0  # it was accepted here
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("a-third-one").absolute()))
    assert quiet("--resume", "here", "--trust") == 0


def test_a_run_that_costs_nothing_is_as_large_as_a_stranger_made_it(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    edited(model="oracle", api_base=None, trials=2, questions=3, max_steps=4)
    assert quiet("--from", "theirs/run.json", "--out", "mine") == 0
    assert len(load(Path("mine"))) == 2 * 2 * 3


def test_what_a_stranger_says_of_an_endpoint_is_not_obeyed(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    edited()
    path = Path("theirs/run.json")
    learnt = {"default": {"left_out": ["stop", "temperature"], "output_tokens_for_thoughts": 500_000}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "sent": learnt}))
    asked = len(server.books)
    assert quiet("--resume", "theirs", "--questions", "6", "--trust") == 0
    requests = [entry.request for entry in server.books[asked:]]
    assert requests
    assert all(request["max_tokens"] < 10_000 for request in requests)
    assert all("temperature" in request for request in requests)


def test_a_page_a_picture_or_a_copy_of_a_strangers_run_is_written_through_no_link(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    shutil.copytree("here", "kept")
    Path("mine").write_text("kept")
    copy = Path("here/copy")
    copy.mkdir()
    for file in (Path("here/report.html"), *(copy / name for name in ("questions.parquet", "calls.parquet"))):
        file.unlink(missing_ok=True)
        file.symlink_to(Path("mine").absolute())
    Path("outside").mkdir()
    Path("here/plots").symlink_to(Path("outside").absolute())
    for command in (
        ["report", "here", "--no-figures"],
        ["publish", "kept", "--out", str(copy), "--no-report"],
        ["plot", "here", "--only", "parts"],
    ):
        with pytest.raises(SystemExit) as done:
            main(command)
        assert not done.value.code
    assert Path("mine").read_text() == "kept"
    assert list(Path("outside").iterdir()) == []
    assert Path("here/report.html").stat().st_size > 10_000


def test_another_providers_key_stays_away_from_the_address(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RunOptions(("direct",), model="openai/m", judge_model="anthropic/claude-x", api_base=server.api_base)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")

    async def addresses() -> dict[str, Any]:
        async with prepared(options, PythonInputs()) as run:
            return {model.name: opened.manifest["api_base"] for model, opened in run.models.items()}

    assert anyio.run(addresses) == {"openai/m": server.api_base, "anthropic/claude-x": None}


def test_a_strangers_run_chooses_no_cache_or_cluster_here(server: ModelServer) -> None:
    """No run records them, so only somebody else writes them into a run.json."""
    assert new(server, "--out", "here") == 0
    engine = {"workers": 2, "ray_address": "127.0.0.1:9", "worker_resources": '{"GPU": 1}'}
    edited(answer_cache="their-cache", out="their-out", **engine)
    assert quiet("--from", "theirs/run.json", "--trust", "--out", "mine") == 0
    assert not Path("their-cache").exists()
    assert not Path("their-out").exists()


def test_ones_own_run_goes_on_without_a_word_also_as_a_copy(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    shutil.copytree("here", "there")
    assert quiet("--resume", "there") == 0
    assert quiet("--from", "here/run.json", "--out", "again") == 0
    (kept,) = Path("cache/state/rewoo_bench").iterdir()
    assert "openai/test" not in kept.read_text()
    kept.unlink()
    assert quiet("--resume", "here") == 2


def test_a_trust_without_a_run_is_refused() -> None:
    assert run("--arch", "direct", "--trust") == 2


@pytest.mark.parametrize("name", ["journal.sqlite", "journal.sqlite-wal"])
def test_a_link_in_the_place_of_a_runs_file_is_not_written_through(
    name: str, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(server, "--out", "here") == 0
    theirs = edited()
    Path("mine").write_text("kept")
    (theirs / name).unlink(missing_ok=True)
    (theirs / name).symlink_to(Path("mine").absolute())
    assert quiet("--resume", "theirs", "--trust") == 2
    assert f"'theirs/{name}' is a symbolic link" in capsys.readouterr().err
    assert Path("mine").read_text() == "kept"
