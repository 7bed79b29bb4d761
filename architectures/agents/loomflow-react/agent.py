"""loomflow's ReAct as a worker: one JSON line a question, several at once.

    in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
    out:  {"id": "q-…", "answer": "…"}

The memory is that of the process, as it is where one agent answers all questions: loomflow's default. Only the address
of the tools and of the model is new for each question.
"""

import asyncio
import json
import sys
from typing import Any

from loomflow import Agent, InMemoryMemory
from loomflow.mcp import MCPRegistry, MCPServerSpec
from loomflow.model.openai import OpenAIModel

INSTRUCTIONS = "You are a helpful assistant. Use the tools."
MEMORY = InMemoryMemory()


async def answer(job: dict[str, Any]) -> str:
    model = OpenAIModel(job["model"], base_url=job["base_url"], api_key=job["api_key"])
    async with MCPRegistry([MCPServerSpec.http("question", job["mcp_url"])]) as tools:
        agent = Agent(INSTRUCTIONS, model=model, tools=tools, architecture="react", memory=MEMORY)
        result = await agent.run(job["question"])
        await agent.aclose()  # waits for its calls after the answer, which would have no question to belong to
    own = {"input": result.tokens_in + result.cached_tokens_in, "output": result.tokens_out, "calls": None}
    log({"id": job["id"], "own_count": own})
    return result.output


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
