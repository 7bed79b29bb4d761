"""DSPy's `ReAct` as a worker (../agent_worker.py)."""

import dspy
from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from mcp import Client


async def answer(job: Job) -> str:
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
                log_own_count(job, **tokens, calls=len(model.history))
    return str(prediction.answer)


if __name__ == "__main__":
    run_worker(answer)
