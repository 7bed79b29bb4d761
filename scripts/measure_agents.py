"""Plan or loop, for agents that act: the oracle on AgentDojo's 97 tasks.

    python scripts/measure_agents.py            # results/agents/: agents.csv, the table of README.md, done.svg
    python scripts/measure_agents.py --check    # whether they are what this makes

An agent without a mistake makes a task's gold calls, as far as its architecture lets it: what a plan can't foresee it
doesn't do (datasets/agentdojo/calls.json). Its costs are those of the tasks that every architecture does whole.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

import anyio
import numpy as np
import pandas as pd

import rewoo_bench
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.runs.columns import NO_LLM_ROLES
from rewoo_bench.text.tables import markdown_table
from rewoo_bench.worlds.dojo import SUITES, AgentDojo

FOLDER = Path(__file__).resolve().parents[1] / "results" / "agents"
ARCHITECTURES = {
    "rewoo": "papers'", "rewoo-lazy": "papers'", "llmcompiler?max_replans=8": "papers'", "react": "papers'",
    "rewoo-json": "today's", "rewoo-json?solver_evidence=unread": "today's", "react-native": "today's",
    "rewoo-code": "programs", "react-code": "programs",
}  # fmt: skip
"""The architectures, and their forms."""
WORDS, NOTHING = "direct", "(nothing)"
"""What answers with the right words without a call, and what does nothing at all."""
WAYS = {
    "a plan": "rewoo-json",
    "a program": "rewoo-code",
    "plan anew": "llmcompiler?max_replans=8",
    "a loop": "react-native",
}
BEGIN, END = "<!-- table: python scripts/measure_agents.py -->", "<!-- end -->"
_STYLE = """
text{font:13px system-ui,sans-serif;fill:#1b1b1b} .t{font-weight:600;font-size:15px} .d{fill:#5d5d5d;font-size:12px}
.e{text-anchor:end} .b{fill:#86b7e0} .r{fill:#e9e9e9}
@media (prefers-color-scheme:dark){text{fill:#ececec} .d{fill:#a5a5a5} .b{fill:#2d628f} .r{fill:#3a3d42}}
"""


def in_sequence(calls: pd.DataFrame) -> int:
    """Model calls of a question that wait for each other: steps of a plan at the same depth are made at once."""
    count, depths = 0, set[int]()
    for call in calls[calls["kind"] == "model"].sort_values("call_index").to_dict("records"):
        if call["role"] == "tool":
            depths.add(int(call["plan_depth"]))
        elif call["role"] not in NO_LLM_ROLES:
            count, depths = count + 1 + len(depths), set()
    return count + len(depths)


def measured(folder: Path) -> pd.DataFrame:
    """The rows of the oracle's run, with calls in sequence and dollars under each rule."""
    rewoo_bench.bench(
        architectures=[*ARCHITECTURES, WORDS], dataset="agentdojo", model="oracle", out=folder, progress=False,
        report=False,
    )  # fmt: skip
    rows = rewoo_bench.load(folder)
    for name, found in zip(SHOWN, priced_rows([folder], rows, [[name] for name in SHOWN]), strict=True):
        rows[f"usd:{name}"] = found.usd
    calls = pd.read_parquet(folder / "calls.parquet")
    keys = ["architecture", "example_id"]
    sequence = {key: in_sequence(of_question) for key, of_question in calls.groupby(keys)}
    asked = zip(*(rows[name].astype(str) for name in keys), strict=True)
    return rows.assign(in_sequence=[sequence.get(key, 0) for key in asked])


async def done_by_nothing() -> dict[str, bool]:
    """Whether each task's check is content where nothing was done and nothing said."""
    tasks = AgentDojo()
    worlds, verdicts = tasks.worlds(), dict[str, bool]()
    for example in tasks.examples(0):
        async with worlds.opened(example) as world:
            verdicts[example.id] = bool(await world.solved("", 60.0))
    return verdicts


def table_of(rows: pd.DataFrame, nothing: dict[str, bool]) -> pd.DataFrame:
    """A row for each architecture and part of the tasks: all, each suite, each number of gold calls."""
    rows = rows.assign(architecture=rows["architecture"].astype(str), difficulty=rows["difficulty"].astype(str))
    solved = rows.pivot_table(index="example_id", columns="architecture", values="exact_match", aggfunc="first").astype(
        bool
    )
    whole = set(solved.index[solved[list(ARCHITECTURES)].all(axis=1)])
    found = []
    parts = [("all", np.ones(len(rows), bool))]
    parts += [(suite, (rows["question_type"].astype(str) == suite).to_numpy()) for suite in SUITES]
    parts += [(level, (rows["difficulty"] == level).to_numpy()) for level in sorted(set(rows["difficulty"]))]
    for part, mask in parts:
        tasks = sorted(set(rows["example_id"][mask]))
        shared = [task for task in tasks if task in whole]
        for name in [*ARCHITECTURES, WORDS]:
            of_all = rows[mask & (rows["architecture"] == name)]
            costs = of_all[of_all["example_id"].isin(shared)]
            found.append({
                "tasks": part, "architecture": name, "form": ARCHITECTURES.get(name, ""), "n": len(of_all),
                "done": int(of_all["exact_match"].sum()), "n_shared": len(shared),
                "llm_calls": costs["llm_calls"].mean(), "in_sequence": costs["in_sequence"].mean(),
                "tool_calls": costs["tool_calls"].mean(), "total_tokens": costs["total_tokens"].mean(),
                **{f"usd_1000:{rule}": 1000 * costs[f"usd:{rule}"].mean() for rule in SHOWN},
            })  # fmt: skip
        found.append(
            {"tasks": part, "architecture": NOTHING, "n": len(tasks), "done": sum(nothing[task] for task in tasks)}
        )
    return pd.DataFrame(found).round(4)


def shown(table: pd.DataFrame) -> str:
    """The table of the page: all tasks."""
    rows = table[table["tasks"] == "all"].fillna({"form": ""})
    head = [
        "",
        "form",
        "tasks done",
        "model calls",
        "in sequence",
        "tokens",
        *(f"$ / 1000, {each}" for each in SHOWN.values()),
    ]
    body = []
    for row in rows.to_dict("records"):
        if row["architecture"] == NOTHING:
            body.append(["nothing done, nothing said", "", f"{row['done']}", *[""] * (len(head) - 3)])
            continue
        name = "the right words, without a call" if row["architecture"] == WORDS else row["architecture"]
        body.append([
            name, row["form"], f"{row['done']}", f"{row['llm_calls']:.1f}", f"{row['in_sequence']:.1f}",
            f"{row['total_tokens']:,.0f}", *(f"{row[f'usd_1000:{rule}']:.2f}" for rule in SHOWN),
        ])  # fmt: skip
    return "\n".join(markdown_table([head, *body]))


def picture(table: pd.DataFrame) -> str:
    """Bars: the share of each suite's tasks that each way of working can do."""
    parts, height, left, width = ["all", *SUITES], 0, 96, 200
    lines = ['<text class="t" x="8" y="22">Tasks that can be done without a mistake</text>']
    y = 40
    for part in parts:
        of_part = table[table["tasks"] == part].set_index("architecture")[["done", "n"]].astype(int)
        lines.append(f'<text x="8" y="{y + 13}">{part}</text>')
        for way, name in WAYS.items():
            done, n = of_part["done"][name], of_part["n"][name]
            lines += [
                f'<text class="d e" x="{left + 64}" y="{y + 12}">{way}</text>',
                f'<rect class="r" x="{left + 72}" y="{y}" width="{width}" height="15"/>',
                f'<rect class="b" x="{left + 72}" y="{y}" width="{width * done / n:.1f}" height="15"/>',
                f'<text class="d" x="{left + 78 + width}" y="{y + 12}">{done} of {n}</text>',
            ]
            y += 19
        y += 10
    height = y
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 440 {height}" role="img">'
    return "\n".join([head, f"<title>Tasks that can be done</title><style>{_STYLE}</style>", *lines, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="Write nothing; fail where a file differs.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = table_of(measured(Path(folder, "run")), anyio.run(done_by_nothing))
    text = io.StringIO()
    table.to_csv(text, index=False, lineterminator="\n")
    page = (FOLDER / "README.md").read_text("utf-8")
    before, rest = page.split(BEGIN)
    made = {
        "agents.csv": text.getvalue(),
        "done.svg": picture(table),
        "README.md": f"{before}{BEGIN}\n{shown(table)}\n{END}{rest.split(END, 1)[1]}",
    }
    for name, content in made.items():
        if not given.check:
            (FOLDER / name).write_text(content, "utf-8")
        elif (FOLDER / name).read_text("utf-8") != content:
            sys.exit(f"{FOLDER / name} is not what this makes; run it without --check")


if __name__ == "__main__":
    main()
