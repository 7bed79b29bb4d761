"""`--dry-run`: estimates the calls, tokens and cost of a run without a model.

The architectures run with their own tools and prompts. In place of the model the oracle answers, where gold chain or
gold calls of every question are known: a model makes mistakes, so it takes more. Elsewhere `DryRunModel` answers as
the exemplars do: with an exemplar's plan, its turns one after the other, its answer. So the number of calls is that
of the exemplars, within the step limits, and the fixed parts of the prompts have their real length; replies and
evidence are a guess, and a loop without exemplars is taken to make one tool call. Exemplars are single questions: for
a task of several (`?objectives=`) an agent takes the turns of as many exemplars, and a plan counts as that of one
question. A judge is one call more for each answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from rewoo_bench.config.named import find_scorer
from rewoo_bench.config.price_table import given_entry
from rewoo_bench.config.specs import AGENT_NAME
from rewoo_bench.errors import RunStopped, UsageError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Task
from rewoo_bench.evaluation.prepare import ModelJudge
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.models.hosted.providers import find_route, price
from rewoo_bench.models.open import is_hosted
from rewoo_bench.models.oracle.model import Oracle
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.text.scoring import Scorer
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.tokens import count_prompt, count_tokens
from rewoo_bench.types import CallCost, Completion, Example, Message, Model, Request, ToolCall, Usage

MOST_QUESTIONS = 50  # run without a model; the estimate for more is in proportion
_ANSWER = "Answer: Copenhagen"


class DryRunModel:
    """A model that answers as the exemplars of an architecture's prompts do, of so many for several `objectives`."""

    name = "dry-run"

    def __init__(self, prompts: Prompts, objectives: int = 1) -> None:
        self._prompts = prompts
        self._objectives = objectives

    async def complete(self, request: Request) -> Completion:
        """The exemplar's next turn; without exemplars an answer, after one native tool call where tools are offered."""
        messages, tools = request.messages, request.tools
        text = self._reply(messages, request.role)
        calls: tuple[ToolCall, ...] = ()
        if tools and messages[-1].role == "user":
            given = {each.name: messages[-1].content[:60] for each in inputs(tools[0].arguments).items[:1]}
            text, calls = "", (ToolCall("1", tools[0].name, given),)
        written = count_tokens(text) + sum(count_tokens(f"{call.name} {call.arguments}") for call in calls)
        usage = Usage(input_tokens=count_prompt(messages, tools), output_tokens=max(1, written))
        return Completion(text, usage, tool_calls=calls, call_cost=CallCost(billed=usage, usage_source="estimated"))

    def _reply(self, messages: Sequence[Message], role: str) -> str:
        """The next turn of an exemplar; the question's hash chooses which. A planner has one that it isn't shown."""
        known = [(exemplars, exemplars) for exemplars in self._prompts.exemplars.values() if exemplars]
        known += [((), self._prompts.unshown[role])] if role == "planner" and role in self._prompts.unshown else []
        for shown, exemplars in known:
            shots = [message for exemplar in shown for message in exemplar]
            if list(messages[1 : 1 + len(shots)]) == shots:
                asked = messages[1 + len(shots) :]
                drawn = int.from_bytes(sha256(asked[0].content.encode()).digest()[:4], "big")
                several = [exemplars[(drawn + n) % len(exemplars)] for n in range(self._objectives)]
                written = [[shot.content for shot in each if shot.role == "assistant"] for each in several]
                turns = [turn for each in written for turn in each[:-1]] + written[-1][-1:]
                taken = sum(message.role == "assistant" for message in asked)
                return turns[min(taken, len(turns) - 1)]
        return _ANSWER


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimate for one architecture, over all questions and trials. `cost_usd` is None without a known price."""

    architecture: str
    questions: int
    llm_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    tokens_of_roles: Mapping[str, tuple[float, float]]
    """Input and output of the roles that have a model of their own, and of every other one (`""`)."""


async def estimate_run(
    examples: Sequence[Example],
    architectures: Sequence[Architecture],
    toolbox: Toolbox,
    scoring: str | Scorer,
    *,
    trials: int,
    models: Mapping[str, str],
    api_base: str | None = None,
    prices: Mapping[str, Mapping[str, float]] | None = None,
) -> list[RunEstimate]:
    """An estimate for each architecture, from at most `MOST_QUESTIONS` of the examples.

    Questions whose gold calls or chains are known are estimated by these, others by the steps of the exemplars.
    `models` maps a role to its model's name, `""` for every other role; `prices` to those that were given. Dollars are
    without a prefix cache.
    Raises `RunStopped` where an architecture crashes, and `UsageError` for an external agent.
    """
    if agent := next((each.name for each in architectures if each.spec.runner == AGENT_NAME), None):
        raise UsageError(f"--dry-run: the calls of an external agent can't be estimated; leave out {agent!r}")
    toolbox.changes_nothing = True
    some = examples[:MOST_QUESTIONS]
    times = len(examples) * trials / len(some)
    estimates = []
    for architecture in architectures:
        with_gold = all(example.actions or example.chain for example in some)
        as_exemplars = DryRunModel(architecture.prompts, find_scorer(scoring).objectives)
        asked_of: dict[str, Model] = {"": Oracle() if with_gold else as_exemplars, "judge": as_exemplars}
        evaluator = Evaluator(asked_of, scoring, toolbox, judge=ModelJudge() if "judge" in models else None)
        results = [await evaluator.run_task(Task(i, e, 0, architecture)) for i, e in enumerate(some)]
        if crashes := [crash for result in results for crash in result.crashes]:
            raise RunStopped(f"the dry run of {architecture.name!r} failed: {crashes[0].error}")
        used: dict[str, Usage] = {}  # by role
        calls = [call for result in results for call in result.calls if call.kind == "model"]
        for call in calls:
            role = call.role if call.role in models else ""
            used[role] = used.get(role, Usage()) + call.usage
        usage = sum(used.values(), Usage())
        costs = [_price(models[role], spent, api_base, (prices or {}).get(role)) for role, spent in used.items()]
        asked, made = round(len(some) * times), round(len(calls) * times)
        tokens = round(usage.input_tokens * times), round(usage.output_tokens * times)
        cost_usd = None if None in costs else times * sum(cost for cost in costs if cost is not None)
        of_roles = {role: (each.input_tokens * times, each.output_tokens * times) for role, each in used.items()}
        estimates.append(RunEstimate(architecture.name, asked, made, *tokens, cost_usd, of_roles))
    return estimates


def _price(model: str, usage: Usage, api_base: str | None, given: Mapping[str, float] | None) -> float | None:
    """Dollars; None where the price isn't known, as for a model of one's own."""
    if given:
        return given_entry(model, given, None).price(usage)
    return price(find_route(model, api_base), usage) if is_hosted(model) else None


def estimate_table(estimates: Sequence[RunEstimate], dollars: Sequence[float]) -> str:
    """A line for each architecture with its dollars, and their sum."""
    counts = [(each.questions, each.llm_calls, each.input_tokens, each.output_tokens) for each in estimates]
    rows = list(zip([each.architecture for each in estimates], counts, dollars, strict=True))
    if len(rows) > 1:
        q, calls, given, written = map(sum, zip(*counts, strict=True))
        rows.append(("all", (q, calls, given, written), sum(dollars)))
    cells = [["architecture", "questions", "LLM calls", "tokens in", "tokens out", "cost"]]
    cells += [[name, *(f"{count:,}" for count in numbers), f"${usd:,.4f}"] for name, numbers, usd in rows]
    return "\n".join(text_table(cells))
