"""jeevesagent's ReWOO as a worker (../agent_worker.py).

The memory is that of the process, as it is by default where one agent answers all questions. The tools are functions:
its MCP client fails at a server over HTTP ("Attempted to exit cancel scope in a different task").
"""

from collections.abc import Awaitable, Callable

import httpx
from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from jeevesagent import Agent, InMemoryMemory
from jeevesagent.model.openai import OpenAIModel

MEMORY = InMemoryMemory()


async def answer(job: Job) -> str:
    model = OpenAIModel(job["model"], base_url=job["base_url"], api_key=job["api_key"])
    async with httpx.AsyncClient(timeout=60) as client:
        agent = Agent(
            INSTRUCTIONS, model=model, tools=tools(client, job["tools_url"]), architecture="rewoo", memory=MEMORY
        )
        result = await agent.run(job["question"])
    log_own_count(job, input=result.tokens_in, output=result.tokens_out)
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


if __name__ == "__main__":
    run_worker(answer)
