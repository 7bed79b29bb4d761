"""What LLMCompiler's streamed plans gain: the same replies streamed and whole, beside ReWOO and ReAct.

    python scripts/measure_streaming.py                        # chain?hops=1&width=4, 24 questions
    python scripts/measure_streaming.py --dataset sample-parallel -n 20 --rows rows.csv
    python scripts/measure_streaming.py --read rows.csv     # the table of these rows

A server of this process answers as the oracle would: after `--latency-ms` for each call, and `--token-ms` for each
token of the reply, streamed or not. Search takes `--tool-ms`. One question at a time; each is put to all architectures
before the next. Means per question, and paired ratios of latency with 95% intervals.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import pandas as pd
from pydantic import BaseModel

from rewoo_bench.analysis.stats.paired import ratio_of_means
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result, Results
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.models.oracle.gold_plan import LookupPath
from rewoo_bench.models.oracle.model import OracleWriter
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.notation.grammars import Grammar, ReplyForm
from rewoo_bench.system.files import cache_dir
from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.tools import Corpus
from rewoo_bench.types import Example, Message, Request, Tool, Usage, WrappedTool

COLUMNS = [
    "dataset",
    "architecture",
    "example_id",
    "exact_match",
    "llm_calls",
    "tool_calls",
    "total_tokens",
    "latency_s",
]
ARCHITECTURES = ("llmcompiler", "llmcompiler?stream=false", "rewoo", "react")
# How the system prompts begin, and the form of their replies; the LLM tool's is an answer.
_FORMS: dict[str, ReplyForm] = {
    "Make a plan": "plan",
    "Answer the question from the results": "join",
    "Answer the question in turns": "action",
}


class SlowTool(WrappedTool):
    """A tool that takes `seconds` longer."""

    def __init__(self, tool: Tool, seconds: float) -> None:
        super().__init__(tool)
        self._seconds = seconds

    async def __call__(self, arguments: BaseModel) -> str:
        await asyncio.sleep(self._seconds)
        return await self._tool(arguments)


class SlowToolbox(Toolbox):
    """Tools of which those without a model take `seconds` longer."""

    def __init__(self, seconds: float, pages: Corpus | None) -> None:
        super().__init__(pages)
        self._seconds = seconds

    def tools(self, *args: Any, **kwargs: Any) -> dict[str, Tool]:
        made = super().tools(*args, **kwargs)
        return {name: tool if name == "LLM" else SlowTool(tool, self._seconds) for name, tool in made.items()}


class OracleReplies:
    """Answers requests of the bundled architectures about these questions, as the oracle would."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._by_question = {example.question: example for example in examples}
        self._last = examples[0]  # the LLM tool's prompt doesn't name the question

    def __call__(self, request: Mapping[str, Any]) -> ServerReply:
        messages = [Message(turn["role"], str(turn["content"])) for turn in request["messages"]]
        system, last = messages[0].content, messages[-1].content
        asked = [example for question, example in self._by_question.items() if f"Question: {question}" in last]
        trace = [e for q, e in self._by_question.items() if any(f"Question: {q}" == m.content for m in messages)]
        example = self._last = ([*asked, *trace, self._last])[0]
        form = next((form for start, form in _FORMS.items() if system.startswith(start)), None)
        form = "numbered plan" if form == "plan" and "join()" in system else form or "answer"
        role = "tool" if "fact asked for" in system else "planner"
        request_to_oracle = Request(messages, role=role, grammar=Grammar("any", form))
        text = OracleWriter(LookupPath(example), request_to_oracle).reply()[0]
        return ServerReply(text, usage=Usage(count_messages(messages), 0, count_tokens(text)))


async def measure(dataset: Dataset, latency_s: float, token_s: float, tool_s: float) -> list[Result]:
    """Every question put to all architectures, one after the other."""
    results: list[Result] = []
    with ModelServer(OracleReplies(dataset.examples), latency_s=latency_s, token_delay_s=token_s) as server:
        model = HostedModel("openai/oracle", ModelSettings(api_base=server.api_base), api_key="none")
        pages = Corpus.open(dataset.corpus, cache_dir()) if dataset.corpus else None
        evaluator = Evaluator({"": model}, dataset.scorer, SlowToolbox(tool_s, pages), concurrency=1)
        named = [load_architecture(name, style=dataset.style, tools=dataset.tools) for name in ARCHITECTURES]
        try:
            await evaluator.run(dataset.examples[:1], named, on_result=lambda _: None)  # connections, imports, caches
            await evaluator.run(dataset.examples, named, on_result=results.append)
        finally:
            await model.aclose()
    return results


def table(rows: pd.DataFrame) -> str:
    """A line for each architecture on each data set."""
    columns = ["questions", "n", "architecture", "right", "model calls", "tool calls", "tokens", "latency, s"]
    lines = [[*columns, "times llmcompiler's"], ["---", "---:", "---", *["---:"] * 6]]
    for (dataset, name), own in rows.groupby(["dataset", "architecture"], sort=False, observed=True):
        base = rows[(rows["dataset"] == dataset) & (rows["architecture"] == ARCHITECTURES[0])]
        ratio = ratio_of_means(base["latency_s"], own["latency_s"])
        means = own[["llm_calls", "tool_calls", "total_tokens", "latency_s"]].astype(float).mean()
        amounts = [format(each, form) for each, form in zip(means, (".1f", ".1f", ",.0f", ".2f"), strict=True)]
        times = f"{ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]" if name != ARCHITECTURES[0] else "1"
        lines.append([f"`{dataset}`", str(len(own)), f"`{name}`", str(own["exact_match"].sum()), *amounts, times])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Streamed plans beside whole ones, ReWOO and ReAct.")
    parser.add_argument("--dataset", default="chain?hops=1&width=4")
    parser.add_argument("-n", type=int, default=24, help="number of questions")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--token-ms", type=float, default=20.0, help="of a token of the pinned tokenizer")
    parser.add_argument("--tool-ms", type=float, default=200.0)
    parser.add_argument("--rows", help="write the rows here (CSV)")
    parser.add_argument("--read", nargs="+", help="print the table of such files, and measure nothing")
    options = parser.parse_args()
    if options.read:
        print(table(pd.concat(map(pd.read_csv, options.read))))
        return
    dataset = load_dataset_examples(options.dataset, limit=options.n)
    plan = '1. Search("Kuala Lumpur Tower")\n2. LLM("Which is it? Context: $1")\n3. join()'
    a_word = count_tokens(plan) / len(plan.split())  # the server's token is a word
    times = (options.latency_ms / 1000, a_word * options.token_ms / 1000, options.tool_ms / 1000)
    results = sorted(anyio.run(measure, dataset, *times), key=lambda each: each.task.index)
    rows = Results(results, {"run_id": "streaming", "dataset": dataset.name}).to_frame()[COLUMNS]
    if options.rows:
        rows.to_csv(options.rows, index=False, float_format="%.3f")
    print(table(rows))


if __name__ == "__main__":
    main()
