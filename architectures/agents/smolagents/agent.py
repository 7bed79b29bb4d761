"""smolagents' `ToolCallingAgent` as a worker: one JSON line a question, several at once, each in a thread.

in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
out:  {"id": "q-…", "answer": "…"}
"""

import asyncio
import json
import sys
from typing import Any

from smolagents import LogLevel, OpenAIModel, ToolCallingAgent
from smolagents.mcp_client import MCPClient

INSTRUCTIONS = "You are a helpful assistant. Use the tools."


async def answer(job: dict[str, Any]) -> str:
    return await asyncio.to_thread(run, job)


def run(job: dict[str, Any]) -> str:
    model = OpenAIModel(job["model"], api_base=job["base_url"], api_key=job["api_key"])
    server = {"url": job["mcp_url"], "transport": "streamable-http"}
    with MCPClient(server, structured_output=False) as tools:
        agent = ToolCallingAgent(tools, model, instructions=INSTRUCTIONS, verbosity_level=LogLevel.OFF)
        try:
            return str(agent.run(job["question"]))
        finally:
            used = agent.monitor.get_total_token_counts()
            own = {"input": used.input_tokens, "output": used.output_tokens, "calls": len(agent.monitor.step_durations)}
            log({"id": job["id"], "own_count": own})


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
