"""`--llama-server`: local models served by a llama-server of the user's own, started and ended with the run."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from processes import program_of, under

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.hosted.client import ModelSettings
from rewoo_bench.models.open import open_model
from rewoo_bench.runs.folder import load
from rewoo_bench.types import Message, Request

pytestmark = [pytest.mark.model, pytest.mark.anyio]

OWN = Path(__file__).with_name("llama_server.py")
QUESTION = [Message("user", "Is Paris in France? Answer:")]


@pytest.fixture
def program(tmp_path: Path) -> str:
    """An executable file, as a build leaves one."""
    file = tmp_path / "llama-server"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(OWN))} "$@"\n', "utf-8")
    file.chmod(0o755)
    return str(file)


async def test_it_answers_as_the_embedded_one_does_and_is_named_in_the_manifest(program: str) -> None:
    texts = []
    for own, arguments in ((None, None), (program, None), (f"{program} --repack", "--repack")):
        settings = ModelSettings(reply_tokens=4, llama_server=own)
        async with open_model("local/smollm2-135m", settings) as opened:
            completion = await opened.model.complete(
                Request(QUESTION, role="solver", grammar='root ::= " yes" | " no"')
            )
            texts.append(completion.text)
            assert completion.usage.input_tokens == 8
            assert opened.manifest.get("llama_server") == (own and "version: 9999 (f00dfeed)")
            assert opened.manifest.get("llama_server_arguments") == arguments
            assert ("xllamacpp" in opened.manifest) is (own is None)
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("no-such-program", r"--llama-server: 'no-such-program' can't be started"),
        (f"{shlex.quote(sys.executable)} --x", r"--llama-server: '.*python.*' is not a llama-server: it prints no ve"),
    ],
)
async def test_a_program_that_is_none_is_one_line(command: str, complaint: str) -> None:
    with pytest.raises(ModelNotFound, match=complaint) as failure:
        async with open_model("local/smollm2-135m", ModelSettings(llama_server=command)):
            pass
    assert "\n" not in str(failure.value)


SERVER_ENDED = r"the server of 'smollm2-135m.gguf' has ended \(signal SIGKILL"


@pytest.mark.nightly
@pytest.mark.by_day(1)
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc to find a run's processes in")
@pytest.mark.parametrize(
    ("own", "killed", "reason"),
    [
        (True, "llama_server.py", SERVER_ENDED),
        (False, "server_process.py", SERVER_ENDED),
    ],
)
def test_a_run_that_loses_a_process_stops_with_the_reason_and_goes_on_later(
    program: str, own: bool, killed: str, reason: str, tmp_path: Path
) -> None:
    script = Path(__file__).parents[2] / "scripts" / "run_bench.py"
    served = ["--llama-server", program] if own else []
    run = [sys.executable, str(script), "--arch", "direct", "-n", "15", *served, "--out", str(tmp_path / "run")]
    with subprocess.Popen(run, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        wait_for_an_answer(tmp_path / "run" / "journal.sqlite", process)
        (found,) = [pid for pid in under(process.pid) if killed in program_of(pid)]
        os.kill(found, signal.SIGKILL)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 3
    assert re.search(f"incomplete: {reason}", told), told
    rows = load(tmp_path / "run")
    assert 0 < len(rows) < 15
    assert rows["error"].isna().all()  # those in flight were not finished, which is no failure of theirs
    again = [sys.executable, str(script), "--resume", str(tmp_path / "run"), "--no-progress"]
    subprocess.run(again, check=True, capture_output=True, timeout=300)
    assert len(load(tmp_path / "run")) == 15


def wait_for_an_answer(journal: Path, process: subprocess.Popen[str]) -> None:
    """Until a question of the run has ended, which is long before all of them have."""
    address = f"{journal.as_uri()}?mode=ro"
    while process.poll() is None:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(address, uri=True)) as database:
            if database.execute("SELECT 1 FROM questions").fetchone():
                return
        time.sleep(0.02)
    raise AssertionError("the run ended before its first question did")
