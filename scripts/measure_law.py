"""Holds the law of plan and loop (rewoo_bench/analysis/law.py) against the oracle.

    python scripts/measure_law.py sizes            # law_sizes.toml, from short chains: half a minute
    python scripts/measure_law.py errors           # results/law.csv, from a grid of others: some minutes
    python scripts/measure_law.py page             # results/law.md, from law.csv and the law

The oracle answers generated chains: no model is asked, and the numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pandas as pd
from law_map import MAPS
from numpy.typing import NDArray

from rewoo_bench import evaluate, load
from rewoo_bench.analysis.call_costs import priced, read_calls
from rewoo_bench.analysis.law import (
    ARCHITECTURES,
    DESIGNS,
    MOST_DEPTH,
    Design,
    Estimate,
    Sizes,
    Task,
    cost,
    estimate,
    large_tie,
)
from rewoo_bench.calls.meter import Call
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.evaluation.folder import Result, Results
from rewoo_bench.report.calculator import calculator_page
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.notation.grammars import plan_schema
from rewoo_bench.runners.notation.plan_formats import Notation
from rewoo_bench.runners.notation.tools import describe_functions, describe_tools
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.text.tables import markdown_table
from rewoo_bench.text.tokens import TOKENS_PER_MESSAGE, count_prompt, count_tokens, count_tool
from rewoo_bench.tools.factories import LLM
from rewoo_bench.tools.search import DocumentPages, Search
from rewoo_bench.types import Message, Usage

ROOT = Path(__file__).resolve().parents[1]
CALCULATOR = ROOT / "results" / "calculator.html"
ERRORS, PAGE = ROOT / "results" / "law.csv", ROOT / "results" / "law.md"
SIZES = ROOT / "rewoo_bench" / "analysis" / "law_sizes.toml"
WHOLE = "slot_tokens=99999&map_tokens=999999"
SEEN = "observation_tokens=99999&tools=Search"
LOOPS = ("loop", "loop-one", "loop-references", "react")
NAMES: dict[Design, str] = {
    design: f"{name}{'&' if '?' in name else '?'}{SEEN if design in LOOPS else WHOLE}"
    for design, name in ARCHITECTURES.items()
}
PRICES = ("none:gpt-5-mini", "openai:gpt-5-mini", "anthropic:claude-sonnet-4-5")
TIES = (*PRICES[:1], "openai:gpt-4o", "google:gemini-2.5-flash", *PRICES[1:])
CACHED = (*PRICES, "openai:gpt-4o", "anthropic:claude-haiku-4-5", "anthropic:claude-opus-4-5")
LEAN = ("plan-unread", "rewoo-unread", "code")
READER = count_prompt([Message("system", load_architecture("rewoo", style="multihop").tool_prompts["LLM"])])


@dataclass(frozen=True)
class Cell:
    """Generated chains of one shape; `words` is the length of pages, 0 for values that are passed on unread."""

    depth: int
    breadth: int = 1
    words: int = 0
    reasoning: int = 0

    @property
    def dataset(self) -> str:
        pages = f"words={self.words}" if self.words else "results=value"
        return f"chain?hops={self.depth}&width={self.breadth}&{pages}"

    @property
    def model(self) -> str:
        return f"oracle?reasoning={self.reasoning}" if self.reasoning else "oracle"


REFERENCE = [Cell(depth, breadth, words) for depth in (1, 2, 3) for breadth in (1, 2) for words in (0, 200)]
GRID = [
    *(Cell(depth, 1, words) for depth in (1, 2, 4, 8, 16) for words in (0, 40, 225, 1125, 4500)),
    *(Cell(depth, 3, words) for depth in (2, 4) for words in (0, 225)),
    *(Cell(4, 1, words, 200) for words in (0, 225)),
]


@dataclass(frozen=True)
class Measured:
    """What the oracle did with a cell in one design: its task, its questions, and dollars under each of `PRICES`."""

    task: Task
    results: list[Result]
    usd: dict[str, float]

    def calls(self, *roles: str) -> float:
        """Model calls of a question, of some roles or all."""
        return float(np.mean([len(_model_calls(each, *roles)) for each in self.results]))

    @property
    def tokens(self) -> float:
        """Those of a question."""
        return float(np.mean([sum(call.usage.total_tokens for call in _model_calls(each)) for each in self.results]))


def _model_calls(result: Result, *roles: str) -> list[Call]:
    return [call for call in result.calls if call.kind == "model" and (call.role in roles or not roles)]


def measure(cell: Cell, questions: int) -> dict[Design, Measured]:
    """Asks the oracle; the first question finds nothing in a cache, and is left out."""
    with tempfile.TemporaryDirectory() as folder:
        results = anyio.run(partial(_ask, cell, questions + 1, f"{folder}/run"))
        rows = load(f"{folder}/run")
        found = {name: priced(read_calls(Path(folder, "run"), rows), {"": named_tariff(name)}) for name in PRICES}
        of_rows = {name: read_calls(Path(folder, "run"), rows).of_rows(costs.usd) for name, costs in found.items()}
    first = results[0].task.example.id
    measured: dict[Design, Measured] = {}
    for design, name in NAMES.items():
        own = [each for each in results if each.task.architecture.name == name and each.task.example.id != first]
        if wrong := next((each for each in own if not (each.score and each.score.exact_match)), None):
            raise SystemExit(f"{cell.dataset}: {name} has no right answer to {wrong.task.example.id}")
        some = ((rows["architecture"] == name) & (rows["example_id"] != first)).to_numpy(bool)
        usd = {price: float(values[some].mean()) for price, values in of_rows.items()}
        measured[design] = Measured(_task(cell, own), own, usd)
    return measured


async def _ask(cell: Cell, questions: int, folder: str) -> Results:
    limit = cell.depth * cell.breadth * 2 + 2
    return await evaluate(
        cell.dataset,
        list(NAMES.values()),
        model=cell.model,
        questions=questions,
        max_steps=limit,
        out=folder,
        progress=False,
    )


def _task(cell: Cell, results: list[Result]) -> Task:
    """The shape of a cell: the tokens of questions and results are those of its own."""
    questions = [count_tokens(each.task.example.question) for each in results]
    starts = [count_tokens(hop.title) for each in results for hop in each.task.example.chain if not hop.needs]
    steps = [step for each in results for step in each.trajectory.steps if step.tool == "Search"]
    return Task(
        depth=cell.depth,
        breadth=cell.breadth,
        page=float(np.mean([count_tokens(step.observation) for step in steps])),
        reads=bool(cell.words),
        question=float(np.mean(questions)),
        name=float(np.mean([count_tokens(step.argument) for step in steps])),
        start=float(np.mean(starts)),
        reasoning=cell.reasoning,
    )


def sizes_of(design: Design, cells: Sequence[Measured]) -> Sizes:
    """The sizes of a design's texts: means, and least squares where several are in one prompt."""
    tools = {"Search": Search(DocumentPages(()))}
    described = describe_functions(tools) if design == "code" else describe_tools(tools, _notation(design))
    tool = count_tool(tools["Search"]) if design.startswith("loop") else count_tokens(described)
    measured = [(cell.task, each) for cell in cells for each in cell.results]
    if design in LOOPS:
        return _rounded(_loop_sizes(measured, tool))
    found = _rounded(_plan_sizes(design, measured, tool))
    if design not in ("plan", "plan-unread"):
        return found
    alone, with_another = plan_schema_tokens(0), plan_schema_tokens(1)
    return replace(found, schema=alone, schema_tool=with_another - alone)


def plan_schema_tokens(tools: int) -> int:
    """Tokens of a plan's JSON schema with the tool that reads and so many others, as long as Search's."""
    searches = {str(number): Search(DocumentPages(())) for number in range(tools)}
    schema = plan_schema({"LLM": LLM(ScriptedModel([]), ""), **searches}, 10)
    return count_tokens(json.dumps(schema, separators=(",", ":")))


def _notation(design: Design) -> Notation:
    return "text" if design.startswith(("react", "rewoo")) else "json"


def _loop_sizes(measured: Sequence[tuple[Task, Result]], tool: float) -> Sizes:
    turn = float(TOKENS_PER_MESSAGE)  # the mark of the message that has the calls
    agents, answers, calls, added = [], [], [], []
    for task, result in measured:
        sent = [call.usage for call in _model_calls(result)]
        turns: dict[str, list[float]] = {}  # the results of each turn
        for step in result.trajectory.steps:
            if step.tool == "Search":
                turns.setdefault(step.id.partition(".")[0], []).append(count_tokens(step.observation))
        agents.append(sent[0].input_tokens - count_tokens(result.task.example.question) - tool)
        answers.append(_written(sent[-1]) - (task.name or 0))
        answered = zip(sent[:-1], sent[1:], turns.values(), strict=True)
        for turn_number, (usage, following, pages) in enumerate(answered):
            together = len(pages) > task.breadth  # later calls take the results of earlier ones
            named = task.breadth if together else len(pages)
            asked = task.start if together or turn_number % task.depth == 0 else task.name or 0
            assert asked is not None
            calls.append((_written(usage) - named * asked, named, len(pages) - named))
            added.append(
                (following.input_tokens - usage.input_tokens - _written(usage) - sum(pages) - turn, len(pages))
            )
    written, named_calls, next_calls = np.array(calls).T
    call, next_call = np.linalg.lstsq(np.column_stack([named_calls, next_calls]), written, rcond=None)[0]
    seen, pages_seen = np.array(added).sum(axis=0)
    return Sizes(
        agent=float(np.mean(agents)),
        tool=tool,
        call=float(call),
        next_call=float(next_call),
        turn=turn,
        seen=float(seen / pages_seen),
        answer=float(np.mean(answers)),
    )


def _plan_sizes(design: Design, measured: Sequence[tuple[Task, Result]], tool: float) -> Sizes:
    planners, plans, found, requests, read, answers = [], [], [], [], [], []
    asked = 2
    for task, result in measured:
        breadth, following, start = task.breadth, (task.depth - 1) * task.breadth, task.start or 0.0
        reads = following if task.reads else 0
        planner, solver = (_model_calls(result, role)[0].usage for role in ("planner", "solver"))
        question = count_tokens(result.task.example.question)
        pages = [count_tokens(step.observation) for step in result.trajectory.steps if step.tool == "Search"]
        lasts = pages[task.depth - 1 :: task.depth] if task.reads and design in LEAN else pages
        planners.append(planner.input_tokens - question - tool)
        plans.append((_written(planner) - breadth * start, breadth, following, reads))
        rest = solver.input_tokens - asked * question - sum(lasts) - breadth * start - reads * (task.name or 0)
        found.append((rest, breadth, following, reads))
        answers.append(_written(solver) - (task.name or 0))
        if readers := [call.usage for call in _model_calls(result, "tool")]:
            read_pages = sum(pages) - sum(pages[task.depth - 1 :: task.depth])
            requests.append((sum(each.input_tokens for each in readers) - read_pages) / len(readers))
            read.append(np.mean([each.output_tokens for each in readers]) - (task.name or 0))
    frame, step, next_step, read_step = _fit(*np.array(plans).T)
    head, shown, next_shown, shown_read = _fit(*np.array(found).T)
    return Sizes(
        planner=float(np.mean(planners)),
        solver=head,
        reader=float(READER),
        tool=tool,
        frame=frame,
        step=step,
        next_step=next_step,
        read_step=read_step,
        shown=shown,
        next_shown=next_shown,
        shown_read=shown_read,
        request=float(np.mean(requests)) - READER,
        read=float(np.mean(read)),
        asked=asked,
        answer=float(np.mean(answers)),
    )


def _written(usage: Usage) -> int:
    return usage.output_tokens - usage.reasoning_tokens


def _fit(values: NDArray[np.float64], *columns: NDArray[np.float64]) -> list[float]:
    """A constant and a factor of each column, by least squares."""
    matrix = np.column_stack([np.ones(len(values)), *columns])
    return [float(value) for value in np.linalg.lstsq(matrix, values, rcond=None)[0]]


def _rounded(sizes: Sizes) -> Sizes:
    return Sizes(**{name: round(value, 2) for name, value in asdict(sizes).items()})


def write_sizes() -> None:
    """law_sizes.toml: the sizes of the bundled prompts, from short chains."""
    cells = [measure(cell, 8) for cell in REFERENCE]
    lines = [
        "# Tokens of the bundled architectures' texts (law.py), measured by scripts/measure_law.py with the oracle."
    ]
    for design in DESIGNS:
        lines += ["", f"[{design}]"]
        found = sizes_of(design, [cell[design] for cell in cells])
        lines += [f"{name} = {value:g}" for name, value in asdict(found).items() if value]
    SIZES.write_text("\n".join(lines) + "\n", "utf-8")


def errors() -> pd.DataFrame:
    """A row for each cell and design: calls, tokens and dollars of oracle and law."""
    lines = []
    for cell in GRID:
        for design, found in measure(cell, 8 if cell.words > 300 else 24).items():
            laws = {name: cost(design, found.task, named_tariff(name)) for name in PRICES}
            law = laws[PRICES[0]]
            line: dict[str, Any] = {**asdict(cell), "design": design, "n": len(found.results)}
            line |= {"page": found.task.page, "calls": found.calls(), "calls_law": law.calls}
            line |= {"tokens": found.tokens, "tokens_law": law.total_tokens}
            for name in PRICES:
                line |= {name: found.usd[name], f"{name} law": laws[name].usd}
            lines.append(line)
    return pd.DataFrame(lines)


DEPTHS, PAGES, VALUES = (1, 2, 4, 8, 16), (50, 300, 1500, 6000), (5, 20, 50)
SHAPES: dict[str, dict[str, Any]] = {
    "reasoning, but not in steps that read": {"reasoning": 200},
    "reasoning in every call": {"reasoning": 200, "readers_reason": True},
    "ten tools": {"tools": 10},
    "fifty tools": {"tools": 50},
}
"""What changes the ratio: the other tables are of one tool and no reasoning."""
CACHES = dict(zip(("no cache", "cache"), PRICES[:2], strict=True))
_TEXT = """\
<!-- made by scripts/measure_law.py page -->

# Plan or loop: the law

**Where a model must read each result, a loop of native tool calls costs less than a plan in JSON if repeated input is \
cheap. Without a cache the plan costs less from a few calls on, unless results are short.** The law calculates by how \
much, from the tokens that each design sends. It assumes that calls follow each other and that the model makes no \
mistakes.

{maps}

## A model reads each result

The numbers are the loop's dollars divided by the plan's, at gpt-5-mini's prices. Below 1 the loop is cheaper. Columns \
are tokens of a result; the cache follows OpenAI's rule. [The calculator](calculator.html) takes your own numbers.

{reads}

Reasoning (200 tokens a call) and tools change this:

{changes}

## Results are passed on

Here the next call takes the whole result, such as an id, and the plan passes it on with a placeholder. Where a call \
takes a field of a long result, a plan in JSON must have it read. A plan written as a program need not.

{passed_on}

## The tie

From this many calls on the plan is cheaper, where a model reads each result. With very long results the number is \
2 / r, where r is the price of cached input divided by that of fresh input. It is less where writing to the cache \
costs; there the plan also wins for a single call. "Never" means no such number up to {most}; "always" means that the \
plan is cheaper from the first call on.

{ties}

## Weak caches

Some models cache nothing below a long prompt, and gpt-4o takes half for cached input. The ratios are of six calls \
with results of 800 tokens and twelve tools.

{weak}

## Tools as billed

Above, tools count as their JSON, and a plan's schema is free. OpenAI bills half of that JSON for a loop's tools, and \
bills the schema. Anthropic adds a prompt to each call with tools \
([sheets](../docs/models.md#prices-and-caches)). A cell has the number as counted and as billed; ratios are \
of four calls.

{billed}

## How far it is from the oracle

We held the law against a simulated perfect model in {cases:,} cases ([law.csv](law.csv)). They have 1 to 16 calls in \
sequence, in 1 or 3 strands, with and without reasoning. Results have up to {longest:,.0f} tokens. The law knows the \
mean tokens of questions, names and results; its other sizes come from shorter chains. It makes as many calls as the \
oracle in every case. These are its largest errors:

{errors}
"""


def page(table: pd.DataFrame) -> str:
    """results/law.md, from the errors in law.csv and the law itself."""
    if (table["calls"] != table["calls_law"]).any():
        raise SystemExit("the law has another number of calls than the oracle")
    every = [(page, cache) for page in PAGES for cache in CACHES]
    short = [*((value, "no cache") for value in VALUES), (VALUES[-1], "cache")]
    tables = {
        "reads": [["calls", *_heads(every)], *([f"{depth}", *_ratios(every, depth)] for depth in DEPTHS)],
        "changes": _changes([(page, cache) for page, cache in every if page in PAGES[1:3]]),
        "passed_on": [
            ["calls", *_heads(short)],
            *([f"{depth}", *_ratios(short, depth, reads=False)] for depth in DEPTHS),
        ],
        "ties": _ties(),
        "weak": _weak_caches(),
        "billed": _tools_as_billed(),
        "errors": _errors(table),
    }
    return _TEXT.format(
        maps="\n".join(f"![{each.title}]({each.name}.svg)" for each in MAPS),
        most=MOST_DEPTH,
        cases=len(table),
        longest=table["page"].max(),
        **{name: "\n".join(markdown_table(cells)) for name, cells in tables.items()},
    )


def _heads(columns: Sequence[tuple[int, str]]) -> list[str]:
    return [f"{page:,}, {cache}" for page, cache in columns]


def _ratios(columns: Sequence[tuple[int, str]], depth: int, **shape: Any) -> list[str]:
    found = [estimate(CACHES[cache], depth=depth, page=page, **shape).ratio for page, cache in columns]
    return [f"{ratio:.2f}" for ratio in found]


def _changes(columns: Sequence[tuple[int, str]]) -> list[list[str]]:
    """The ratio with reasoning, and with more tools."""
    cells = [["with", "calls", *_heads(columns)]]
    for title, shape in SHAPES.items():
        cells += [[title, f"{depth}", *_ratios(columns, depth, **shape)] for depth in (1, 4, 16)]
    return cells


def _ties() -> list[list[str]]:
    """From how many calls on the plan is cheaper, by price."""
    cells = [["price", *(f"{page:,}" for page in PAGES), "very long"]]
    for found in ([estimate(name, depth=4, page=page) for page in PAGES] for name in TIES):
        cells.append([found[0].prices, *map(_tie, found), f"{large_tie(found[0].tariff):.1f}"])
    return cells


def _tie(of: Estimate) -> str:
    return f"{of.tie:.1f}" if of.tie is not None else "never" if of.ends_with_loop else "always"


def _weak_caches() -> list[list[str]]:
    """The ratio by what a cache wants and takes, cheapest loop first."""
    found = sorted((estimate(name, depth=6, page=800, tools=12) for name in CACHED), key=lambda each: each.ratio)
    cells = [["price", "cached from", "cached input costs", "loop / plan"]]
    for each in found:
        rule, share = each.tariff.rule, each.tariff.cache_read / each.tariff.input
        terms = [f"{rule.minimum_prefix_tokens:,} tokens", f"{share:.0%}"] if rule else ["never", "100%"]
        cells.append([each.prices, *terms, f"{each.ratio:.2f}"])
    return cells


def _tools_as_billed() -> list[list[str]]:
    """The ratio and the tie with tools as their JSON counts, and as each provider bills them."""
    pages = (300, 1500)
    cells = [["rule", "tools", *(f"{what}, {page:,}" for what in ("ratio", "tie") for page in pages)]]
    for name in PRICES[1:]:
        for tools in (1, 10, 50):
            pairs = [
                [estimate(name, depth=4, page=page, tools=tools, tools_as_billed=billed) for billed in (False, True)]
                for page in pages
            ]
            ratios = ["/".join(f"{each.ratio:.2f}" for each in pair) for pair in pairs]
            ties = ["/".join(map(_tie, pair)) for pair in pairs]
            cells.append([named_tariff(name).rule_name.removesuffix("'s rule"), str(tools), *ratios, *ties])
    return cells


def _errors(table: pd.DataFrame) -> list[list[str]]:
    """The largest error of each design."""
    off = {"tokens": table["tokens_law"] / table["tokens"] - 1}
    off |= {f"$, {named_tariff(name).name}": table[f"{name} law"] / table[name] - 1 for name in PRICES}
    largest = pd.DataFrame(off).abs().groupby(table["design"], sort=False).max()
    cells = [["design", "cases", *off]]
    for design in largest.index:
        count = int((table["design"] == design).sum())
        cells.append([str(design), str(count), *(f"{100 * value:.1f}%" for value in largest.loc[design])])
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sizes", "errors", "page"])
    what = parser.parse_args().what
    if what == "sizes":
        write_sizes()
    elif what == "errors":
        errors().to_csv(ERRORS, index=False, float_format="%.6g", lineterminator="\n")
    else:
        PAGE.write_text(page(pd.read_csv(ERRORS)), "utf-8")
        CALCULATOR.write_text(calculator_page(), "utf-8")


if __name__ == "__main__":
    main()
