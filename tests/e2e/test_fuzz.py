"""Endpoints that send anything at all: no traceback, no run that can't be resumed, and books that balance.

REWOO_BENCH_FUZZ_REPLIES=10000 pytest tests/e2e/test_fuzz.py puts as many replies to each test.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from answering import examples
from asking import run
from endpoints import ARCHITECTURES, answer
from hostile import failures, raw_responses, refusals, sound_replies, unsound_replies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewoo_bench.errors import RewooBenchError
from rewoo_bench.testing.server import ModelServer, ServerFault, ServerReply

REPLIES_A_RUN = 20
REPLIES = int(os.environ.get("REWOO_BENCH_FUZZ_REPLIES", "400"))
hostile_run = settings(
    max_examples=max(1, REPLIES // REPLIES_A_RUN),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=REPLIES == 400,  # the same in every run of CI
)
Sent = str | ServerReply | ServerFault


def asked(replies: Sequence[Sent], folder: Path, **settings: Any) -> tuple[ModelServer, list[Any], list[Any]]:
    """A run of all architectures against these replies, over and over; what it wrote."""
    coming = itertools.cycle(replies)
    with ModelServer(lambda _: next(coming)) as server:
        rows: list[Any] = []
        calls: list[Any] = []

        async def evaluate() -> None:
            nonlocal rows, calls
            rows, calls = await run(folder, server, examples(1), ARCHITECTURES, patience={"max_retries": 1}, **settings)

        with suppress(RewooBenchError):  # a run may be stopped with a reason, never by a traceback
            anyio.run(evaluate)
    return server, rows, calls


@hostile_run
@given(st.lists(st.one_of(sound_replies(), unsound_replies(), raw_responses(), refusals, failures),
                min_size=REPLIES_A_RUN, max_size=REPLIES_A_RUN))  # fmt: skip
def test_whatever_an_endpoint_sends_a_run_ends_and_can_be_resumed(replies: list[Sent]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked(replies, folder)
        with ModelServer(answer) as server:
            rows, _ = anyio.run(lambda: run(folder, server, examples(1), ARCHITECTURES))
        assert len(rows) == len(ARCHITECTURES)
        assert all(row["total_tokens"] >= 0 and row["billed_tokens"] >= 0 for row in rows)


@hostile_run
@given(st.lists(st.one_of(sound_replies(), sound_replies(), refusals, failures),
                min_size=REPLIES_A_RUN, max_size=REPLIES_A_RUN))  # fmt: skip
def test_where_counts_are_sound_the_servers_books_equal_the_rows(replies: list[Sent]) -> None:
    with tempfile.TemporaryDirectory() as name:
        server, rows, calls = asked(replies, Path(name))
    if rows:
        assert sum(call["billed_tokens"] or 0 for call in calls) == server.totals().total_tokens
        assert {call["usage_source"] for call in calls if call["kind"] == "model"} <= {"provider", None}


def test_the_lenient_answers_are_known_to_every_architecture(tmp_path: Path) -> None:
    with ModelServer(answer) as server:
        rows, _ = anyio.run(lambda: run(tmp_path, server, examples(1), ARCHITECTURES))
    assert {row["stop_reason"] for row in rows} == {"answered"}
