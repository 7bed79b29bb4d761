"""Events: told as they happen, to whoever listens to this question and nobody else."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from rewoo_bench.events import Event, emit, listening


def test_an_event_has_its_time_and_its_data() -> None:
    heard: list[Event] = []
    with listening(heard.append):
        emit("step_started", "E1", tool="Search")
    emit("answered")
    (event,) = heard
    assert (event.kind, event.step, event.data) == ("step_started", "E1", {"tool": "Search"})
    assert 0 <= event.at_s < 60


@pytest.mark.anyio
async def test_questions_at_once_are_heard_apart() -> None:
    heard: dict[str, list[str | None]] = {"a": [], "b": []}

    async def ask(name: str) -> None:
        with listening(lambda event: heard[name].append(event.step)):
            for number in range(3):
                await anyio.lowlevel.checkpoint()
                emit("step_started", f"{name}{number}")

    async with anyio.create_task_group() as group:
        for name in heard:
            group.start_soon(ask, name)
    assert heard == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"]}


def test_what_a_listener_raises_is_not_hidden() -> None:
    def fail(event: Event) -> None:
        raise ZeroDivisionError

    with listening(fail), pytest.raises(ZeroDivisionError):
        emit("answered")
