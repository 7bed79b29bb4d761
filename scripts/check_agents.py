"""Run the agents of architectures/agents over questions of the sample, and print what the meter saw as a table.

    python scripts/check_agents.py --out /tmp/agents                                       # all of them, scripted
    python scripts/check_agents.py smolagents --model local/qwen.gguf --out /tmp/agents    # on a model

Without `--model` a server of this process answers: it asks for one search, where the agent shows it a tool for that,
and then answers. So calls and tokens are the framework's own, and the same on every machine. `--rows FILE` keeps a row
for each question as CSV; `--read FILE` prints the table of such a file.

Each agent gets a run of its own in the folder `--out`, and a second one of two questions with `--question-tokens`. A
run that is there already is read and not made again. Packages are installed by uv, below `--out`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pandas as pd

from rewoo_bench.agents.settings import AgentSettings, command_in_environment
from rewoo_bench.config.named import Named, read_architecture
from rewoo_bench.config.names import agents_folder
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.folder import JOURNAL_FILE
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.store import JournalReader, read_journal
from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.types import ToolCall

LIMITED_QUESTIONS = 2
GRACE_S = 5.0  # in which an agent may end by itself after a limit
LONGEST_SHARED = 60  # characters of a question that are looked for in the prompts of others
SHORTEST_ANSWER = 12  # characters; a shorter one may stand in a prompt by chance
HEADER = (
    *("agent", "framework", "answered", "model calls", "tokens", "its own count", "hidden calls"),
    *("earlier questions shown", "at the token limit", "errors"),
)
COUNTED = ("answered_calls", "hidden_calls", "calls_with_earlier_questions")
COLUMNS = (
    *("agent", "framework", "question", "stop_reason", "model_calls", "tokens", "own_tokens", *COUNTED),
    *("at_limit", "error"),
)
REPLY = "Kyiv is a city"


@dataclass(frozen=True)
class Question:
    """One question of a run: the row, the agent's own count, and its model calls as (prompt, reply)."""

    id: str
    text: str
    answer: str | None
    stop_reason: str
    error: str
    llm_calls: int
    tokens: int
    own: Mapping[str, Any] | None = None
    calls: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Checked:
    """What is known of an agent."""

    name: str
    framework: str
    installs: str
    questions: Sequence[Question] = field(default=())
    at_limit: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="agents; all where none is given")
    parser.add_argument("--model", help="the model of all agents  [default: a scripted one]")
    parser.add_argument("--api-base")
    parser.add_argument("-n", type=int, default=20, help="questions of the sample")
    parser.add_argument("--question-time", type=float, default=120.0, help="seconds of a question")
    parser.add_argument(
        "--question-tokens", type=int, help="tokens of a question in the second run  [default: 300, scripted 30]"
    )
    parser.add_argument("--out", type=Path, help="folder of the runs and of the installed packages")
    parser.add_argument("--rows", type=Path, help="write a row for each question here (CSV)")
    parser.add_argument("--read", type=Path, help="print the table of such a file, and run nothing")
    flags = parser.parse_args()
    if flags.read:
        return print(table(pd.read_csv(flags.read)))
    if not flags.out:
        parser.error("--out is missing")
    os.environ["REWOO_BENCH_CACHE"] = str(flags.out.absolute() / "cache")
    known = {path.parent.name: path.parent for path in sorted(agents_folder().glob("*/requirements.txt"))}
    with ModelServer(search_then_answer) as server:
        if not flags.model:
            flags.model, flags.api_base = "openai/scripted", server.api_base
            flags.question_tokens = flags.question_tokens or 30
        rows = rows_of(check(known[name], flags) for name in flags.names or known)
    if flags.rows:
        rows.to_csv(flags.rows, index=False)
    print(table(rows))
    return None


def check(folder: Path, flags: argparse.Namespace) -> Checked:
    """Installs an agent and runs it."""
    framework = framework_of(folder)
    try:
        installs = install(folder)
    except UsageError as error:  # the table says so
        return Checked(folder.name, framework, f"no: {error}")
    run, limited = flags.out / folder.name, flags.out / f"{folder.name}-limit"
    model = ["--model", flags.model, *(["--api-base", flags.api_base] if flags.api_base else [])]
    asked = [*model, "--question-time", str(flags.question_time), "--concurrency", "1"]
    if not bench(folder, run, [*asked, "-n", str(flags.n)]):
        return Checked(folder.name, framework, f"{installs}; it can't be run")
    bench(
        folder, limited, [*asked, "-n", str(LIMITED_QUESTIONS), "--question-tokens", str(flags.question_tokens or 300)]
    )
    return Checked(folder.name, framework, installs, anyio.run(read_run, run), behaviour(limited))


def bench(folder: Path, out: Path, flags: Sequence[str]) -> bool:
    """A run of the benchmark, where there is none yet; whether it has tables."""
    tables = out / "questions.parquet"
    if not tables.exists():
        command = [sys.executable, "-m", "rewoo_bench", "run", "--arch", str(folder), "--out", str(out), *flags]
        subprocess.run([*command, "--no-report", "--no-progress", "--quiet"], check=False)  # 1: some have failed
    return tables.exists()


def framework_of(folder: Path) -> str:
    """Package and version: that of `source`, as requirements.txt pins it."""
    package = read_architecture(Named(folder.name, folder)).source.rpartition("/")[2]
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return next(line.split(" ;")[0].replace("==", " ") for line in lines if line.startswith(f"{package}=="))


def install(folder: Path) -> str:
    """Size and time of the installation, as text."""
    spec = read_architecture(Named(folder.name, folder))
    began = time.monotonic()
    python = command_in_environment(AgentSettings(**{**spec.settings, "folder": str(folder)}))[0]
    took = time.monotonic() - began
    files = [path for path in Path(python).parents[1].rglob("*") if path.is_file() and not path.is_symlink()]
    size = f"{sum(path.stat().st_size for path in files) / 1e6:,.0f} MB"
    return f"{size}, {took:.0f} s" if took > 1 else size


async def read_run(run: Path) -> list[Question]:
    """The questions of a run, in the order asked, with the prompts and replies that its journal holds."""
    traces = map(json.loads, (run / "traces.jsonl").read_text(encoding="utf-8").splitlines())
    notes = {trace["example_id"]: trace["notes"] for trace in traces}
    rows = pd.read_parquet(run / "questions.parquet").sort_values("started_at").astype(object)
    async with read_journal(run / JOURNAL_FILE) as journal:
        return [
            Question(
                row["example_id"], row["question"], row["prediction"], row["stop_reason"], row["error"] or "",
                row["llm_calls"], row["total_tokens"], notes[row["example_id"]].get("own_count"),
                model_calls(journal, TaskKey(row["architecture"], row["example_id"], row["trial"])),
            )
            for row in rows.where(rows.notna(), None).to_dict("records")
        ]  # fmt: skip


def model_calls(journal: JournalReader, task: TaskKey) -> list[tuple[str, str]]:
    """Prompt and reply of each answered call of a question."""
    answered = [call for call in journal.calls(task) if call.key.kind == "model" and call.status == "ok"]
    return [("\n".join(journal.texts(call)), str(call.answer.get("text", ""))) for call in answered]


def behaviour(limited: Path) -> str:
    """What an agent does when a call is refused, since the question's tokens are spent."""
    if not (limited / "questions.parquet").exists():
        return "can't be run"
    rows = pd.read_parquet(limited / "questions.parquet")
    calls = pd.read_parquet(limited / "calls.parquet")
    busy = calls.groupby("example_id")["latency_s"].sum()
    idle = rows["latency_s"] - rows["example_id"].map(busy).fillna(0)
    reached = rows["stop_reason"] == "token_limit"
    if not reached.any():
        return "not reached"
    # The least, since the first question has the start of the agent in it.
    return "ends by itself" if idle[reached].min() < GRACE_S else f"goes on, is ended after {GRACE_S:.0f} s"


def hidden_calls(question: Question) -> int:
    """The calls after the one that gave the answer; where no reply has it, those that show it to the model."""
    answer = (question.answer or "").strip()
    if not answer:
        return 0
    gave = [number for number, (_, reply) in enumerate(question.calls, 1) if answer in reply]
    if gave:
        return len(question.calls) - gave[-1]
    return sum(len(answer) >= SHORTEST_ANSWER and answer in prompt for prompt, _ in question.calls)


def calls_with_earlier_questions(question: Question, questions: Sequence[Question]) -> int:
    """The calls whose prompt holds another question of the run."""
    others = [each.text[:LONGEST_SHARED] for each in questions if each.text != question.text]
    return sum(any(other in prompt for other in others) for prompt, _ in question.calls)


def rows_of(agents: Iterable[Checked]) -> pd.DataFrame:
    """A row for each question of each agent; one without a question for an agent that can't be run."""
    rows = []
    for agent in agents:
        about = {"agent": agent.name, "framework": agent.framework, "at_limit": agent.at_limit}
        rows += [{**about, **_row(question, agent.questions)} for question in agent.questions]
        if not agent.questions:
            rows.append({**about, "at_limit": "-", "error": agent.installs})
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(question: Question, questions: Sequence[Question]) -> dict[str, Any]:
    own = question.own or {}
    return {
        "question": question.id,
        "stop_reason": question.stop_reason,
        "model_calls": question.llm_calls,
        "tokens": question.tokens,
        "own_tokens": (own.get("input") or 0) + (own.get("output") or 0) if own else None,
        "answered_calls": len(question.calls),
        "hidden_calls": hidden_calls(question),
        "calls_with_earlier_questions": calls_with_earlier_questions(question, questions),
        "error": question.error.removeprefix("the agent failed: ")[:60].partition("\n")[0],
    }


def table(rows: pd.DataFrame) -> str:
    """A Markdown table, a line for each agent."""
    lines = [HEADER, ["---"] * len(HEADER), *(cells(asked) for _, asked in rows.groupby("agent", sort=False))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(asked: pd.DataFrame) -> list[str]:
    """The cells of an agent's line, from its rows."""
    name, framework, at_limit = asked[["agent", "framework", "at_limit"]].iloc[0]
    if asked["stop_reason"].isna().all():
        return [name, framework, *["-"] * (len(HEADER) - 3), asked["error"].iloc[0]]
    answered = (asked["stop_reason"] == "answered").sum()
    calls, hidden, shown = (int(asked[column].sum()) for column in COUNTED)
    return [
        *(name, framework, f"{answered} of {len(asked)}"),
        *(f"{asked['model_calls'].mean():.1f}", f"{asked['tokens'].mean():,.0f}", own_count(asked)),
        f"{hidden} of {calls}" if hidden else "0",
        f"in {shown} of {calls} calls" if shown else "no",
        at_limit or "-",
        errors(asked["error"]),
    ]


def own_count(asked: pd.DataFrame) -> str:
    """Its own tokens a question beside the meter's, over the questions for which there is a count."""
    counted = asked[asked["own_tokens"].notna()]
    if counted.empty:
        return "none"
    own, ours = counted["own_tokens"].mean(), counted["tokens"].mean()
    share = f", {own / ours - 1:+.0%}" if ours and own != ours else ""
    return f"{own:,.0f} of {ours:,.0f}{share} (n={len(counted)})"


def errors(told: pd.Series) -> str:
    kinds = Counter(error.replace("|", "/") for error in told.dropna() if error)
    return "; ".join(f"{count} × {kind}" for kind, count in kinds.most_common(2)) or "none"


def search_then_answer(request: Mapping[str, Any]) -> ServerReply:
    """A model that searches once, where it is given a tool for it, then answers, and has no more to say about that."""
    if REPLY in str(request["messages"][-1]["content"]):
        return ServerReply("[]")
    names = [str(tool["function"]["name"]) for tool in request.get("tools") or []]
    has_asked = any(turn["role"] == "assistant" for turn in request["messages"])
    for name in () if has_asked else names:
        if name.lower().endswith("search"):
            return ServerReply("", tool_calls=[ToolCall("call_1", name, {"query": "Kyiv"})])
    if "final_answer" in names:  # smolagents ends with a tool call
        return ServerReply("", tool_calls=[ToolCall("call_2", "final_answer", {"answer": REPLY})])
    return ServerReply(REPLY)


if __name__ == "__main__":
    main()
