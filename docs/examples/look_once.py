from collections.abc import Mapping
from typing import Any

from rewoo_bench import Message, Model, Request, Step, Tool, Trajectory

RULE = "Answer the question from the page, in as few words as possible."


class LookOnce:
    def __init__(self, prompts: Any, settings: Any = None) -> None:
        self.prompts = prompts

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        search = tools["Search"]
        page = await search(search.arguments(query=question))
        messages = [Message("system", RULE), Message("user", f"{page}\n\nQuestion: {question}\nAnswer:")]
        completion = await model.complete(Request(messages, role="agent", max_tokens=32))
        step = Step("1", tool="Search", argument=question, observation=page)
        return Trajectory(completion.text.strip(), "answered", steps=(step,))
