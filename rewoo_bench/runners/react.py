"""ReAct: think, act, observe, and call the model again with the whole trace.

Yao et al. 2022, arXiv 2210.03629. The text form, for any model:

    Thought: …
    Action: Search[…]
    Observation: …

In JSON, without thoughts, and with the results of earlier turns by name (the single-step agent of Otani et al. 2026,
arXiv 2605.08477):

    {"action": {"tool": "Search", "args": {"query": "{{E1}}"}}}
    Result of E2: …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ActionError, PlanError
from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.arguments import Arguments, show_call
from rewoo_bench.runners.notation.grammars import action_grammar, action_schema
from rewoo_bench.runners.notation.plan import substitute
from rewoo_bench.runners.notation.plan_checks import with_tool_names
from rewoo_bench.runners.notation.plan_formats import Notation, read_plan, write_action
from rewoo_bench.runners.notation.quoting import quoted
from rewoo_bench.runners.notation.replies import FINISH, Action, answer_in, parse_action
from rewoo_bench.runners.notation.tools import Finish, Observation, call_tool, describe_tools
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts, Shorten, checked_prompts
from rewoo_bench.text.loops import AT_LIMIT, first_repetition
from rewoo_bench.text.model_output import excerpt
from rewoo_bench.types import Hop, Message, Model, Request, Step, StopReason, Tool, Trajectory

NUDGE = "\nThese turns repeat themselves and bring nothing new. Do something else, or answer."

RepeatGuard = Literal["none", "nudge", "stop"]


class ReActSettings(BaseModel):
    """The `[settings]` table of a ReAct architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = Field(default=8, ge=1)
    """Turns, repair turns included."""
    max_repairs: int = Field(default=1, ge=0)
    """Unusable turns that the model may repair; the next one ends the question."""
    answer_at_limit: bool = False
    """Asks for the best answer after the last turn, in one more call; the row says `step_limit` all the same."""
    repeat_guard: RepeatGuard = "none"
    """Once the turns so far end in a loop: nothing, a `nudge` that says so once, or the end of the question."""
    warn_turns: int = Field(default=0, ge=0)
    """Number of turns left from which on every observation states it; 0 never does."""
    shorten: Shorten = "truncate"
    """How an observation that is too long is shortened."""
    observation_tokens: int = Field(default=200, ge=1)
    """Tokens to which an observation is shortened."""
    quote_evidence: bool = False
    """Whether results in prompts are marked as data that gives no orders."""


class ReActLoop:
    """What the loops with these settings have in common. The placeholders are those of their `prompt`."""

    Settings: type[ReActSettings] = ReActSettings
    prompt = "agent"
    placeholders: Sequence[str] = ("tools", "max_steps")
    notation: Notation = "text"

    def __init__(self, prompts: Prompts, settings: ReActSettings | None = None) -> None:
        self.settings = settings or self.Settings()
        self.max_steps = self.settings.max_steps
        self.prompts = checked_prompts(prompts, self.settings, {self.prompt: self.placeholders}, [self.prompt])

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """A turn for each hop, and one for the answer."""
        return len(chain) + 1


class ReActTurns:
    """The tool calls of one question, observed. `steps` holds them in order."""

    def __init__(self, loop: ReActLoop, model: Model, tools: Mapping[str, Tool]) -> None:
        self.steps: list[Step] = []
        self._settings = loop.settings
        self.tools = tools
        self._notation = loop.notation
        self.evidence_budget = EvidenceBudget(
            loop.settings.shorten, model, loop.prompts, quote=loop.settings.quote_evidence
        )
        self._done: list[tuple[object, ...]] = []  # by each turn
        self._is_nudged = False

    async def act(self, id_: str, tool: str, arguments: Arguments, thought: str = "", fault: str = "") -> Step:
        """Calls a tool; with a `fault` the step has failed for that reason, and the tool isn't called."""
        argument = show_call(arguments)
        emit("step_started", id_, tool=tool, argument=argument)
        if fault:
            observation = Observation(f"ERROR: {fault}", failed=True)
        elif tool in self.tools:
            observation = await call_tool(self.tools[tool], arguments, self._notation)
        else:
            observation = Observation(
                f"ERROR: no tool {excerpt(tool)!r}; the tools are: {', '.join(self.tools)}", failed=True
            )
        text = await self.evidence_budget.shortened(
            id_, observation.text, query=f"{thought} {argument}", max_tokens=self._settings.observation_tokens
        )
        emit("step_finished", id_, observation=text, failed=observation.failed)
        return Step(id_, thought, tool, argument, text, observation.failed)

    def add(self, turn: int, *steps: Step) -> list[str]:
        """Adds the steps of a turn; returns their observations as the model is to see them."""
        self.steps += steps
        self._done.append(tuple((step.tool or step.thought, step.argument, step.observation) for step in steps))
        seen = [self.evidence_budget.shown(step.observation) for step in steps]
        if self._settings.repeat_guard == "nudge" and not self._is_nudged and first_repetition(self._done) is not None:
            self._is_nudged = True
            seen[-1] += NUDGE
        left = self._settings.max_steps - turn
        if 0 < left <= self._settings.warn_turns:
            seen[-1] += f"\n({left} turn{'s' if left > 1 else ''} left.)"
        return seen

    @property
    def is_stopped(self) -> bool:
        """Whether the guard ends the question: its turns repeat themselves."""
        return self._settings.repeat_guard == "stop" and first_repetition(self._done) is not None

    def end(self, answer: str | None, stop_reason: StopReason, replans: int = 0) -> Trajectory:
        """How the question ended; an answer at the step limit is partial."""
        emit("answered", answer=answer)
        partial = stop_reason == "step_limit" and answer is not None
        notes = {"partial_answer": partial, "cuts": self.evidence_budget.cuts}
        return Trajectory(answer, stop_reason, tuple(self.steps), replans=replans, notes=notes)


class ReAct(ReActLoop):
    """One model call a turn, each with the trace so far."""

    async def run(
        self, question: str, *, model: Model, tools: Mapping[str, Tool], before: Sequence[Step] = ()
    ) -> Trajectory:
        """Answers a question in at most `max_steps` turns; after them it ends as `step_limit`.

        `before` holds steps of an earlier phase; the model sees them as its own turns.
        """
        finish = self.finish()
        actions: dict[str, Tool | None] = {**tools, **finish}
        form = self.form(actions)
        turns = ReActTurns(self, model, tools)
        messages = self.prompts.conversation(
            "agent", f"Question: {question}", tools=self.describe(tools), max_steps=self.max_steps
        )
        for step in before:
            turn_before = Action(step.thought, step.tool or "", step.argument).as_turn()
            seen = turns.evidence_budget.shown(step.observation)
            messages += [Message("assistant", turn_before), Message("user", f"Observation: {seen}")]
        repairs = 0
        for turn in range(1, self.settings.max_steps + 1):
            id_ = self.step_id(turn)
            with at_place(f"turn {turn}"):
                completion = await model.complete(Request(messages, role="agent", stop=self.stop, **form))
                text = completion.text.strip()
                try:
                    written, action = self.read(text, actions, turns.steps)
                except ActionError as error:
                    turns.add(turn, Step(id_, thought=text, observation=str(error), failed=True))
                    if repairs == self.settings.max_repairs:
                        return turns.end(None, "unparsable")
                    repairs += 1
                    messages += [Message("assistant", text), Message("user", self.observed(id_, str(error)))]
                    continue
                if action.tool == FINISH:
                    answer = show_call(action.arguments)
                    turns.add(turn, Step(id_, action.thought, FINISH, answer))
                    return turns.end(answer, "answered")
                step = await turns.act(id_, action.tool, action.arguments, action.thought)
            [seen] = turns.add(turn, step)
            if turns.is_stopped:
                return turns.end(None, "repeated")
            messages += [Message("assistant", written), Message("user", self.observed(id_, seen))]
        if not self.settings.answer_at_limit:
            return turns.end(None, "step_limit")
        asked = f"{messages.pop().content}\nNo turn is left. Use {FINISH} now, with the best answer there is."
        messages.append(Message("user", asked))
        with at_place(AT_LIMIT):
            completion = await model.complete(Request(messages, role="agent", stop=self.stop, **self.form(finish)))
        try:
            partial = show_call(self.read(completion.text, finish, turns.steps)[1].arguments)
        except ActionError:
            partial = answer_in(completion.text)
        return turns.end(partial or None, "step_limit")

    # How a turn is written; JsonReAct writes it in another way.

    stop: Sequence[str] = ("\nObservation",)

    def finish(self) -> Mapping[str, Tool | None]:
        """The action that ends the question."""
        return {FINISH: None}

    def describe(self, tools: Mapping[str, Tool]) -> str:
        """The actions as the prompt lists them."""
        return describe_tools(tools)

    def form(self, actions: Mapping[str, Tool | None]) -> dict[str, Any]:
        """The fields of a request that describe a turn with one of these actions."""
        return {"grammar": action_grammar(actions)}

    def step_id(self, turn: int) -> str:
        """The name of a turn's step."""
        return str(turn)

    def read(self, text: str, actions: Mapping[str, Tool | None], done: Sequence[Step]) -> tuple[str, Action]:
        """A turn as it goes into the trace, and its action. Raises `ActionError`."""
        action = parse_action(text, actions)
        return action.as_turn(), action

    def observed(self, id_: str, text: str) -> str:
        """An observation, or what is wrong with a turn, as the model sees it."""
        return f"Observation: {text}"


class JsonReAct(ReAct):
    """ReAct with actions in JSON and no thoughts. An action may use the results of earlier ones, as in a plan."""

    notation: Notation = "json"
    stop: Sequence[str] = ("\nResult of",)

    def finish(self) -> Mapping[str, Tool | None]:
        return {FINISH: Finish()}

    def describe(self, tools: Mapping[str, Tool]) -> str:
        return describe_tools({**tools, FINISH: Finish()}, "json")

    def form(self, actions: Mapping[str, Tool | None]) -> dict[str, Any]:
        return {"schema": action_schema({name: tool for name, tool in actions.items() if tool})}

    def step_id(self, turn: int) -> str:
        return f"E{turn}"

    def read(self, text: str, actions: Mapping[str, Tool | None], done: Sequence[Step]) -> tuple[str, Action]:
        tools = {name: tool for name, tool in actions.items() if tool}
        try:
            step = with_tool_names(read_plan(text, "json", tools), tools).steps[0]
        except PlanError as error:
            raise ActionError(
                f'No action can be read: {error}. Write {{"action": {{"tool": …, "args": {{…}}}}}}.'
            ) from None
        if step.tool not in tools:
            raise ActionError(f"There is no tool {excerpt(step.tool)!r}. The tools are: {', '.join(tools)}.")
        quotes = self.settings.quote_evidence and getattr(tools[step.tool], "asks_model", False)
        results = {
            each.id: quoted(each.observation) if quotes else each.observation for each in done if not each.failed
        }
        if missing := [need for need in step.depends_on if need not in results]:
            raise ActionError(f"There is no result of {missing[0]}; there are: {', '.join(results) or 'none'}.")
        arguments = substitute(step.args, results)
        if step.tool == FINISH and not show_call(arguments).strip():
            raise ActionError(f"{FINISH} has no answer.")
        return write_action(step), Action(step.thought, step.tool, arguments)

    def observed(self, id_: str, text: str) -> str:
        return f"Result of {id_}: {text}"


def longest_path(chain: Sequence[Hop], *, passes_on: bool = False) -> int:
    """Hops of a gold chain that need each other, at most: the turns of a loop that does independent ones at once.

    Where it `passes_on` results that are values, a hop is done with those that it needs such values of.
    """
    depths: list[int] = []  # hops need only earlier hops
    for hop in chain:
        waits = (depths[need] + (0 if passes_on and chain[need].passes_on else 1) for need in hop.needs)
        depths.append(max(waits, default=1))
    return max(depths)
