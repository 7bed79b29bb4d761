"""Pydantic AI's `Agent` as a worker: one JSON line a question, several at once.

in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
out:  {"id": "q-…", "answer": "…"}
"""

import asyncio
import json
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage

INSTRUCTIONS = "You are a helpful assistant. Use the tools."


async def answer(job: dict[str, Any]) -> str:
    provider = OpenAIProvider(base_url=job["base_url"], api_key=job["api_key"])
    model = OpenAIChatModel(job["model"], provider=provider)
    agent = Agent(model, instructions=INSTRUCTIONS, toolsets=[MCPToolset(job["mcp_url"])])
    usage = RunUsage()
    try:
        result = await agent.run(job["question"], usage=usage)
    finally:
        own = {"input": usage.input_tokens, "output": usage.output_tokens, "calls": usage.requests}
        log({"id": job["id"], "own_count": own})
    return str(result.output)


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
    asyncio.run(main())
