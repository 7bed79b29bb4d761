"""The embedded model, served for real: answers, constraints, cache, faults, and a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.hosted.client import ModelSettings
from rewoo_bench.models.local.catalogue import fetch, find_local_model
from rewoo_bench.models.local.server import LocalServer, Servers, ServerSettings, serve
from rewoo_bench.models.open import _local_file, open_model
from rewoo_bench.types import Message, Request

pytestmark = pytest.mark.model

SMALL = ServerSettings(context=1024)
PASSAGE = "Lyon lies where the Rhône meets the Saône. It is known for silk, cooking and the cinema. " * 6
YES_OR_NO = 'root ::= " yes" | " no"'


@pytest.fixture(scope="module")
def model_file() -> Path:
    return fetch(find_local_model("smollm2-135m"))


@pytest.fixture(scope="module")
def server(model_file: Path) -> Iterator[LocalServer]:
    running = LocalServer(model_file, SMALL)
    yield running
    running.close()


def post(server: LocalServer, path: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.api_base}/{path}", json={"temperature": 0, **body}, timeout=120, trust_env=False)


def completion(server: LocalServer, prompt: str, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = post(server, "completions", prompt=prompt, **body).raise_for_status().json()
    return answer


def test_a_transcript_is_gone_on_with(server: LocalServer) -> None:
    answer = completion(server, "The capital of France is", max_tokens=3)
    assert answer["choices"][0]["text"].startswith(" Paris")
    assert answer["usage"]["prompt_tokens"] == 5


def test_a_grammar_is_obeyed_in_both_forms(server: LocalServer) -> None:
    text = completion(server, "Is Lyon in Peru?", grammar=YES_OR_NO, max_tokens=8)["choices"][0]["text"]
    messages = [{"role": "user", "content": "Write a poem."}]
    answer = post(server, "chat/completions", messages=messages, grammar=YES_OR_NO, max_tokens=8).json()
    assert {text, answer["choices"][0]["message"]["content"]} <= {" yes", " no"}


def test_a_prefix_is_found_again_after_another_prompt(server: LocalServer) -> None:
    first = completion(server, PASSAGE + "Q: Which rivers meet?", max_tokens=1)["usage"]
    completion(server, "Quite another transcript. " * 40, max_tokens=1)
    second = completion(server, PASSAGE + "Q: What is it known for?", max_tokens=1)["usage"]
    assert first["prompt_tokens"] > 100
    assert second["prompt_tokens_details"]["cached_tokens"] > 0.9 * first["prompt_tokens"]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("asked_before", [0, 40, 300, -12])
def test_an_answer_does_not_depend_on_how_much_is_cached(server: LocalServer, asked_before: int) -> None:
    prompt = f"{asked_before} is the number of this text. {PASSAGE}Q: Which city is this about?\nA:"
    completion(server, prompt[:asked_before] or "Another one.", max_tokens=1)
    cached = completion(server, prompt, max_tokens=12, logprobs=1)
    fresh = completion(server, prompt, max_tokens=12, logprobs=1, cache_prompt=False)
    found = cached["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert found > 70 if asked_before in (300, -12) else found < 20
    logprobs = [[token["logprob"] for token in run["choices"][0]["logprobs"]["content"]] for run in (cached, fresh)]
    assert logprobs[0] == logprobs[1]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, r"can't read the model file '.*bad\.gguf': No such file"),
        (b"PK\x03\x04 a zip", r"not a GGUF model file: '.*bad\.gguf'"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    bad = tmp_path / "bad.gguf"
    if content is not None:
        bad.write_bytes(content)
    with pytest.raises(ModelNotFound, match=complaint) as failure:
        _local_file(str(bad))
    assert "\n" not in str(failure.value)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, model_file: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(model_file.read_bytes()[:-1])
    with pytest.raises(ModelNotFound, match=r"can't load '.*cut\.gguf'.*damaged"):
        LocalServer(cut, SMALL)


def test_a_server_says_its_models_size_and_a_context_no_longer_than_the_trained_one(model_file: Path) -> None:
    server = LocalServer(model_file, replace(SMALL, context=1 << 14))
    server.close()
    assert (server.parameters, server.settings.context) == (134515008, 8192)


def test_beside_busy_processes_a_model_takes_one_thread_and_says_that_it_is_slow(
    model_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        servers = Servers(model_file, SMALL, 1)
        assert servers.settings.threads == 1
        assert os.getsid(servers.all[0].pid) != os.getsid(0)  # a share of the cores of its own
        servers.close()
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    assert "cores busy, so the local model gets" in caplog.text


@pytest.mark.anyio
async def test_two_users_of_a_file_share_a_server(model_file: Path) -> None:
    async with serve(model_file, SMALL) as planner:
        async with serve(model_file, SMALL) as solver:
            assert solver is planner
        assert answers(planner.of("").address)
    assert not answers(planner.of("").address)


@pytest.mark.anyio
async def test_open_model_serves_a_name_and_a_file_alike(model_file: Path) -> None:
    question = [Message("user", "Is Paris in France? Answer:")]
    answers = []
    for name in ("local/smollm2-135m", f"local/{model_file}"):
        async with open_model(name, ModelSettings(reply_tokens=4)) as opened:
            answers.append((await opened.model.complete(Request(question, role="solver", grammar=YES_OR_NO))).text)
            assert opened.name == name
            assert opened.concurrency == 1
            assert opened.manifest["sha256"] == find_local_model("smollm2-135m").files[0].sha256
            assert (opened.manifest["style"], opened.manifest["constrain"]) == ("completion", "grammar")
    assert answers[0] == answers[1] in ("yes", "no", " yes", " no")


BUSY = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
import httpx
from rewoo_bench.models.local.server import ServerSettings, serve

ENDLESS = {"prompt": "a", "max_tokens": 900, "ignore_eos": True}

async def main():
    async with serve(Path(sys.argv[1]), ServerSettings(context=1024)) as servers:
        server = servers.of("")
        print(server.address, flush=True)
        async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
            await client.post(server.api_base + "/completions", json=ENDLESS)

asyncio.run(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_its_program_however_that_ends(model_file: Path, ending: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, str(model_file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        address = program.stdout.readline().strip()
        time.sleep(0.5)  # until the request is under way
        assert answers(address)
        program.send_signal(ending)
        _, errors = program.communicate(timeout=30)
    assert program.returncode != 0
    assert ("Traceback" in errors, "KeyboardInterrupt" in errors) == (ending is signal.SIGINT,) * 2
    assert any(not answers(address) for _ in range(100))


def answers(address: str) -> bool:
    """Whether something serves there still; waits a little before it says yes."""
    try:
        httpx.get(f"{address}/v1/models", timeout=10, trust_env=False).raise_for_status()
    except httpx.TransportError:
        return False
    time.sleep(0.1)
    return True


def test_a_run_on_it_never_loads_litellm(tmp_path: Path) -> None:
    code = (
        "import sys; from rewoo_bench.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print('loaded:', *({'litellm', 'openai'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", code, "run", "--arch", "direct", "-n", "1", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
