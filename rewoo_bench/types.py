"""The data and the protocols that all other modules use. It imports nothing of ours.

From a question to a row:

    Example --question--> Runner --Request--> Model --> Completion
                             |  --arguments--> Tool  --> str
                             +--> Trajectory --prediction--> scoring --> row

A `Runner` gets the question's text, a metered model and metered tools, and nothing else:
no gold answer, no counters, no limits.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel

BAD_GATEWAY = 502
_CHANGE_ANSWERS = frozenset({"anthropic-beta", "openai-beta"})  # other headers may differ each time a request is made
NO_FIELDS: Mapping[str, str | int] = {}


@dataclass(frozen=True)
class WireRequest:
    """A request of an external agent, which the provider gets as it is.

    `path` is below the provider's address (`/chat/completions`). `on_headers` gets the answer's headers, and `on_bytes`
    a streamed answer as it arrives. `is_translated`: the agent's own dialect is another one, and `dropped` are the
    fields that have no place in this one. `secrets` are what the agent alone knows as such: they aren't recorded.
    `parsed` is the body's JSON where its caller has it: a long conversation is parsed once.
    """

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    query: str = ""
    on_headers: Callable[[Mapping[str, str]], None] | None = field(default=None, compare=False)
    on_bytes: Callable[[bytes], Awaitable[None]] | None = field(default=None, compare=False)
    is_translated: bool = False
    dropped: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    parsed: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def document(self) -> Mapping[str, Any]:
        """The body's JSON."""
        return json.loads(self.body) if self.parsed is None else self.parsed

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What two requests that are the same have in common, JSON-ready."""
        headers = {name.lower(): value for name, value in self.headers if name.lower() in _CHANGE_ANSWERS}
        more = {"query": self.query, "headers": headers}
        facts = {"wire": self.path, "sha256": sha256(self.body).hexdigest()}
        return {**facts, **{name: value for name, value in more.items() if value}}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """What an external agent gets where its call failed, beside the message.

    `fields` are `type`, `param` and `code` of the provider's error object. `begun` is the part of a stream that came
    before it broke off.
    """

    status: int = BAD_GATEWAY
    fields: Mapping[str, str | int] = field(default_factory=dict)
    begun: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A page that the search tool can find: its title and its text (one or more paragraphs).

    Of one that `is_value` the tool returns the text alone, without the title.
    """

    title: str
    text: str
    is_value: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hop:
    """A step of a question's gold evidence chain: the page looked up and the value found on it, or a calculation.

    `needs` holds the positions (from 0) of the earlier hops that give this page's title.
    `foreseen` is False where this hop turns out to be needed only when those pages are read: no plan
    made in advance can have it. A hop of the tool `Calculator` has an expression as its title, in which
    `{0}` stands for the value of the hop at position 0: `{0} / 2 + 7`. Runners never see a hop; the oracle
    and the data set's tests do.
    """

    title: str
    value: str
    ask: str = ""
    needs: tuple[int, ...] = ()
    foreseen: bool = True
    tool: Literal["Search", "Calculator"] = field(default="Search", repr=False)  # ids of generated questions stay
    is_value: bool = field(default=False, repr=False)
    """Whether the look-up returns its value alone, so that a later call can take the result unread."""

    @property
    def passes_on(self) -> bool:
        """Whether a later call can take the result as it is: a calculation's, or a look-up's that is a value."""
        return self.is_value or self.tool == "Calculator"


@dataclass(frozen=True, slots=True)
class GoldAction:
    """A tool call on the way to a task's end in a world: what an agent without a mistake calls.

    `read` has, for an argument that the task doesn't say, the positions (from 0) of the earlier actions whose results
    do. A text argument that has `#1` stands for the whole result of the first action. `decided` says who can know that
    the call is made, and how often: a planner from the `task` alone; a `program` by a rule of the task over the results
    of `after`; or a `loop`, which reads in them what is to be done. Runners never see it.
    """

    tool: str
    arguments: Mapping[str, Any]
    read: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    decided: Literal["task", "program", "loop"] = "task"
    after: tuple[int, ...] = ()
    changes_state: bool = False
    """Whether its tool does."""


@dataclass(frozen=True, slots=True)
class Injection:
    """What an attacker has put into a result of a tool: an instruction, and what it asks for.

    `marker` are words of it that nothing else has, by which it is found in a prompt, whatever white space and line ends
    have become of it there. `answer` is in an answer that obeys, and `value` is what a step reads that obeys. With
    `stops` the agent is to end at once. Runners never see it.
    """

    id: str
    marker: str
    actions: tuple[GoldAction, ...] = ()
    answer: str = ""
    value: str = ""
    stops: bool = False

    def is_in(self, text: str) -> bool:
        """Whether a text shows it."""
        return self.marker in " ".join(text.replace("\\n", " ").split())


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its gold answers and the documents that come with it."""

    id: str
    question: str
    answers: tuple[str, ...]
    documents: tuple[Document, ...] = ()
    kind: str = ""
    chain: tuple[Hop, ...] = ()
    level: str = field(default="", repr=False)  # not in the repr, which identifies generated questions
    """Difficulty, in the data set's own word."""
    actions: tuple[GoldAction, ...] = field(default=(), repr=False)
    """The gold actions of a task in a world."""
    injection: Injection | None = field(default=None, repr=False)
    """What an attacker has put into a result that its gold calls return."""
    row: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The data file's row, of a task in a world: the state to begin with."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A native tool call of a model; `arguments` is parsed JSON.

    `echo` holds fields that the provider wants back unchanged with the call in later requests, such as
    a thought signature.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    echo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation, in plain text that also reads well as a transcript.

    `ends_prefix` marks the last message that is the same for every question, where a cacheable prefix ends.
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
    `cache_write_1h_tokens` are those of the written ones that are kept for an hour, at a price of their own.
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0

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
            self.cache_write_1h_tokens + other.cache_write_1h_tokens,
        )


UsageSource = Literal["provider", "inconsistent", "estimated"]
"""Who counted tokens: the provider, the provider in parts that contradict its own total, or our tokenizer."""


@dataclass(frozen=True, slots=True)
class CallCost:
    """The price of a completion in attempts, time, tokens and dollars.

    `billed` is what this run paid, failed attempts included; zero for a replayed call. `waiting` holds
    (start, end) of every interval of queueing, back-off and recording, in seconds of the monotonic clock.
    `measured_s` is the duration in seconds of a call that an earlier session of this run made, else None.
    `cost_usd` is None where the price isn't known.
    """

    attempts: int = 1
    waiting: tuple[tuple[float, float], ...] = ()
    billed: Usage = Usage()
    cost_usd: float | None = None
    usage_source: UsageSource = "provider"
    replayed: bool = False
    measured_s: float | None = None

    def after(self, earlier: CallCost) -> CallCost:
        """This cost with that of earlier attempts at the same call; one unknown price makes the sum unknown.

        The source of the usage is that of the last attempt that cost something: an answer's, where there is one.
        """
        if not earlier.attempts and not earlier.waiting:
            return self
        both = replace(self, attempts=earlier.attempts + self.attempts, waiting=(*earlier.waiting, *self.waiting))
        if earlier.billed == _NOTHING:
            return both
        cost_usd, source = earlier.cost_usd, earlier.usage_source
        if self.billed != _NOTHING or self.cost_usd is not None:
            cost_usd = None if self.cost_usd is None or cost_usd is None else cost_usd + self.cost_usd
            source = self.usage_source
        return replace(both, billed=earlier.billed + self.billed, cost_usd=cost_usd, usage_source=source)


_NOTHING = Usage()


@dataclass(slots=True)
class Bill:
    """What a call has cost beside its outcome: the attempts before it, those that were cancelled, and its waiting.

    A reply has a cost of its own (`Completion.call_cost`), and so has a failure (`ModelError.call_cost`): whoever makes
    another attempt adds the cost of the one before, and a model that is cancelled adds what its request has cost.

    `keeper` writes down what attempts have cost before another one is made, for the case that the process ends.
    """

    total: CallCost = CallCost(attempts=0)
    unkept: CallCost = CallCost(attempts=0)
    """The part of the total that isn't written down yet."""
    keeper: Callable[[CallCost], Awaitable[None]] | None = None

    def add(self, cost: CallCost | None = None) -> None:
        """Adds an attempt; None is one that cost nothing."""
        self.total = (cost or _ATTEMPT).after(self.total)
        self.unkept = (cost or _ATTEMPT).after(self.unkept)

    async def keep(self) -> None:
        """Writes down what attempts have cost."""
        if self.keeper is not None and self.unkept.billed != _NOTHING:
            cost, self.unkept = self.unkept, CallCost(attempts=0, waiting=self.unkept.waiting)
            await self.keeper(cost)

    def with_outcome(self, outcome: CallCost | None) -> CallCost:
        """The cost of the whole call, whose reply or failure cost this much."""
        return (outcome or _ATTEMPT).after(self.total)

    def unkept_with(self, outcome: CallCost | None) -> CallCost:
        """The same without what is written down."""
        return (outcome or _ATTEMPT).after(self.unkept)

    def add_waiting(self, start: float, end: float) -> None:
        """Adds an interval of queueing, back-off or recording, in seconds of the monotonic clock."""
        self.total = replace(self.total, waiting=(*self.total.waiting, (start, end)))
        self.unkept = replace(self.unkept, waiting=(*self.unkept.waiting, (start, end)))


_ATTEMPT = CallCost()


@dataclass(frozen=True, slots=True)
class WireResponse:
    """The answer to an external agent's request, as the agent gets it; `headers` are the provider's.

    `translated`: the provider speaks another dialect; `dropped` are the fields of the request that aren't translated.
    `is_second_attempt`: recalled for a client that asked again and got the answer of its first attempt, which is the
    call that counts.
    """

    content_type: str
    body: str
    translated: bool = False
    dropped: Sequence[str] = ()
    is_second_attempt: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer to a list of messages.

    `text` is the visible text alone; `thoughts` is the reasoning that came with it, for the trace.
    `discarded_tokens` counts tokens behind a stop string: paid for, and thrown away.
    `finish_reason` is the provider's, or `reasoning_truncated` where the reply ended before any visible
    text. `repairs` names changes that made the reply fit to be stored, such as to half surrogate pairs.
    `answered_model` is the model that has answered, as the provider says; empty where it doesn't.
    """

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    call_cost: CallCost = CallCost()
    thoughts: str = ""
    discarded_tokens: int = 0
    repairs: tuple[str, ...] = ()
    wire: WireResponse | None = None
    answered_model: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a trajectory: thought, action and observation.

    `id` is `E1`, `E2`, … in ReWOO and the turn's number in ReAct; `tool` is None for a turn
    without a usable action. `argument` is the text that was sent, with placeholders filled in.
    """

    id: str
    thought: str = ""
    tool: str | None = None
    argument: str = ""
    observation: str = ""
    failed: bool = False
    written: str = ""
    """The argument as the model wrote it, where it names results of its own turn (`#1`)."""


StopReason = Literal[
    "answered",
    "empty_answer",
    "length_limit",
    "reasoning_truncated",
    "step_limit",
    "repeated",
    "invalid_plan",
    "unparsable",
    "token_limit",
    "time_limit",
    "cost_limit",
    "agent_failed",
    "error",
]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of a runner on one question, and its answer.

    `answer` is None where there is none. `plan` is the plan that ran (JSON-ready) and `evidence` maps
    each slot to the text that the solver saw; both are None outside ReWOO.
    """

    answer: str | None
    stop_reason: StopReason
    steps: tuple[Step, ...] = ()
    plan: Sequence[Mapping[str, Any]] | None = None
    evidence: Mapping[str, str] | None = None
    replans: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


def trial_seed(seed: int, trial: int) -> int:
    """The seed of a question's trial in a run with this seed: the run's own in trial 0, and another in each other one.

    Below 2^31, since some servers take no larger number.
    """
    return seed if not trial else int.from_bytes(sha256(f"{seed}:{trial}".encode()).digest()[:4]) >> 1


FaultMode = Literal["empty", "error", "timeout"]
"""How a tool call fails on purpose."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    `role` is the part of an architecture that calls: planner, solver, agent, tool, router or judge. `max_tokens` bounds
    the visible output; None is the model's own bound. `grammar` (GBNF) and `schema` (JSON Schema) describe the outputs
    that the caller can read; a model that can't constrain its decoding ignores them.

    `on_text` gets the visible text so far, each time that more has arrived, of a model that streams. The text may begin
    again, or differ from what was shown before: the first attempt broke off, or the text was a thought. Only the
    completion is final. Nothing is shown of a reply that comes whole: a recorded one, a cached one, or one of a model
    that doesn't stream.

    `wire` is the HTTP request of an external agent that the messages were read from: a model with an HTTP endpoint
    sends it unchanged, any other one answers the messages. `trial` is that of the question (`trial_seed`). Without
    `parallel` a provider is asked for at most one tool call.
    """

    messages: Sequence[Message]
    role: str
    stop: Sequence[str] = ()
    max_tokens: int | None = None
    tools: Sequence[Tool] = ()
    parallel: bool = True
    schema: Mapping[str, Any] | None = None
    grammar: str | None = None
    on_text: Callable[[str], None] | None = None
    wire: WireRequest | None = None
    trial: int = 0
    bill: Bill = field(default_factory=Bill, compare=False)

    async def show_lines(self, text: str) -> None:
        """Shows a text line by line, as a model that writes it; other tasks run after each line."""
        if self.on_text is None:
            return
        from anyio.lowlevel import checkpoint

        shown = ""
        for line in text.splitlines(keepends=True):
            shown += line
            self.on_text(shown)
            await checkpoint()


@runtime_checkable
class Model(Protocol):
    """A language model. Two optional attributes: `name`, and `max_output_tokens`, its own bound of a reply.

    Raises `ModelError` where the provider fails for good.
    """

    async def complete(self, request: Request) -> Completion: ...


@runtime_checkable
class GoldAware(Protocol):
    """A model that needs a question's gold answer: the oracle. Only the evaluator passes it on."""

    def with_gold(self, example: Example) -> Model: ...


@runtime_checkable
class Tool(Protocol):
    """A tool that an agent can call. Every question gets new tools, since they may hold state.

    `arguments` is a pydantic model. In text notations the text of a call is the value of its only field (`Search[…]`),
    or has several fields by name (`flights[city=Oslo, seats=3]`).
    Two optional attributes matter to a resumed run: with `stateful = True` a recorded call is made again
    to restore the tool's state; with `asks_model = True` the tool's own model calls are recorded instead.
    With `changes_state = True` calls are made one at a time, in the order of the plan; with `in_world = True` a
    recorded call is made again also in a replay, since what became of the world is looked at.
    Raises `ToolError` where a call fails.
    """

    name: str
    description: str

    @property  # read-only: type checkers then accept a class attribute `arguments = MyModel`
    def arguments(self) -> type[BaseModel]: ...

    async def __call__(self, arguments: Any) -> str: ...


def sees_state(tool: Tool) -> bool:
    """Whether a call of the tool may depend on what calls before it have changed."""
    return bool(getattr(tool, "stateful", False) or getattr(tool, "changes_state", False))


@lru_cache(maxsize=512)
def input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a tool's inputs, which is shared: not to be changed. pydantic takes 0.3 ms to make it."""
    return arguments.model_json_schema()


@runtime_checkable
class Runner(Protocol):
    """An agent architecture: the loop between a question and an answer. It may count its steps (`CountsSteps`).

    One for few questions at the same time has `question_places`, an async context manager: a question waits for one of
    its places before its time begins.
    """

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory: ...


@runtime_checkable
class CountsSteps(Protocol):
    """A runner with a step limit, which a run compares with the look-ups that its questions need.

    `steps_needed` gives the steps of a plan, or the turns, in which the runner answers without a mistake a question
    whose gold chain is `chain`; it has a hop at least. Of a runner that doesn't say this, every limit counts as high
    enough.
    """

    max_steps: int

    def steps_needed(self, chain: Sequence[Hop]) -> int: ...


@runtime_checkable
class Connects(Protocol):
    """A runner with something that serves a whole run, such as worker processes."""

    async def connect(self, stack: AsyncExitStack) -> None:
        """Makes it ready before the first question; it ends with `stack`."""
        ...


# A tool around another tool, with the same interface; subclasses count, limit, record or break its calls.


class WrappedTool:
    """Has the name, description, arguments and traits of `tool`; a subclass defines the call."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.arguments: type[BaseModel] = tool.arguments
        self.stateful = bool(getattr(tool, "stateful", False))
        self.asks_model = bool(getattr(tool, "asks_model", False))
        self.changes_state = bool(getattr(tool, "changes_state", False))
        self.in_world = bool(getattr(tool, "in_world", False))
        self._tool = tool
