"""The files and the entry points of a package with one plug-in of each kind, for the tests."""

from __future__ import annotations

AGENTS = '''
from pathlib import Path

from pydantic import BaseModel

from rewoo_bench import Completion, Message, Request, Score, Trajectory, Usage
from rewoo_bench.types import Example

FOLDER = Path(__file__).parent / "glance"


def questions():
    return Path(__file__).parent / "capitals"


class Echo:
    """Answers with the first words of the first page."""

    def __init__(self, prompts):
        pass

    async def run(self, question, *, model, tools):
        page = await tools["Search"](tools["Search"].arguments(query=question))
        completion = await model.complete(Request([Message("user", page)], role="agent"))
        return Trajectory(completion.text, "answered")


class Doubles(BaseModel):
    most: int = 5

    def examples(self, seed):
        for number in range(1, self.most + 1):
            yield Example(f"d{seed}-{number}", f"Twice {number}?", (str(2 * number),))


class Term(BaseModel):
    term: str


class Glossary:
    name = "Glossary"
    description = "explains a term."
    arguments = Term

    def __init__(self, documents, model):
        self.documents = documents
        self.model = model

    async def __call__(self, arguments):
        completion = await self.model.complete(Request([Message("user", arguments.term)], role="tool"))
        return f"{len(self.documents)} documents; {completion.text}"


class Constant:
    name = "constant"

    async def complete(self, request):
        return Completion("Paris", Usage(7, 0, 1))


def constant(name="constant"):
    return Constant()


def lenient(prediction, answers):
    match = any(answer.lower() in prediction.lower() for answer in answers)
    return Score(match, float(match))


class Asker:
    def __init__(self, prompts):
        pass

    async def run(self, question, *, model, tools):
        tool = tools["Glossary"]
        return Trajectory(await tool(tool.arguments(term=question)), "answered")
'''
FILES = {
    "my_agents/__init__.py": AGENTS,
    "my_agents/glance/architecture.toml": 'runner = "my_agents:Asker"\n[tools.Glossary]\n',
    "my_agents/capitals/dataset.toml": 'questions = "q.jsonl"\nscoring = "lenient"\n',
    "my_agents/capitals/q.jsonl": (
        '{"question": "The capital of France?", "answer": "Paris", '
        '"documents": [{"title": "France", "text": "The capital of France is Paris."}]}\n'
    ),
}
ENTRY_POINTS = {
    "rewoo_bench.architectures": {"glance": "my_agents:FOLDER", "echo": "my_agents:Echo"},
    "rewoo_bench.datasets": {"capitals": "my_agents:questions", "doubles": "my_agents:Doubles"},
    "rewoo_bench.tools": {"Glossary": "my_agents:Glossary"},
    "rewoo_bench.models": {"constant": "my_agents:constant"},
    "rewoo_bench.scorers": {"lenient": "my_agents:lenient"},
}
