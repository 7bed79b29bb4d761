"""jeevesagent's ReWOO as a worker: one JSON line a question, several at once.

    in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "tools_url": "…"}
    out:  {"id": "q-…", "answer": "…"}

The memory is that of the process, as it is by default where one agent answers all questions. The tools are functions:
its MCP client fails at a server over HTTP ("Attempted to exit cancel scope in a different task").
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from jeevesagent import Agent, InMemoryMemory
from jeevesagent.model.openai import OpenAIModel

INSTRUCTIONS = "You are a helpful assistant. Use the tools."
MEMORY = InMemoryMemory()


async def answer(job: dict[str, Any]) -> str:
    model = OpenAIModel(job["model"], base_url=job["base_url"], api_key=job["api_key"])
    async with httpx.AsyncClient(timeout=60) as client:
        agent = Agent(
            INSTRUCTIONS, model=model, tools=tools(client, job["tools_url"]), architecture="rewoo", memory=MEMORY
        )
        result = await agent.run(job["question"])
    log({"id": job["id"], "own_count": {"input": result.tokens_in, "output": result.tokens_out, "calls": None}})
    return result.output


def tools(client: httpx.AsyncClient, address: str) -> list[Callable[..., Awaitable[str]]]:
    async def post(name: str, **arguments: str) -> str:
        response = await client.post(f"{address}/{name}", json=arguments)
        return str(response.raise_for_status().json()["result"])

    async def Search(query: str) -> str:
        """Finds the page with a title, or the page that fits a few keywords best, and shows its first paragraph."""
        return await post("Search", query=query)

    async def Lookup(keyword: str) -> str:
        """Shows the next sentence with a keyword on the page that was found last."""
        return await post("Lookup", keyword=keyword)

    async def Calculator(expression: str) -> str:
        """Works out arithmetic, such as (1250 + 750) * 2."""
        return await post("Calculator", expression=expression)

    return [Search, Lookup, Calculator]


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
