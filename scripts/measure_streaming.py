"""What LLMCompiler's streamed plans gain: the same replies streamed and whole, beside ReWOO and ReAct.

    python scripts/measure_streaming.py                        # chain?hops=1&width=4, 24 questions
    python scripts/measure_streaming.py --dataset sample-parallel -n 20

A server of this process answers as the oracle would: after `--latency-ms` for each call, and `--token-ms` for each
token of the reply, streamed or not. Search takes `--tool-ms`. One question at a time; each is put to all architectures
before the next. Means per question, and paired ratios of latency with 95% intervals.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from pydantic import BaseModel

from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.models.hosted.client import HostedModel
from rewoo_bench.models.oracle.lookup_path import LookupPath
from rewoo_bench.models.oracle.replies import ParsedPrompt, write_reply
from rewoo_bench.notation.grammars import Form, Grammar
from rewoo_bench.paths import cache_dir
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.stats.paired import ratio_of_means
from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.tools import Corpus
from rewoo_bench.tools.wrapper import WrappedTool
from rewoo_bench.types import Example, Message, Tool, Usage

ARCHITECTURES = ("llmcompiler", "llmcompiler?stream=false", "rewoo", "react")
# How the system prompts begin, and the form of their replies; the LLM tool's is an answer.
_FORMS: dict[str, Form] = {
    "Make a plan": "plan",
    "Decide whether": "join or replan",
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
        form = _form_of(system, last, form)
        role = "tool" if "fact asked for" in system else "planner"
        prompt = ParsedPrompt.read(messages, example.question)
        text = write_reply(prompt, LookupPath(example), {"role": role, "grammar": Grammar("any", form)}, 1.0, True).text
        return ServerReply(text, usage=Usage(count_messages(messages), 0, count_tokens(text)))


def _form_of(system: str, last: str, form: Form | None) -> Form:
    if form == "plan" and "join()" in system:
        return "numbered plan"
    if form == "join or replan" and "No new plan is possible" in last:
        return "join"
    return form or "answer"


async def measure(dataset: Dataset, latency_s: float, token_s: float, tool_s: float) -> list[Result]:
    """Every question put to all architectures, one after the other."""
    results: list[Result] = []
    with ModelServer(OracleReplies(dataset.examples), latency_s=latency_s, token_delay_s=token_s) as server:
        model = HostedModel("openai/oracle", api_base=server.api_base, api_key="none")
        pages = Corpus.open(dataset.corpus, cache_dir()) if dataset.corpus else None
        evaluator = Evaluator({"": model}, dataset.scorer, SlowToolbox(tool_s, pages), concurrency=1)
        named = [load_architecture(name, style=dataset.style, tools=dataset.tools) for name in ARCHITECTURES]
        try:
            await evaluator.run(dataset.examples[:1], named, on_result=lambda _: None)  # connections, imports, caches
            await evaluator.run(dataset.examples, named, on_result=results.append)
        finally:
            await model.aclose()
    return results


def table(results: Sequence[Result]) -> list[str]:
    """A row an architecture."""
    by_name: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda each: each.task.index):
        by_name[result.task.architecture.name].append(result)
    base = [each.latency_s for each in by_name[ARCHITECTURES[0]]]
    columns = ["architecture", "n", "right", "model calls", "tool calls", "tokens", "latency, s", "times llmcompiler's"]
    lines = [f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    for name, own in by_name.items():
        ratio = ratio_of_means(base, [each.latency_s for each in own])
        mean = partial(_mean, own)
        right = sum(bool(each.score and each.score.exact_match) for each in own)
        lines.append(
            f"| {name} | {len(own)} | {right} | {mean(lambda r: _calls(r, 'model')):.1f} "
            f"| {mean(lambda r: _calls(r, 'tool')):.1f} | {mean(_tokens):,.0f} | {mean(lambda r: r.latency_s):.2f} "
            f"| {ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] |"
        )
    return lines


def _mean(results: Sequence[Result], value: Callable[[Result], float]) -> float:
    return sum(map(value, results)) / len(results)


def _calls(result: Result, kind: str) -> int:
    return sum(call.kind == kind for call in result.calls)


def _tokens(result: Result) -> int:
    return sum(call.usage.total_tokens for call in result.calls)


def main() -> None:
    parser = argparse.ArgumentParser(description="Streamed plans beside whole ones, ReWOO and ReAct.")
    parser.add_argument("--dataset", default="chain?hops=1&width=4")
    parser.add_argument("-n", type=int, default=24, help="number of questions")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--token-ms", type=float, default=20.0, help="of a token of the pinned tokenizer")
    parser.add_argument("--tool-ms", type=float, default=200.0)
    options = parser.parse_args()
    dataset = load_dataset_examples(options.dataset, limit=options.n)
    plan = '1. Search("Kuala Lumpur Tower")\n2. LLM("Which is it? Context: $1")\n3. join()'
    a_word = count_tokens(plan) / len(plan.split())  # the server's token is a word
    times = (options.latency_ms / 1000, a_word * options.token_ms / 1000, options.tool_ms / 1000)
    print("\n".join(table(anyio.run(measure, dataset, *times))))


if __name__ == "__main__":
    main()
