"""DSPy's `ReAct` as a worker: one JSON line a question, several at once.

in:   {"id": "q-…", "question": "…", "model": "…", "base_url": "…", "api_key": "…", "mcp_url": "…"}
out:  {"id": "q-…", "answer": "…"}
"""

import asyncio
import json
import sys
from typing import Any

import dspy
from mcp import Client

INSTRUCTIONS = "You are a helpful assistant. Use the tools."


async def answer(job: dict[str, Any]) -> str:
    model = dspy.LM(f"openai/{job['model']}", api_base=job["base_url"], api_key=job["api_key"], cache=False)
    async with Client(job["mcp_url"]) as client:
        offered = (await client.list_tools()).tools
        tools = [dspy.Tool.from_mcp_tool(client, tool) for tool in offered]
        react = dspy.ReAct(dspy.Signature("question -> answer", INSTRUCTIONS), tools=tools)
        with dspy.context(lm=model), dspy.track_usage() as tracker:
            try:
                prediction = await react.acall(question=job["question"])
            finally:
                used = tracker.get_total_tokens().values()
                names = {"input": "prompt_tokens", "output": "completion_tokens"}
                tokens = {kind: sum(each.get(name) or 0 for each in used) for kind, name in names.items()}
                log({"id": job["id"], "own_count": {**tokens, "calls": len(model.history)}})
    return str(prediction.answer)


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
