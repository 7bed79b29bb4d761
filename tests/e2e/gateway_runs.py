"""Runs of external agents behind the gateway, asking a provider of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from command_runs import quiet
from dialect_server import DialectServer

from rewoo_bench.runs.folder import load


def write_questions(count: int) -> Path:
    """A file of questions in HotpotQA's form, each with a name of its own and a page to find."""
    rows = [
        {
            "_id": f"q{number:02}",
            "question": f"Which river is q{number:02}?",
            "answer": f"the river of q{number:02}",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": [["Kyiv", 0]],
            "context": [["Kyiv", ["Kyiv lies on a river.", " It is old."]], ["Oslo", ["Oslo lies on a fjord."]]],
        }
        for number in range(count)
    ]
    path = Path("questions.json")
    path.write_text(json.dumps(rows))
    return path


def write_agent(name: str, **settings: Any) -> Path:
    """The folder of an agent."""
    folder = Path(name)
    folder.mkdir(exist_ok=True)
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if not isinstance(value, dict)]
    tables = [
        f"[agent.{key}]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in value.items())
        for key, value in settings.items()
        if isinstance(value, dict)
    ]
    head = f'name = "{name}"\ndescription = "an agent of a test"\n[tools.Search]\n[tools.Calculator]\n[agent]\n'
    (folder / "architecture.toml").write_text("\n".join([head, *lines, *tables]) + "\n")
    return folder


def write_function(name: str) -> Path:
    """The folder of an agent that is a function of gateway_agents.py."""
    return write_agent(name.replace("_", "-"), callable=f"gateway_agents:{name}")


def write_program(name: str, text: str, **settings: Any) -> Path:
    """The folder of an agent that is a Python program."""
    folder = write_agent(name, command=["python", "agent.py"], **settings)
    (folder / "agent.py").write_text(text)
    return folder


def run_agents(provider: DialectServer, agents: list[Path], *flags: object, questions: int = 16) -> int:
    """A run of agents in this process; its exit code. The run's folder is `out`."""
    names = [word for agent in agents for word in ("--arch", agent.absolute())]
    asked = ("--dataset", write_questions(questions).absolute(), "--out", "out", "--max-retries", 3)
    model = ("--model", "openai/gpt-x", "--api-base", provider.api_base)
    return quiet(*names, *model, *asked, *flags)


def rows(folder: str = "out") -> pd.DataFrame:
    """The questions of a run."""
    return load(Path(folder))


def calls(folder: str = "out") -> pd.DataFrame:
    """The calls of a run."""
    return pd.read_parquet(Path(folder, "calls.parquet"))


def traces(folder: str = "out") -> list[dict[str, Any]]:
    """The lines of traces.jsonl."""
    return [json.loads(line) for line in Path(folder, "traces.jsonl").read_text().splitlines()]


def check_books(provider: DialectServer) -> None:
    """Each question's rows say what its requests took, and no request has the text of two questions."""
    assert all(len(entry.names) == 1 for entry in provider.books)
    by_row = rows().groupby("example_id").billed_tokens.sum().to_dict()
    by_ledger = {name: sum(entry.tokens.total for entry in provider.of(str(name))) for name in by_row}
    unequal = {name: [billed, by_ledger[name]] for name, billed in by_row.items() if billed != by_ledger[name]}
    assert not unequal
    assert sum(by_row.values()) == provider.total
