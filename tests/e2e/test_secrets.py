"""Nothing that a run sent as a credential is in what it leaves behind, whatever the server repeats of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from answering import KEY
from command_runs import quiet, run
from model_server import ModelServer, ServerReply

from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load
from rewoo_bench.text.redaction import redact, sent_in
from rewoo_bench.types import ToolCall

pytestmark = pytest.mark.usefixtures("own_folder")


def plainly(sent: str) -> str:
    return sent


@contextmanager
def echoing(status: int, encode: Callable[[str], str] = plainly) -> Iterator[tuple[str, list[str]]]:
    """A server that repeats every header it got in its body and its headers; and the Authorization headers it got."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            sent = self.headers["authorization"]
            seen.append(sent)
            plain = f"you sent {dict(self.headers)} to {self.path}" if encode is plainly else "you sent this"
            said = f"Thought: {plain}\nAnswer: {encode(sent)} {encode(f'{self.path} {sent}')}"
            message = {"role": "assistant", "content": said, "reasoning_content": f"I was given {encode(sent)}"}
            usage = {"prompt_tokens": 3, "completion_tokens": 3}
            good = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
            body = json.dumps(good if status == 200 else {"error": {"message": said}}).encode()
            self.send_response(status, encode(sent))
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("x-you-sent", encode(sent))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def left_behind(*folders: Path) -> str:
    """Every file, and every cell of the tables, which are compressed."""
    files = [path for folder in folders if folder.exists() for path in folder.rglob("*") if path.is_file()]
    tables = [str(pq.read_table(path).to_pylist()) for path in files if path.suffix == ".parquet"]
    return "\n".join([*(path.read_bytes().decode("utf-8", "replace") for path in files), *tables])


@pytest.mark.by_day(4)
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    ("user_info", "password"),
    [
        ("", ""),
        ("someone:pa%40ss-w0rd99", "pa@ss-w0rd99"),
        ("someone:pa\"s's-w0rd99", "pa\"s's-w0rd99"),
        ("t0ken-of-thirty-letters", "t0ken-of-thirty-letters"),
    ],
    ids=["key", "encoded", "quote", "token"],
)
def test_a_credential_is_nowhere_in_what_a_run_leaves(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, status: int, user_info: str, password: str
) -> None:
    out, copy = tmp_path / "run", tmp_path / "published"
    with echoing(status) as (host, seen):
        address = f"http://{user_info}@{host}" if user_info else f"http://{host}"
        asked = ("--model", "openai/test", "--api-base", address, "--max-retries", 0)
        run("--no-progress", "--arch", "direct,react", "-n", 2, *asked, "--out", out)
    if (out / "questions.parquet").exists():
        with pytest.raises(SystemExit):
            main(["publish", str(out), "--out", str(copy)])
    said = capfd.readouterr()
    text = left_behind(out, copy) + said.out + said.err
    assert seen
    header = seen[0].split()[1]
    secret = password or KEY
    forms = {header, secret, quote(secret, safe=""), json.dumps(secret)[1:-1], user_info or KEY, KEY}
    assert [form for form in forms if form in text] == []
    if status == 200:
        assert "[key]" in load(out).prediction[0]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("user_info", ["", "someone:pa~ss?w0rd>99"], ids=["key", "user info"])
def test_a_quoted_credential_is_nowhere_in_what_a_run_leaves(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, status: int, user_info: str
) -> None:
    out = tmp_path / "run"
    with echoing(status, lambda sent: quote(sent, safe="")) as (host, seen):
        address = f"http://{quote(user_info)}@{host}" if user_info else f"http://{host}"
        asked = ("--model", "openai/test", "--api-base", address, "--max-retries", 0)
        quiet("--arch", "direct", "-n", 2, *asked, "--out", out)
    printed = capfd.readouterr()
    text = left_behind(out) + printed.out + printed.err
    assert quote(seen[0].partition(" ")[2], safe="") not in text
    assert "[key]" in text


SECRET = "Zx81-9fe2-ffeb"  # of the environment
AGENT = f"""
import json, os, sys, urllib.request
key = "{SECRET}"  # as it may read it from its parent's environment

def ask(*messages):
    body = json.dumps({{"model": "m", "messages": messages}}).encode()
    headers = {{"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

user = {{"role": "user", "content": sys.stdin.read() + key}}
said = ask(user)
ask(user, said, {{"role": "tool", "tool_call_id": "a", "content": key}})
print(json.dumps({{"own_count": {{"input": 1, "why": key}}}}), file=sys.stderr)
print("the answer is", key)
"""


def test_a_secret_that_an_agent_says_is_in_nothing_that_the_run_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", SECRET)
    Path("agent.py").write_text(AGENT)
    reply = ServerReply("I ask.", tool_calls=(ToolCall("a", "clock", {"zone": "UTC"}),))
    with ModelServer(lambda request: reply if len(request["messages"]) == 1 else "the river") as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--out", tmp_path / "run")
        assert run("--agent", f"{sys.executable} agent.py", "-n", 1, *model) == 0
    assert load(tmp_path / "run").prediction[0] == "the answer is [key]"
    text = left_behind(tmp_path / "run")
    assert text.count("[key]") >= 4  # the answer, the observation, the count, the prompt
    assert SECRET not in text


def test_the_value_of_an_agents_own_variable_is_in_nothing_that_the_run_leaves(tmp_path: Path) -> None:
    """It is in no variable of ours: the agent's description alone says that it is secret, and the model repeats it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT.replace(f'"{SECRET}"', 'os.environ["SHOP_TOKEN"]'))
    (folder / "architecture.toml").write_text(
        'name = "shop"\ndescription = "an agent of a test"\n[agent]\n'
        f'command = [{json.dumps(sys.executable)}, "agent.py"]\n[agent.env]\nSHOP_TOKEN = "{SECRET}"\n'
    )
    with ModelServer(lambda _: f"you said {SECRET}") as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--out", tmp_path / "run")
        assert run("--arch", folder, "-n", 1, *model) == 0
        assert SECRET in json.dumps([entry.request for entry in server.books])
    assert SECRET not in left_behind(tmp_path / "run")


def test_a_key_that_ends_with_a_line_is_sent_without_it_and_nowhere_in_what_a_run_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef\n")
    with echoing(200) as (host, seen):
        asked = ("--model", "openai/test", "--api-base", f"http://{host}", "--out", tmp_path / "run")
        assert quiet("--arch", "direct", "-n", 1, *asked) == 0
    assert seen
    assert "0123456789abcdef" not in left_behind(tmp_path / "run")


@pytest.mark.parametrize("status", [200, 400])
def test_a_credential_in_the_query_of_an_address_is_sent_and_nowhere_in_what_a_run_leaves(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, status: int
) -> None:
    out = tmp_path / "run"
    with echoing(status) as (host, seen):
        address = f"http://{host}?api_key=secret12345678&version=2"
        asked = ("--model", "openai/test", "--api-base", address, "--max-retries", 0)
        run("--no-progress", "--arch", "direct", "-n", 2, *asked, "--out", out)
    printed = capfd.readouterr()
    text = left_behind(out) + printed.out + printed.err
    assert seen
    assert "secret12345678" not in text
    assert "/v1/chat/completions?api_key=[key]&version=2" in text or status == 400
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["options"]["api_base"].endswith("/v1?api_key=***&version=2")
    assert quiet("--resume", out) == 2
    assert "give --api-base again" in capfd.readouterr().err


def test_run_json_keeps_no_key_of_the_command_or_the_environment(tmp_path: Path) -> None:
    script = 'from rewoo_bench import bench; bench("direct", out="run", questions=1)'
    (tmp_path / "mine.py").write_text(script)
    command = [sys.executable, "mine.py", "--x=Zx81-9fe2-ffeb", "--y", "pk_order_line_items_2024"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "SERVICE_TOKEN": "Zx81-9fe2-ffeb"}, check=True)
    command = json.loads((tmp_path / "run" / "run.json").read_text())["command"]
    assert command == ["mine.py", "--x=[key]", "--y", "pk_order_line_items_2024"]


def test_only_the_pair_that_is_sent_is_taken_out_behind_basic() -> None:
    assert redact("Basic usage; Basic authentication failed") == "Basic usage; Basic authentication failed"
    assert redact("Basic bWU6cHc=", sent_in("http://me:pw@host")) == "Basic [key]"
