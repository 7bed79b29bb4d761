"""MCP servers that misbehave, keep state, or are reached over HTTP: tests/support/mcp_hostile.py."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import RUN
from command_runs import start as start_command
from model_server import ModelServer

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.errors import HarnessFault, ToolError, UsageError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result, open_run
from rewoo_bench.evaluation.inputs import with_mcp_tools
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.tools.mcp_server import McpServers
from rewoo_bench.types import Example, Request

if TYPE_CHECKING:
    from rewoo_bench.tools.mcp_client import McpServer

pytest.importorskip("mcp", reason="needs the MCP SDK (pip install 'rewoo-bench[mcp]')")
pytestmark = pytest.mark.anyio

SUPPORT = Path(__file__).parents[1] / "support"
NOTE_AND_READ = [
    "Thought: a\nAction: note[mine]",
    "Thought: b\nAction: notes[all]",
    "Thought: c\nAction: Finish[x]",
]


def hostile(*modes: str) -> str:
    return shlex.join([sys.executable, str(SUPPORT / "mcp_hostile.py"), *modes])


async def call(server: McpServer, name: str, **arguments: Any) -> str:
    tool = server.tool(name)
    return await tool(tool.arguments(**arguments))


def processes_with(text: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if text.encode() in environment and state != "Z" and int(folder.name) != os.getpid():
            found.append(folder.name)
    return found


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("silent", "it didn't answer within 1 s (--mcp-timeout); it printed: waiting for a database"),
        ("garbage", "it didn't answer within 1 s (--mcp-timeout); it printed: Welcome to the server!"),
        ("dies", "it printed: first line | no licence for the 13th floor"),
    ],
)
async def test_a_server_that_does_not_start_is_one_line_in_time(mode: str, message: str) -> None:
    start = time.monotonic()
    with pytest.raises(UsageError, match="--mcp: ") as raised:
        await rewoo_bench.evaluate(
            "sample", "rewoo", model=ScriptedModel([]), questions=1, mcp=(f"A={mode} {hostile(mode)}",), mcp_timeout=1.0
        )
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert time.monotonic() - start < 60


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_children_that_ignore_signals_and_left_the_group_end_with_their_server(tmp_path: Path) -> None:
    async with McpServers() as servers:
        server = await servers.connect(f"WHOSE={tmp_path} {hostile('deaf_child')}")
        assert await call(server, "echo", text="hi") == "hi"
        assert len(processes_with(str(tmp_path))) == 3
    assert processes_with(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("image", "[image: image/png]"),
        ("text_resource", "of a"),
        ("blob", "[resource: file:///b]"),
    ],
)
async def test_content_that_is_no_text_is_named(name: str, text: str) -> None:
    async with McpServers() as servers:
        assert await call(await servers.connect(hostile()), name) == text


async def test_a_call_without_an_answer_ends_at_the_timeout() -> None:
    async with McpServers(1.0) as servers:
        server = await servers.connect(hostile())
        with anyio.fail_after(60):
            with pytest.raises(ToolError, match="no answer within 1 s"):
                await call(server, "sleeps")
            with pytest.raises(ToolError, match="no answer within 1 s"):  # more than its pipe holds
                await call(server, "echo", text="x" * 1_000_000)


async def test_names_are_those_that_every_provider_takes_and_each_reaches_its_tool() -> None:
    async with McpServers() as servers:
        server = await servers.connect(f"[prefix=fs] {hostile('names')}")
        assert len(server.names) == 7
        assert all(name.isascii() and name.isidentifier() and len(name) <= 64 for name in server.names)
        assert {"fs_files_read_it", "fs_plain"} < server.names.keys()
        for name, remote in server.names.items():
            tool = server.tool(remote, name)
            assert await tool(tool.arguments(text=remote)) == remote


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("[only=ecko] {}", "unknown MCP tool 'ecko', did you mean 'echo'?"),
        ("[prefix] {}", "write [prefix=fs only=read_file,list_directory shared]"),
        ("'", "is not a command"),
        ("A=b", "name a command or an address"),
        ("TOKEN=$NO_SUCH_VARIABLE {}", "the variable NO_SUCH_VARIABLE isn't set"),
        ("TOKEN=tk-1234567890123456 {}", "TOKEN: its value would stand in run.json"),
        ("Authorization='Bearer tk-12345678' http://127.0.0.1:9/", "Authorization: its value would stand in run.json"),
    ],
)
async def test_an_address_that_is_wrong_says_how(address: str, message: str) -> None:
    async with McpServers() as servers:
        with pytest.raises(UsageError) as raised:
            await servers.connect(address.format(hostile()))
    assert message in str(raised.value)
    assert "tk-1234" not in str(raised.value)


async def notes_seen(*architectures: str, address: str, more: tuple[str, ...] = (), **options: Any) -> list[str]:
    """What each question reads of the notes, after it has written one itself."""
    turns = NOTE_AND_READ * len(architectures) * options.get("questions", 1) * options.get("trials", 1)
    results = await rewoo_bench.evaluate(
        "sample", list(architectures), model=ScriptedModel(turns), mcp=(*more, address), concurrency=1, **options
    )
    return [result.trajectory.steps[1].observation for result in results]


async def test_no_question_reads_what_another_wrote(tmp_path: Path) -> None:
    started = tmp_path / "started"
    seen = await notes_seen(
        "react", "react?max_exemplars=1", address=f"STARTED={started} {hostile()}", questions=2, trials=2
    )
    assert seen == ["mine."] * 8
    assert len(started.read_text().split()) == 9  # one for its list of tools


async def test_a_shared_server_is_one_for_all_questions_because_the_user_says_so() -> None:
    assert await notes_seen("react", address=f"[shared] {hostile()}", questions=2) == ["mine.", "mine mine."]


@pytest.mark.nightly
async def test_the_start_of_a_server_is_no_latency() -> None:
    model = ScriptedModel(NOTE_AND_READ)
    (result,) = await rewoo_bench.evaluate("sample", "react", model=model, questions=1, mcp=(hostile("slow=5"),))
    assert result.startup_s > 4.5
    assert result.latency_s < 4.5


class Gone(ScriptedModel):
    """Ends the run after one turn."""

    async def complete(self, request: Request) -> Any:
        if self.requests:
            raise HarnessFault("the power went")
        return await super().complete(request)


async def test_a_resumed_question_restores_its_servers_state(tmp_path: Path) -> None:
    with pytest.raises(HarnessFault):
        await ask_with_notes(tmp_path / "run", Gone(NOTE_AND_READ))
    model = ScriptedModel(NOTE_AND_READ[1:])
    (result,) = await ask_with_notes(tmp_path / "run", model)
    assert [step.observation for step in result.trajectory.steps[:2]] == ["mine.", "mine."]
    assert len(model.requests) == 2


async def ask_with_notes(folder: Path, model: ScriptedModel) -> list[Result]:
    results: list[Result] = []
    async with McpServers() as servers, open_run(folder, RUN) as opened:
        architectures = await with_mcp_tools([load_architecture("react", style="multihop")], [hostile()], servers)
        recorder = Recorder(opened.journal)
        evaluator = Evaluator({"": model}, "hotpotqa", Toolbox(servers=servers), recorder=recorder)
        await evaluator.run([Example("q", "?", ("x",))], architectures, on_result=results.append, store=opened.store)
    return results


@contextmanager
def over_http(*modes: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(SUPPORT / "mcp_hostile.py"), "port=0", *modes], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.communicate()


def seen_by(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{address}/seen") as answer:
        seen: dict[str, Any] = json.load(answer)
    return seen


async def test_each_question_has_a_session_of_its_own_with_a_remote_server() -> None:
    with over_http() as address:
        assert await notes_seen("react", address=f"{address}/mcp", questions=2) == ["mine."] * 2
        sessions = {each.get("mcp-session-id") for each in seen_by(address)["seen"]}
        assert len(sessions - {None}) == 3  # one for the list of tools
        assert seen_by(address)["sessions"] == []  # all were ended


async def test_headers_come_from_variables_and_are_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "tk-very-secret-1234")
    with over_http("key=tk-very-secret-1234") as address:
        named = f'Authorization="Bearer $SECRET_KEY" X-Team=$SECRET_KEY {address}/mcp'
        await notes_seen("react", address=named, questions=1, out=tmp_path / "run")
        assert {each["x-team"] for each in seen_by(address)["seen"]} == {"tk-very-secret-1234"}
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(b"very-secret" in content for content in written)
    assert json.loads((tmp_path / "run/run.json").read_text())["options"]["mcp"] == [named]


async def test_a_result_with_the_key_of_its_server_is_neither_sent_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_VALUE", "tk-very-secret-1234")
    model = ScriptedModel(["Thought: a\nAction: tells_key[]", "Action: Finish[x]"])
    named = (f"SECRET=$SOME_VALUE {hostile()}",)
    (result,) = await rewoo_bench.evaluate("sample", "react", model=model, questions=1, mcp=named, out=tmp_path / "run")
    assert result.trajectory.steps[0].observation == "it is [key]"
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(b"very-secret" in content for content in written)


async def test_a_refused_key_is_an_error_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VALUE", "tk-very-secret-1234")
    with (
        over_http("key=another") as address,
        pytest.raises(UsageError, match="answered: HTTP 401 Unauthor") as raised,
    ):
        await notes_seen("react", address=f'Authorization="Bearer $SOME_VALUE" {address}/mcp', questions=1)
    assert "very-secret" not in str(raised.value)


async def test_headers_go_to_no_other_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VALUE", "tk-very-secret-1234")
    with over_http() as other, over_http(f"redirect={other}/mcp") as address:
        with pytest.raises(UsageError, match="can't be used"):
            await notes_seen("react", address=f'Authorization="Bearer $SOME_VALUE" {address}/mcp', questions=1)
        assert seen_by(other)["seen"] == []


async def test_two_servers_with_one_tool_name_need_a_prefix() -> None:
    with pytest.raises(UsageError, match=r"give this server's tools a prefix: --mcp '\[prefix=other\] A=1 "):
        await notes_seen("react", address=f"A=1 {hostile()}", more=(hostile(),))
    model = ScriptedModel(["Thought: a\nAction: b_echo[hi]", "Action: Finish[x]"])
    both = (hostile(), f"[prefix=b only=echo] {hostile()}")
    (result,) = await rewoo_bench.evaluate("sample", "react", model=model, questions=1, mcp=both)
    assert result.trajectory.steps[0].observation == "hi"


async def test_no_tool_has_the_name_of_reacts_last_action() -> None:
    with pytest.raises(UsageError, match=r"'react' has an action 'finish' already; give this server's tools a prefix"):
        await notes_seen("react", address=hostile("tools=echo,finish"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_run_leaves_no_server_behind(tmp_path: Path) -> None:
    server = f"WHOSE={tmp_path} {hostile('deaf_child')}"
    requests: list[object] = []

    def reply(request: object) -> str:
        requests.append(request)
        return "Thought: a\nAction: sleeps[60]"

    with ModelServer(reply) as model:
        asked = ("--arch", "react", "-n", 1, "--model", "openai/x", "--api-base", model.api_base, "--mcp", server)
        process = start_command(*asked, "--out", tmp_path / "run", "--no-progress")
        wait_until(lambda: len(processes_with(f"WHOSE={tmp_path}")) == 3 and len(requests) == 1)
        process.kill()
        process.communicate()
        wait_until(lambda: not processes_with(f"WHOSE={tmp_path}"))


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


async def test_a_tools_result_has_at_most_so_many_tokens() -> None:
    model = ScriptedModel(["Thought: a\nAction: echo[one two three four five six seven]", "Action: Finish[x]"])
    (result,) = await rewoo_bench.evaluate(
        "sample", "react", model=model, questions=1, mcp=(hostile(),), tool_result_tokens=4
    )
    assert result.trajectory.steps[0].observation == "one two three four\n… 3 tokens left out"
