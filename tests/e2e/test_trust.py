"""A run folder that somebody else made runs and contacts nothing that this user didn't ask for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_runs import new, quiet, run

from rewoo_bench.cli.main import main
from rewoo_bench.evaluation.inputs import PythonInputs
from rewoo_bench.evaluation.prepare import prepared
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.journal.records import CallKey, CallRecord, RecordedPrompt, TaskKey
from rewoo_bench.runs.journal.store import Spent, open_journal
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.testing.server import ModelServer

pytestmark = pytest.mark.usefixtures("own_folder")
TOUCH = "touch {0}"


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
        "architectures": ([f"agent:touch {mark}"], "--agent"),
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


NAMES = ["mcp", "architectures", "llama_server", "api_base", "tools", "dataset", "model", "planner_model"]
NAMES += ["solver_model", "judge_model", "embedding_model", "corpus", "extra_body", "prices"]
SPENDING = ["price", "trials", "questions", "ids", "reply_tokens", "reasoning_effort"]
SPENDING += ["provider_cache", "max_retries", "max_steps"]


@pytest.mark.by_day(16)
@pytest.mark.parametrize("name", NAMES + SPENDING)
@pytest.mark.parametrize("dry", [False, True])
def test_what_a_strangers_run_would_run_or_contact_is_said_and_not_done(
    name: str, dry: bool, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(server, "--out", "here") == 0
    with ModelServer(lambda request: "no") as thief:
        value, flag = dangers(thief)[name]
        edited(**{name: value})
        assert quiet("--resume", "theirs", *(["--dry-run"] if dry else [])) == 2
        assert quiet("--from", "theirs/run.json", "--out", "mine", *(["--dry-run"] if dry else [])) == 2
        assert thief.books == []
    assert not Path("mark").exists()
    for line in capsys.readouterr().err.splitlines()[-2:]:
        assert "wasn't begun by you on this machine" in line
        assert flag in line
        assert "--trust" in line


def test_every_danger_is_in_one_message(server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert new(server, "--out", "here") == 0
    named = dangers(server)
    edited(**{name: value for name, (value, _) in named.items()})
    assert quiet("--resume", "theirs") == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert all(flag in line for _, flag in named.values())
    assert "\x1b" not in line


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


def test_code_in_the_options_of_an_architecture_is_found_behind_quotes(
    server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(server, "--out", "here") == 0
    edited(architectures=["react?tools=evil_code%3Amake"])
    assert quiet("--from", "theirs/run.json", "--dry-run") == 2
    assert "code or commands of 'react?tools=evil_code%3Amake' (--arch)" in capsys.readouterr().err


@pytest.mark.by_day(6)
@pytest.mark.parametrize(
    "name",
    [
        *("router?parents=evil+react", "router?parents=./evil+react", "router?parents=%2Eevil%2Fx+react"),
        *("router?parents=%252Fevil+react", "rewoo?tools=..%2Fevil"),
        *("router?parents=e%3Bvil+react", "router?parents=e%252Bvil+react", "react?max_steps=500"),
    ],
)
@pytest.mark.parametrize("way", ["--resume theirs", "--from theirs/run.json --out mine"])
def test_an_option_of_an_architecture_names_no_folder_or_file(
    name: str, way: str, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(server, "--out", "here") == 0
    dangers(server)
    tool = '[tools.Clock]\nmcp = "touch mark"\n'
    Path("evil/architecture.toml").write_text(f'name = "rewoo"\nrunner = "rewoo"\n{tool}')
    for folder in ("e;vil", "e%2Bvil"):
        shutil.copytree("evil", folder)
    edited(architectures=[name])
    assert quiet(*way.split()) == 2
    assert f"run code or commands of '{name}' (--arch)" in capsys.readouterr().err
    assert not Path("mark").exists()


@pytest.mark.parametrize("name", ["gsm8k=private.jsonl?objectives=2", "e%2Bvil?objectives=2", "chain?hops=3"])
def test_a_data_set_is_read_by_its_plain_name_alone(
    name: str, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(server, "--out", "here") == 0
    Path("private.jsonl").write_text('{"question": "mine", "answer": "mine"}\n')
    Path("e%2Bvil").mkdir()
    edited(dataset=name)
    assert quiet("--from", "theirs/run.json", "--out", "mine", "--model", "oracle") == 2
    assert f"read '{name}', or run its code (--dataset)" in capsys.readouterr().err


def test_options_behind_a_name_may_be_given_again(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    edited(architectures=["rewoo?max_steps=5"], dataset="chain?hops=3", api_base=None)
    given = ("--arch", "rewoo?max_steps=5", "--dataset", "chain?hops=3", "--model", "oracle", "--out", "mine")
    assert quiet("--from", "theirs/run.json", *given) == 0


def test_a_run_that_costs_nothing_is_as_large_as_a_stranger_made_it(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    edited(model="oracle", api_base=None, trials=2, questions=3, max_steps=4)
    assert quiet("--from", "theirs/run.json", "--out", "mine") == 0
    assert len(load(Path("mine"))) == 2 * 2 * 3


def test_a_strangers_journal_pays_for_nothing(tmp_path: Path) -> None:
    async def spent() -> Spent:
        async with open_journal(tmp_path / "journal.sqlite") as journal:
            for nth, (tokens, cost_usd) in enumerate([(10, 1.0), (-1_000_000, -1_000.0)]):
                key = CallKey("E1", "model", "", b"request", nth)
                await journal.add_call(
                    CallRecord(TaskKey("react", "q1", 0), key, "ok", RecordedPrompt(None, ""), {}, tokens, cost_usd)
                )
        async with open_journal(tmp_path / "journal.sqlite") as journal:
            return journal.survey()[1]

    assert anyio.run(spent) == Spent(10, 1.0)


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


def test_drawing_a_strangers_run_writes_into_its_folder_alone(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    Path("outside").mkdir()
    Path("outside/kept.md").write_text("kept")
    Path("here/plots").symlink_to(Path("outside").absolute())

    def plot() -> None:
        with pytest.raises(SystemExit) as done:
            main(["plot", "here", "--only", "parts"])
        assert not done.value.code

    plot()
    assert [path.name for path in Path("outside").iterdir()] == ["kept.md"]
    for path in ("captions.md", "parts.png"):
        Path("here/plots", path).unlink()
        Path("here/plots", path).symlink_to(Path("outside/kept.md").absolute())
    plot()
    assert Path("outside/kept.md").read_text() == "kept"


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_page_or_a_copy_of_a_strangers_run_is_written_through_no_link(
    has_manifest: bool, server: ModelServer
) -> None:
    assert new(server, "--out", "here") == 0
    shutil.copytree("here", "kept")
    Path("mine").write_text("kept")
    copy = Path("here/copy")
    copy.mkdir()
    for file in (Path("here/report.html"), *(copy / name for name in ("questions.parquet", "calls.parquet"))):
        file.unlink(missing_ok=True)
        file.symlink_to(Path("mine").absolute())
    if not has_manifest:
        Path("here/run.json").unlink()
    for command in (["report", "here", "--no-figures"], ["publish", "kept", "--out", str(copy), "--no-report"]):
        with pytest.raises(SystemExit) as done:
            main(command)
        assert not done.value.code
    assert Path("mine").read_text() == "kept"
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


def test_a_strangers_run_chooses_no_spans_cache_or_cluster_here(server: ModelServer) -> None:
    """No run records them, so only somebody else writes them into a run.json."""
    assert new(server, "--out", "here") == 0
    Path("precious.txt").write_text("kept")
    engine = {"workers": 2, "ray_address": "127.0.0.1:9", "worker_resources": '{"GPU": 1}'}
    edited(otel="precious.txt", answer_cache="their-cache", out="their-out", **engine)
    assert quiet("--from", "theirs/run.json", "--trust", "--out", "mine") == 0
    assert Path("precious.txt").read_text() == "kept"
    assert not Path("their-cache").exists()
    assert not Path("their-out").exists()


def test_ones_own_run_goes_on_without_a_word_also_as_a_copy(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    shutil.copytree("here", "there")
    assert quiet("--resume", "there") == 0
    assert quiet("--from", "here/run.json", "--out", "again") == 0


def test_what_is_kept_of_ones_runs_is_in_the_users_state_folder(server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    (kept,) = Path("cache/state/rewoo_bench").iterdir()
    assert "openai/test" not in kept.read_text()
    kept.unlink()
    assert quiet("--resume", "here") == 2


def test_a_trust_without_a_run_is_refused() -> None:
    assert run("--arch", "direct", "--trust") == 2


@pytest.mark.by_day(5)
@pytest.mark.parametrize(
    "command",
    [
        ["report", "theirs", "--out", "page.html"], ["show", "theirs"], ["runs", "."],
        ["compare", "theirs"], ["gate", "theirs"], ["gate", "theirs", "--baseline", "baseline.json", "--update"],
        ["publish", "theirs", "--out", "published"], ["rescore", "theirs"],
        ["plot", "theirs"],
    ],
    ids=lambda command: str(command[0]),
)  # fmt: skip
def test_reading_a_strangers_run_runs_and_contacts_nothing(command: list[str], server: ModelServer) -> None:
    assert new(server, "--out", "here") == 0
    with ModelServer(lambda request: "no") as thief:
        edited(**{name: value for name, (value, _) in dangers(thief).items()}, otel=thief.api_base)
        with pytest.raises(SystemExit):
            main(command)
        assert (thief.books, thief.peak_connections) == ([], 0)
    assert not Path("mark").exists()


@pytest.mark.parametrize("name", ["journal.sqlite", "journal.sqlite-wal", "run.lock"])
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
