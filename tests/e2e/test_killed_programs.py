"""A run that is killed in the middle of a program calls nothing twice when it goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench import load
from rewoo_bench.testing.server import ModelServer

pytest.importorskip("pydantic_monty", reason="needs pydantic-monty (the extra code)")
pytestmark = pytest.mark.timeout(120)

PARTS = 6
PROGRAM = f'for n in range({PARTS}):\n    print(await LLM(f"part {{n}} of the whole"))'


def answer(request: dict[str, Any]) -> str:
    """A program at first, then its parts, then the answer."""
    last = str(request["messages"][-1]["content"])
    if part := re.fullmatch(r"(?:Question: )?part (\d) of the whole", last):
        return f"Answer: piece {part[1]}"
    return "Answer: Neva" if "piece" in last else f"```python\n{PROGRAM}\n```"


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rewoo_bench", "run", *map(str, arguments), "--no-progress", "--no-report"]
    env = {**os.environ, "OPENAI_API_KEY": "none"}
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def parts_of(server: ModelServer, since: int = 0) -> Counter[str]:
    """How often each part was asked for and answered."""
    found = Counter[str]()
    for entry in server.books[since:]:
        last = str(entry.request["messages"][-1]["content"])
        if (part := re.fullmatch(r"(?:Question: )?part (\d) of the whole", last)) and entry.status == 200:
            found[part[1]] += 1
    return found


def test_what_was_called_is_not_called_again(tmp_path: Path) -> None:
    with ModelServer(answer, latency_s=0.3) as server:
        asked = ("--arch", "rewoo-code", "-n", 1, "--model", "openai/test", "--api-base", server.api_base)
        run = start(*asked, "--out", tmp_path / "run")
        deadline = time.monotonic() + 60
        while sum(parts_of(server).values()) < 4 and time.monotonic() < deadline and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.communicate()
        before = len(server.books)
        resumed = start("--resume", tmp_path / "run")
        _, errors = resumed.communicate(timeout=60)
        assert resumed.returncode == 0, errors
        again = parts_of(server, before)
    assert not {"0", "1", "2"} & set(again)
    assert set(again) >= {"4", "5"}
    (row,) = load(tmp_path / "run").to_dict("records")
    assert (row["prediction"], row["stop_reason"], row["tool_calls"]) == ("Neva", "answered", PARTS)
    assert all(f"piece {n}" in (tmp_path / "run" / "traces.jsonl").read_text() for n in range(PARTS))
