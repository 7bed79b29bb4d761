"""What a run will take, before it takes anything: `--dry-run`.

The architectures themselves are run, with their own tools and prompts, and a stand-in for the model
that answers every prompt as its exemplars do: the plan of an exemplar, its turns one after the
other, its answer. So the number of calls is that of the exemplars, under the step limits, and the
prompts are as long as they will be; only what a model would write and find is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Unpack

from rewoo_bench.analysis.summary import aligned
from rewoo_bench.errors import RunStopped
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.model_names import LOCAL, REPLAY, is_oracle
from rewoo_bench.models.hosted.providers import find_route, price
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.prompts import Exemplar, Prompts
from rewoo_bench.scoring import Scorer
from rewoo_bench.text.prompt_parts import count_prompt
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import CallCost, Completion, CompletionOptions, Example, Message, ToolCall, Usage

MOST_QUESTIONS = 50  # that are rehearsed; more are reckoned from them
_ANSWER = "Answer: Copenhagen"


class DryRunModel:
    """A stand-in for a model: answers as the exemplars of an architecture's prompts do."""

    name = "rehearsal"

    def __init__(self, prompts: Prompts) -> None:
        self._exemplars = list(prompts.exemplars.values())

    async def complete(self, messages: Sequence[Message], **asked: Unpack[CompletionOptions]) -> Completion:
        """What an exemplar says at this point; where there is none, an answer, after a tool call where tools are."""
        text = self._reply(messages)
        calls: tuple[ToolCall, ...] = ()
        tools = asked.get("tools")
        if tools and messages[-1].role == "user":
            field = next(iter(tools[0].arguments.model_fields))
            text, calls = "", (ToolCall("1", tools[0].name, {field: messages[-1].content[:60]}),)
        written = count_tokens(text) + sum(count_tokens(f"{call.name} {call.arguments}") for call in calls)
        usage = Usage(input_tokens=count_prompt(messages, tools or ()), output_tokens=max(1, written))
        return Completion(text, usage, tool_calls=calls, call_cost=CallCost(billed=usage, usage_source="estimated"))

    def _reply(self, messages: Sequence[Message]) -> str:
        for exemplars in self._exemplars:
            shots = [message for exemplar in exemplars for message in exemplar]
            if shots and list(messages[1 : 1 + len(shots)]) == shots:
                return _turn(exemplars, messages[1 + len(shots) :])
        return _ANSWER


def _turn(exemplars: Sequence[Exemplar], talk: Sequence[Message]) -> str:
    """The next turn of the exemplar that falls to this question."""
    drawn = int.from_bytes(sha256(talk[0].content.encode()).digest()[:4], "big")
    turns = [message.content for message in exemplars[drawn % len(exemplars)] if message.role == "assistant"]
    taken = sum(message.role == "assistant" for message in talk)
    return turns[min(taken, len(turns) - 1)]


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What one architecture will take, over all questions and trials. `cost_usd` is None where no price is known."""

    architecture: str
    questions: int
    llm_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


async def estimate(
    examples: Sequence[Example],
    architectures: Sequence[Architecture],
    toolbox: Toolbox,
    scoring: str | Scorer,
    *,
    trials: int,
    models: Mapping[str, str],
    api_base: str | None = None,
) -> list[RunEstimate]:
    """An estimate for each architecture, from a rehearsal of at most `MOST_QUESTIONS` questions.

    `models` maps a role to the model that it will ask, `""` for every other role. Their prices are
    those without a prefix cache.
    """
    rehearsed = examples[:MOST_QUESTIONS]
    times = len(examples) * trials / len(rehearsed)
    found = []
    for architecture in architectures:
        evaluator = Evaluator({"": DryRunModel(architecture.prompts)}, scoring, toolbox)
        results = [await evaluator.run_task(Task(i, e, 0, architecture)) for i, e in enumerate(rehearsed)]
        if crashes := [crash for result in results for crash in result.crashes]:
            raise RunStopped(f"the rehearsal of {architecture.name!r} failed: {crashes[0].error}")
        found.append(_reckoned(architecture.name, results, times, models, api_base))
    return found


def _reckoned(
    name: str, results: Sequence[Result], times: float, models: Mapping[str, str], api_base: str | None
) -> RunEstimate:
    used: dict[str, Usage] = {}
    count = 0
    for call in (call for result in results for call in result.calls if call.kind == "model"):
        model = models.get(call.role) or models[""]
        used[model] = used.get(model, Usage()) + call.usage
        count += 1
    usage = sum(used.values(), Usage())
    prices = [_price(model, spent, api_base) for model, spent in used.items()]
    known = [cost for cost in prices if cost is not None]
    return RunEstimate(
        name,
        round(len(results) * times),
        round(count * times),
        round(usage.input_tokens * times),
        round(usage.output_tokens * times),
        sum(known) * times if len(known) == len(prices) else None,
    )


def _price(model: str, usage: Usage, api_base: str | None) -> float | None:
    """Dollars; None where the price isn't known, as for a model of one's own."""
    return None if model.startswith((LOCAL, REPLAY)) or is_oracle(model) else price(find_route(model, api_base), usage)


def table(estimates: Sequence[RunEstimate]) -> str:
    """One line an architecture, and their sum."""
    shown = [*estimates, _sum(estimates)] if len(estimates) > 1 else estimates
    cells = [["architecture", "questions", "LLM calls", "tokens in", "tokens out", "cost"]]
    for e in shown:
        counts = (e.questions, e.llm_calls, e.input_tokens, e.output_tokens)
        cost = "unknown" if e.cost_usd is None else f"${e.cost_usd:,.4f}"
        cells.append([e.architecture, *(f"{count:,}" for count in counts), cost])
    return "\n".join(aligned(cells))


def _sum(estimates: Sequence[RunEstimate]) -> RunEstimate:
    costs = [e.cost_usd for e in estimates if e.cost_usd is not None]
    return RunEstimate(
        "all",
        sum(e.questions for e in estimates),
        sum(e.llm_calls for e in estimates),
        sum(e.input_tokens for e in estimates),
        sum(e.output_tokens for e in estimates),
        sum(costs) if len(costs) == len(estimates) else None,
    )
