"""Pydantic AI's `Agent` as a worker (../agent_worker.py)."""

from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage


async def answer(job: Job) -> str:
    provider = OpenAIProvider(base_url=job["base_url"], api_key=job["api_key"])
    model = OpenAIChatModel(job["model"], provider=provider)
    agent = Agent(model, instructions=INSTRUCTIONS, toolsets=[MCPToolset(job["mcp_url"])])
    usage = RunUsage()
    try:
        result = await agent.run(job["question"], usage=usage)
    finally:
        log_own_count(job, input=usage.input_tokens, output=usage.output_tokens, calls=usage.requests)
    return str(result.output)


if __name__ == "__main__":
    run_worker(answer)
