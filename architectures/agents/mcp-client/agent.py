"""The tools over MCP's own client and the model over OpenAI's SDK, as a worker (../agent_worker.py)."""

import json
from typing import Any

from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from mcp import Client
from openai import AsyncOpenAI

MOST_TURNS = 10


async def answer(job: Job) -> str:
    count = {"input": 0, "output": 0, "calls": 0}
    try:
        async with (
            Client(job["mcp_url"]) as tools,
            AsyncOpenAI(base_url=job["base_url"], api_key=job["api_key"]) as model,
        ):
            return await converse(job, tools, model, count)
    finally:
        log_own_count(job, **count)


async def converse(job: Job, tools: Client, model: AsyncOpenAI, count: dict[str, int]) -> str:
    """A loop of tool calls until the model answers without one."""
    described: Any = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.input_schema}}
        for t in (await tools.list_tools()).tools
    ]
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": job["question"]}]
    for _ in range(MOST_TURNS):
        reply = await model.chat.completions.create(model=job["model"], messages=messages, tools=described)
        if reply.usage is not None:
            count["input"] += reply.usage.prompt_tokens
            count["output"] += reply.usage.completion_tokens
        count["calls"] += 1
        said = reply.choices[0].message
        if not said.tool_calls:
            return said.content or ""
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            found = await called(tools, call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


async def called(tools: Client, name: str, arguments: str) -> str:
    """The tool's answer; for a call that can't be made the reason, so that the model may try again."""
    try:
        result = await tools.call_tool(name, json.loads(arguments))
    except Exception as error:
        return f"Error: {error}"
    return "\n".join(part.text for part in result.content if part.type == "text")


if __name__ == "__main__":
    run_worker(answer)
