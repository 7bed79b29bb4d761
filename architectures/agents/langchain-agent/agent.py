"""LangChain's `create_agent` as a worker (../agent_worker.py)."""

from agent_worker import INSTRUCTIONS, Job, log_own_count, run_worker
from langchain.agents import create_agent
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def answer(job: Job) -> str:
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
        log_own_count(job, **tokens)
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    run_worker(answer)
