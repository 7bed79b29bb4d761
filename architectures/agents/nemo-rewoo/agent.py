"""NVIDIA NeMo Agent Toolkit's `rewoo_agent` as a worker: one JSON line a question, several at once.

    in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
    out:  {"id": "q-…", "answer": "…"}

Its own count is of words between spaces: of the question as input, of the answer as output.
"""

import asyncio
import json
import sys
from typing import Any

from nat.builder.workflow_builder import WorkflowBuilder
from nat.data_models.api_server import ChatRequest, ChatResponse
from nat.data_models.config import Config
from nat.runtime.loader import PluginTypes, discover_and_register_plugins
from nat.runtime.session import SessionManager


def workflow(job: dict[str, Any]) -> Config:
    model = {"_type": "openai", "model_name": job["model"], "base_url": job["base_url"], "api_key": job["api_key"]}
    server = {"transport": "streamable-http", "url": job["mcp_url"]}
    agent = {"_type": "rewoo_agent", "llm_name": "model", "tool_names": ["question"]}
    return Config.model_validate(
        {
            "llms": {"model": model},
            "function_groups": {"question": {"_type": "mcp_client", "server": server}},
            "workflow": agent,
        }
    )


async def answer(job: dict[str, Any]) -> str:
    config = workflow(job)
    async with WorkflowBuilder.from_config(config=config) as builder:
        sessions = await SessionManager.create(config=config, shared_builder=builder)
        try:
            async with sessions.session() as session, session.run(ChatRequest.from_string(job["question"])) as runner:
                response = await runner.result(to_type=ChatResponse)
        finally:
            await sessions.shutdown()
    used = response.usage
    own = {"input": used.prompt_tokens, "output": used.completion_tokens, "calls": None}
    log({"id": job["id"], "own_count": own})
    return str(response.choices[0].message.content)


async def serve(job: dict[str, Any]) -> None:
    try:
        reply = {"answer": await answer(job)}
    except Exception as error:  # of the framework: this question's failure
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": job["id"], **reply}), flush=True)


def log(line: dict[str, Any]) -> None:
    print(json.dumps(line), file=sys.stderr, flush=True)


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        while line := await asyncio.to_thread(sys.stdin.readline):
            group.create_task(serve(json.loads(line)))


if __name__ == "__main__":
    discover_and_register_plugins(PluginTypes.CONFIG_OBJECT)
    asyncio.run(main())
