"""NVIDIA NeMo Agent Toolkit's `rewoo_agent` as a worker (../agent_worker.py).

Its own count is of words between spaces: of the question as input, of the answer as output.
"""

from agent_worker import Job, log_own_count, run_worker
from nat.builder.workflow_builder import WorkflowBuilder
from nat.data_models.api_server import ChatRequest, ChatResponse
from nat.data_models.config import Config
from nat.runtime.loader import PluginTypes, discover_and_register_plugins
from nat.runtime.session import SessionManager


def workflow(job: Job) -> Config:
    model = {"_type": "openai", "model_name": job["model"], "base_url": job["base_url"], "api_key": job["api_key"]}
    server = {"transport": "streamable-http", "url": job["mcp_url"]}
    agent = {"_type": "rewoo_agent", "llm_name": "model", "tool_names": ["question"]}
    return Config.model_validate(
        {
            "llms": {"model": model},
            "function_groups": {"question": {"_type": "mcp_client", "server": server}},
            "workflow": agent,
        }
    )


async def answer(job: Job) -> str:
    config = workflow(job)
    async with WorkflowBuilder.from_config(config=config) as builder:
        sessions = await SessionManager.create(config=config, shared_builder=builder)
        try:
            async with sessions.session() as session, session.run(ChatRequest.from_string(job["question"])) as runner:
                response = await runner.result(to_type=ChatResponse)
        finally:
            await sessions.shutdown()
    used = response.usage
    log_own_count(job, input=used.prompt_tokens, output=used.completion_tokens)
    return str(response.choices[0].message.content)


if __name__ == "__main__":
    discover_and_register_plugins(PluginTypes.CONFIG_OBJECT)
    run_worker(answer)
