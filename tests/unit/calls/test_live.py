"""Live calls: requests that are refused, and what is known of an endpoint."""

from __future__ import annotations

import pytest

from rewoo_bench.calls.live import LiveCalls, LiveModel
from rewoo_bench.errors import ModelError
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Message, Request

REQUEST = Request([Message("user", "Which river?")], role="agent")


async def refused(live: LiveCalls, error: ModelError, request: Request = REQUEST) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await LiveModel(live, ScriptedModel([error])).complete(request)
    return raised.value


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "unreachable", "is_refusal"),
    [(401, False, True), (403, False, True), (404, False, True), (301, False, True), (None, True, True),
     (400, False, False), (422, False, False), (500, False, False), (None, False, False)],
)  # fmt: skip
async def test_a_provider_that_refuses_or_is_not_there_is_told_from_one_that_fails(
    status: int | None, unreachable: bool, is_refusal: bool
) -> None:
    error = await refused(LiveCalls(), ModelError("no", status=status, unreachable=unreachable))
    assert bool(error.refused_by) == is_refusal


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "known"),
    [(400, (True, True)), (413, (True, True)), (422, (True, True)), (401, (False, True)), (500, (False, True))],
)
async def test_an_error_about_the_request_shows_that_key_and_address_are_right(
    status: int, known: tuple[bool, bool]
) -> None:
    live = LiveCalls()
    await refused(live, ModelError("no", status=status))
    assert live.endpoint_states() == {"ScriptedModel": known}
    other = LiveCalls()
    other.learn(live.endpoint_states())
    assert other.endpoint_states() == live.endpoint_states()
    other.learn({"ScriptedModel": (False, False)})
    assert other.endpoint_states() == live.endpoint_states()
