"""LangChain's `create_agent` as a worker: one JSON line a question, several at once.

in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
out:  {"id": "q-…", "answer": "…"}
"""

import asyncio
import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

INSTRUCTIONS = "You are a helpful assistant. Use the tools."


async def answer(job: dict[str, Any]) -> str:
    client = MultiServerMCPClient({"question": {"transport": "streamable_http", "url": job["mcp_url"]}})
    model = ChatOpenAI(model=job["model"], base_url=job["base_url"], api_key=job["api_key"])
    agent = create_agent(model, await client.get_tools(), system_prompt=INSTRUCTIONS)
    usage = UsageMetadataCallbackHandler()
    messages = {"messages": [{"role": "user", "content": job["question"]}]}
    try:
        state = await agent.ainvoke(messages, config={"callbacks": [usage]})
    finally:
        counts = usage.usage_metadata.values()
        tokens = {kind: sum(each[f"{kind}_tokens"] for each in counts) for kind in ("input", "output")}
        log({"id": job["id"], "own_count": {**tokens, "calls": None}})
    return str(state["messages"][-1].text)


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
