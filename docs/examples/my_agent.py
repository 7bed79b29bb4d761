import os
import sys

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from shop_tools import price_of, stock_of

TOOLS = [stock_of, price_of]
model = ChatOpenAI(model=os.environ["REWOO_BENCH_MODEL"]).bind_tools(TOOLS)


def ask(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("ask", ask)
graph.add_node("tools", ToolNode(TOOLS))
graph.add_edge(START, "ask")
graph.add_conditional_edges("ask", tools_condition)
graph.add_edge("tools", "ask")

task = sys.stdin.read() + "\nUse the tools. Answer with the number alone."
print(graph.compile().invoke({"messages": [("user", task)]})["messages"][-1].text)
