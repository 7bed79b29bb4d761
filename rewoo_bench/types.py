"""The data and the protocols that every other module speaks. Imports nothing of ours.

From a question to a row:

    Example --question--> Runner --messages--> Model --> Completion
                             |  --arguments--> Tool  --> str
                             +--> Trajectory --prediction--> scoring --> row

A `Runner` gets the question's text, a metered model and metered tools, and nothing else:
no gold answer, no counters, no limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Required, TypedDict, runtime_checkable

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Document:
    """A page that the search tool can find: its title and its text (one or more paragraphs)."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A step of a question's gold evidence chain: the page looked up and the value found on it.

    `needs` holds the positions (from 0) of the earlier hops whose value names this page.
    `foreseen` is False where only reading those hops' pages shows that this hop is needed at all,
    so that no plan made ahead can have it. Runners never see it; the oracle model and the data
    set's own tests do.
    """

    title: str
    value: str
    ask: str = ""
    needs: tuple[int, ...] = ()
    foreseen: bool = True


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its gold answers and the documents that come with it."""

    id: str
    question: str
    answers: tuple[str, ...]
    documents: tuple[Document, ...] = ()
    kind: str = ""
    chain: tuple[Hop, ...] = ()
    level: str = field(default="", repr=False)  # no part of the repr, by which generated questions are known again
    """How hard it is, in the data set's own word."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for in its provider's own form; `arguments` is parsed JSON.

    `echo` has what the provider wants back unchanged with the call in later requests, such as a
    thought signature: fields of the assistant's message, in the provider's own form.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    echo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation. Content is plain text that also reads well as a transcript.

    `ends_prefix` marks the last message that is the same for every question: a provider may cache up to there.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    ends_prefix: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls.

    `cached_input_tokens` (read from a cache) and `cache_write_tokens` (written to one, where the
    provider prices that) are parts of `input_tokens`; `reasoning_tokens` is a part of `output_tokens`.
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class CallCost:
    """What it took to get a completion, besides what the architecture asked for.

    `billed` is what was paid in this run, failed attempts included; it is zero for a replay, an
    answer that another run paid for. `measured_s` is how long the call took when an earlier session
    of this run made it; None where it was made now. `waiting` holds (start, end) of every queueing
    and back-off interval, in seconds of the monotonic clock. `cost_usd` is None where the price
    isn't known.
    """

    attempts: int = 1
    waiting: tuple[tuple[float, float], ...] = ()
    billed: Usage = Usage()
    cost_usd: float | None = None
    usage_source: Literal["provider", "estimated"] = "provider"
    replayed: bool = False
    measured_s: float | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer to a list of messages.

    `text` is the visible text alone; `thoughts` is the reasoning that came with it, for the trace.
    `discarded_tokens` counts what was written after the text should have stopped: paid for, thrown away.
    `finish_reason` is the provider's, or `reasoning_truncated` where the reply was cut while the model
    was still thinking, so that there is no visible text. `repairs` names what had to be changed in the
    reply before it could be kept, such as half surrogate pairs.
    """

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    call_cost: CallCost = CallCost()
    thoughts: str = ""
    discarded_tokens: int = 0
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a trajectory: why, what, and what came back.

    `id` is `E1`, `E2`, … in ReWOO and the turn's number in ReAct; `tool` is None for a turn
    without a usable action. `argument` is the text sent, placeholders already filled in.
    """

    id: str
    thought: str = ""
    tool: str | None = None
    argument: str = ""
    observation: str = ""
    failed: bool = False


StopReason = Literal[
    "answered",
    "empty_answer",
    "length_limit",
    "reasoning_truncated",
    "step_limit",
    "invalid_plan",
    "unparsable",
    "token_limit",
    "time_limit",
    "cost_limit",
    "error",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What a runner did with a question.

    `answer` is None where none was reached. `plan` is the plan as run (JSON-ready) and
    `evidence` the map from slot to text that the solver saw; both are None outside ReWOO.
    """

    answer: str | None
    stop_reason: StopReason
    steps: tuple[Step, ...] = ()
    plan: Sequence[Mapping[str, Any]] | None = None
    evidence: Mapping[str, str] | None = None
    replans: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


FaultMode = Literal["empty", "error", "timeout"]
"""How a tool call fails on purpose."""


class CompletionOptions(TypedDict, total=False):
    """What is asked of a model beside the messages, for whoever passes it on: the keywords of `Model.complete`."""

    role: Required[str]
    stop: Sequence[str]
    max_tokens: int | None
    tools: Sequence[Tool] | None
    schema: Mapping[str, Any] | None
    grammar: str | None


@runtime_checkable
class Model(Protocol):
    """A language model.

    `role` says which part of an architecture asks: planner, solver, agent, tool or judge.
    `grammar` (GBNF) and `schema` (JSON Schema) describe the only outputs that can be read; a
    model that can constrain its decoding does, another ignores them.

    Raises `ModelError` where the provider failed for good.
    """

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        role: str,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        tools: Sequence[Tool] | None = None,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
    ) -> Completion: ...


@runtime_checkable
class GoldAware(Protocol):
    """A model that has to know a question's gold: the oracle. The evaluator tells it; no runner does."""

    def with_gold(self, example: Example) -> Model: ...


@runtime_checkable
class Tool(Protocol):
    """Something an agent can call. Made anew for every question, since tools may hold state.

    `arguments` is a pydantic model; in text notations (`Search[…]`) the text is its first field.
    Two optional attributes tell a resumed run what to do: `stateful = True` for a tool that has to
    be called again so that its state is right, `asks_model = True` for one whose work is a model's.
    Raises `ToolError` where it can't do its work.
    """

    name: str
    description: str
    arguments: type[BaseModel]

    async def __call__(self, arguments: Any) -> str: ...


@runtime_checkable
class Runner(Protocol):
    """An agent architecture: the loop between a question and an answer."""

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory: ...
