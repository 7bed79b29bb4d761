"""The key of a question is of no use to another one, nor after its end: sixteen questions at once try."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from dialect_server import DialectServer
from gateway_runs import check_books, rows, run_agents, write_agent

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

AT_ONCE, QUESTIONS = 16, 48
OPEN: dict[str, str] = {}
"""Key -> address of each question that is open."""
REFUSED: Counter[str] = Counter()
LATE: list[threading.Thread] = []


def post(base_url: str, key: str, question: str) -> int:
    """The status of a request with a question's text."""
    body = {"model": "gpt-x", "messages": [{"role": "user", "content": question}]}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{base_url}/chat/completions", json=body, headers=headers, timeout=30).status_code


def ask_late(base_url: str, key: str, question: str) -> None:
    """A request that is made after its question ended, while others are open."""
    time.sleep(0.3)
    try:
        status = post(base_url, key, question)
    except httpx.TransportError:  # the run has ended
        return
    REFUSED["late" if status == 401 else f"late: {status}"] += 1


def borrows_keys(question: str, *, base_url: str, api_key: str, model: str, tools: Any) -> str:
    """Asks with the key of another open question at its own address, and with its own key after its end."""
    OPEN[api_key] = base_url
    for other in [key for key in list(OPEN) if key != api_key][:3]:
        status = post(base_url, other, question)
        REFUSED["borrowed" if status == 401 else f"borrowed: {status}"] += 1
    assert post(base_url, api_key, question) == 200
    del OPEN[api_key]
    LATE.append(threading.Thread(target=ask_late, args=(base_url, api_key, question), daemon=True))
    LATE[-1].start()
    return "Neva"


def test_keys_of_other_questions_and_of_ended_ones_are_refused_counted_and_warned_of(
    capfd: pytest.CaptureFixture[str],
) -> None:
    agent = write_agent("borrows", callable="test_gateway_keys:borrows_keys")
    with DialectServer(lambda entry, nth: "slow") as provider:
        provider.slow_s = 0.4
        assert run_agents(provider, [agent], "--concurrency", AT_ONCE, questions=QUESTIONS) == 0
    for thread in LATE:
        thread.join()
    assert set(rows().stop_reason) == {"answered"}, list(rows().error.dropna())
    assert set(REFUSED) == {"late", "borrowed"}
    assert REFUSED["late"] >= QUESTIONS - 2 * AT_ONCE
    assert REFUSED["borrowed"] >= AT_ONCE
    counted = json.loads(Path("out", "run.json").read_text())["refused_requests"]
    assert set(counted) == {"/chat/completions"}
    assert REFUSED.total() - AT_ONCE <= counted["/chat/completions"] <= REFUSED.total()  # the last came behind the end
    assert capfd.readouterr().err.count("refused a request for /chat/completions") == 1
    assert len(provider.books) == rows().llm_calls.sum() == QUESTIONS
    check_books(provider)
