"""Make the external agents of a run ready: the gateway, their processes, their environments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from rewoo_bench.agents.runner import AgentRunner
from rewoo_bench.errors import UsageError
from rewoo_bench.models.open import OpenModel
from rewoo_bench.processes import ProcessGroups
from rewoo_bench.runners.architecture import Architecture

if TYPE_CHECKING:
    from rewoo_bench.agents.gateway import Gateway


async def connect_agents(
    architectures: Sequence[Architecture], opened: OpenModel, embeddings: OpenModel | None, stack: AsyncExitStack
) -> Gateway | None:
    """The gateway, where one of the architectures is an external agent; all ends with `stack`. Raises `UsageError`.

    `embeddings` is the model of `--embedding-model`.
    """
    agents = [architecture for architecture in architectures if isinstance(architecture.runner, AgentRunner)]
    if not agents:
        if embeddings is not None:
            raise UsageError("--embedding-model: no architecture of this run is an external agent; leave it out")
        return None
    if opened.wire_name is None:
        raise UsageError(
            f"{agents[0].name!r} is an external agent and needs a model over HTTP; {opened.name!r} has no endpoint: "
            "name a provider's model, or local/NAME"
        )
    from rewoo_bench.agents.gateway import Gateway  # its dialects take 15 ms, and few runs have an agent

    embedding_name = opened.embedding_name if embeddings is None else embeddings.wire_name
    gateway = await stack.enter_async_context(Gateway(opened.wire_name, embedding_name))
    groups = await stack.enter_async_context(ProcessGroups())
    for agent in agents:
        assert isinstance(agent.runner, AgentRunner)
        await agent.runner.connect(gateway, groups, stack)
    return gateway
