"""The OpenAI Agents SDK as a worker: one JSON line a question, several at once.

in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
out:  {"id": "q-…", "answer": "…"}
"""

import asyncio
import json
import sys
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, RunHooks, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

INSTRUCTIONS = "You are a helpful assistant. Use the tools."


class Count(RunHooks[None]):
    """The framework's own count, which is lost with the result where a run fails."""

    usage = Usage()

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.usage = context.usage


async def answer(job: dict[str, Any]) -> str:
    client = AsyncOpenAI(base_url=job["base_url"], api_key=job["api_key"])
    model = OpenAIChatCompletionsModel(model=job["model"], openai_client=client)
    count = Count()
    try:
        async with MCPServerStreamableHttp(params={"url": job["mcp_url"]}) as server:
            agent = Agent("assistant", instructions=INSTRUCTIONS, model=model, mcp_servers=[server])
            result = await Runner.run(agent, job["question"], hooks=count)
    finally:
        used = count.usage
        own = {"input": used.input_tokens, "output": used.output_tokens, "calls": used.requests}
        log({"id": job["id"], "own_count": own})
    return str(result.final_output)


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
    set_tracing_disabled(True)  # it would be sent to OpenAI
    asyncio.run(main())
