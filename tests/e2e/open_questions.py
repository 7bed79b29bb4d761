"""An open question of an external agent, for tests that play the agent themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from rewoo_bench.agents.gateway import Gateway
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.calls.meter import Limits, Meter
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.types import Tool


@dataclass
class OpenQuestion:
    """`address` is the question's at its gateway; OpenAI's SDK wants `base_url`, Anthropic's the address."""

    session: AgentSession
    meter: Meter
    address: str

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"


@asynccontextmanager
async def open_question(
    api_base: str,
    name: str = "openai/gpt-x",
    *,
    limits: Limits | None = None,
    tools: Mapping[str, Tool] | None = None,
    api_key: str | None = "k",
    embedding_name: str | None = None,
) -> AsyncIterator[OpenQuestion]:
    """A gateway with one question, whose model is at `api_base`."""
    model = HostedModel(name, ModelSettings(api_base=api_base), api_key=api_key)
    meter = Meter({"": model}, limits)
    async with Gateway(model.wire_name, embedding_name) as gateway:
        with gateway.open_session(meter, meter.wrap(tools or {})) as session:
            async with anyio.create_task_group() as group:
                group.start_soon(session.serve)
                yield OpenQuestion(session, meter, gateway.address(session))
                group.cancel_scope.cancel()
    await model.aclose()
