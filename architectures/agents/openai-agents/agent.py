"""The OpenAI Agents SDK as a worker (../agent_worker.py)."""

from typing import Any

from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from agents import Agent, OpenAIChatCompletionsModel, RunHooks, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI


class Count(RunHooks[None]):
    """The framework's own count, which is lost with the result where a run fails."""

    usage = Usage()

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.usage = context.usage


async def answer(job: Job) -> str:
    client = AsyncOpenAI(base_url=job["base_url"], api_key=job["api_key"])
    model = OpenAIChatCompletionsModel(model=job["model"], openai_client=client)
    count = Count()
    try:
        async with MCPServerStreamableHttp(params={"url": job["mcp_url"]}) as server:
            agent = Agent("assistant", instructions=INSTRUCTIONS, model=model, mcp_servers=[server])
            result = await Runner.run(agent, job["question"], hooks=count)
    finally:
        used = count.usage
        log_own_count(job, input=used.input_tokens, output=used.output_tokens, calls=used.requests)
    return str(result.final_output)


if __name__ == "__main__":
    set_tracing_disabled(True)  # it would be sent to OpenAI
    run_worker(answer)
