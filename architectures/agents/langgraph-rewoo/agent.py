"""ReWOO as a graph of LangGraph, as a worker (../agent_worker.py).

planner -> worker -> solver: all tool calls are planned at once, `Search[{"query": "#E1"}]` is run in order, and the
solver answers from the evidence. Source: Xu et al. 2023, arXiv 2305.18323.
"""

import json
import re
from typing import Any, TypedDict

from agent_worker import Job, log_own_count, run_worker
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

MAX_STEPS = 8
PLANNER = """Plan the tool calls that find the answer to a question. Don't answer it.

Tools:
{tools}

Write a line for each call, in this form. The arguments are JSON; #E1 in them stands for the result of the first call:
#E1 = Search[{{"query": "the words to search for"}}]"""
SOLVER = "Answer the question from the evidence. Give the answer alone, in as few words as possible."
STEP = re.compile(r"^\W*E(\d+)\s*=\s*(\w+)\[(.*)\]", re.MULTILINE)


class State(TypedDict):
    question: str
    plan: str
    evidence: str
    answer: str


def graph(model: ChatOpenAI, tools: list[BaseTool]) -> Any:
    by_name = {tool.name: tool for tool in tools}
    shown = "\n".join(f"{tool.name}: {tool.description} Arguments: {json.dumps(tool.args)}" for tool in tools)

    async def planner(state: State) -> dict[str, str]:
        reply = await model.ainvoke([("system", PLANNER.format(tools=shown)), ("user", state["question"])])
        return {"plan": str(reply.text)}

    async def worker(state: State) -> dict[str, str]:
        results: dict[str, str] = {}
        for number, name, arguments in STEP.findall(state["plan"])[:MAX_STEPS]:
            results[f"#E{number}"] = await call(by_name.get(name), arguments, results)
        return {"evidence": "\n".join(f"{each}: {text}" for each, text in results.items())}

    async def solver(state: State) -> dict[str, str]:
        facts = f"{state['plan']}\n\nEvidence:\n{state['evidence']}\n\nQuestion: {state['question']}"
        reply = await model.ainvoke([("system", SOLVER), ("user", facts)])
        return {"answer": str(reply.text)}

    built = StateGraph(State)
    for node in (planner, worker, solver):
        built.add_node(node.__name__, node)
    for start, end in ((START, "planner"), ("planner", "worker"), ("worker", "solver"), ("solver", END)):
        built.add_edge(start, end)
    return built.compile()


async def call(tool: BaseTool | None, arguments: str, results: dict[str, str]) -> str:
    """The result of a step, or its error. `#E1` is replaced in the values, so that quotation marks stay apart."""
    try:
        values = json.loads(arguments)
    except ValueError:
        return "error: the arguments are no JSON"
    if tool is None or not isinstance(values, dict):
        return "error: no such tool, or arguments that aren't a JSON object"
    for name, value in values.items():
        values[name] = re.sub(r"#E\d+", lambda match: results.get(match[0], match[0]), str(value))
    reply = await tool.ainvoke({"name": tool.name, "args": values, "id": "1", "type": "tool_call"})
    return str(reply.text)


async def answer(job: Job) -> str:
    client = MultiServerMCPClient({"question": {"transport": "streamable_http", "url": job["mcp_url"]}})
    model = ChatOpenAI(model=job["model"], base_url=job["base_url"], api_key=job["api_key"])
    usage = UsageMetadataCallbackHandler()
    try:
        state = await graph(model, await client.get_tools()).ainvoke(
            {"question": job["question"]}, config={"callbacks": [usage]}
        )
    finally:
        counts = usage.usage_metadata.values()
        tokens = {kind: sum(each[f"{kind}_tokens"] for each in counts) for kind in ("input", "output")}
        log_own_count(job, **tokens)
    return str(state["answer"])


if __name__ == "__main__":
    run_worker(answer)
