"""loomflow's ReAct as a worker (../agent_worker.py).

The memory is that of the process, as it is where one agent answers all questions: loomflow's default. Only the address
of the tools and of the model is new for each question.
"""

from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from loomflow import Agent, InMemoryMemory
from loomflow.mcp import MCPRegistry, MCPServerSpec
from loomflow.model.openai import OpenAIModel

MEMORY = InMemoryMemory()


async def answer(job: Job) -> str:
    model = OpenAIModel(job["model"], base_url=job["base_url"], api_key=job["api_key"])
    async with MCPRegistry([MCPServerSpec.http("question", job["mcp_url"])]) as tools:
        agent = Agent(INSTRUCTIONS, model=model, tools=tools, architecture="react", memory=MEMORY)
        result = await agent.run(job["question"])
        await agent.aclose()  # waits for its calls after the answer, which would have no question to belong to
    log_own_count(job, input=result.tokens_in + result.cached_tokens_in, output=result.tokens_out)
    return result.output


if __name__ == "__main__":
    run_worker(answer)
