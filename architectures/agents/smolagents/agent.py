"""smolagents' `ToolCallingAgent` as a worker (../agent_worker.py), each in a thread."""

import asyncio

from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent
from smolagents.mcp_client import MCPClient


async def answer(job: Job) -> str:
    return await asyncio.to_thread(run, job)


def run(job: Job) -> str:
    model = OpenAIModel(job["model"], api_base=job["base_url"], api_key=job["api_key"])
    server = {"url": job["mcp_url"], "transport": "streamable-http"}
    with MCPClient(server, structured_output=False) as tools:
        agent = ToolCallingAgent(tools, model, instructions=INSTRUCTIONS, verbosity_level=LogLevel.OFF)
        try:
            return str(agent.run(job["question"]))
        finally:
            used = agent.monitor.get_total_token_counts()
            log_own_count(
                job, input=used.input_tokens, output=used.output_tokens, calls=len(agent.monitor.step_durations)
            )


if __name__ == "__main__":
    run_worker(answer)
