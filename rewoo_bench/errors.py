"""What can go wrong, as a tree.

    RewooBenchError
    ├── UsageError          the command or its input is wrong: one line, exit code 2
    │   ├── SpecError       architecture.toml or dataset.toml, or the code they name
    │   ├── DataError       a data file, a corpus, a hub that can't be reached
    │   │   └── NothingToDraw   rows that lack what a figure needs
    │   ├── OptionChanged   a resumed run has another value of an option
    │   ├── ModelNotFound   no such model, or it can't be fetched
    │   └── MissingKey      a provider needs an API key that isn't set
    ├── PlanError           a plan that can't be read or run; holds every fault found
    ├── ActionError         a ReAct turn that names no usable action
    ├── ToolError           a tool couldn't do its work; its text becomes the observation
    │   └── NotRecorded         a recording doesn't have the call
    ├── ModelError          a provider failed for good
    │   └── ModelGone       the server of a model has ended
    ├── JournalError        the journal can't be written: the run ends, its content is kept
    ├── HarnessFault        this machine lacks a resource, or code is missing: the run ends, all is kept
    ├── RunStopped          the run ended before its last question
    │   └── RepeatedCrash   the same exception came on several questions
    ├── ProviderRefused     the provider refuses every request: the run ends
    └── LimitReached        a limit of the question was reached; holds which

`UsageError` ends a run before it starts. Those that don't end a run are data: a row's `stop_reason` and `error`, or
the text of an observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rewoo_bench.types import CallCost, ErrorResponse, StopReason


class RewooBenchError(Exception):
    """Root of every error that this package raises on purpose."""


class UsageError(RewooBenchError):
    """The command or its input is wrong; the message says what was expected."""


class SpecError(UsageError):
    """An architecture or data set description that can't be used."""


class DataError(UsageError):
    """A data file or corpus that is missing, empty, damaged or of another format."""


class NothingToDraw(DataError):
    """A figure that the rows have no data for; the message says what it needs."""


class ModelNotFound(UsageError):
    """No such model, or its file can't be had."""


class MissingKey(UsageError):
    """A provider wants an API key; the message names the variable."""


class PlanError(RewooBenchError):
    """A plan that can't be read or run.

    `faults` has one sentence for each fault, fit to be shown to the planner; `steps` has those that were read.
    """

    def __init__(self, faults: Sequence[str], steps: Sequence[Any] = ()) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)
        self.steps = tuple(steps)


class ActionError(RewooBenchError):
    """A ReAct turn without a usable action; the message is fit to be shown to the model."""


class ToolError(RewooBenchError):
    """A tool couldn't do its work; the message becomes evidence or observation."""


class NotRecorded(ToolError):
    """A tool that answers from a recording doesn't find the call there."""


UNAUTHORISED = 401


class ModelError(RewooBenchError):
    """A provider failed, in one attempt or, where it leaves `RetryingModel`, for good.

    `status` is the HTTP status, if any; `call_cost` is what the failed attempt cost; `retry_after` is the wait that the
    provider asks for, in seconds. `unreachable` means that no connection was made: nothing listens at the address,
    or its name is unknown; `timed_out` that the server took the request and didn't answer in time. `unread_reply` means
    that the server couldn't read what its model wrote, as a tool call that isn't one: the model failed. `refused_by` is
    the model whose provider refused the request (401, 403, 404), sent it elsewhere (3xx) or wasn't there, and
    `accepts_others` whether it had accepted another one. `response` is what an external agent gets for its request;
    None for calls of our own.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        call_cost: CallCost | None = None,
        retry_after: float | None = None,
        unreachable: bool = False,
        timed_out: bool = False,
        unread_reply: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.call_cost = call_cost
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.timed_out = timed_out
        self.unread_reply = unread_reply
        self.refused_by = ""
        self.accepts_others = False
        self.response: ErrorResponse | None = None

    @property
    def refuses_key(self) -> bool:
        """Whether the provider refused the user's key, so that no other call can succeed."""
        return self.status == UNAUTHORISED


class ModelGone(ModelError):
    """The server of a model has ended: no later call can succeed either."""


class JournalError(RewooBenchError):
    """The journal can't be written: the disk is full, or the right to write is missing."""


class HarnessFault(RewooBenchError):
    """The harness can't work: no open files, memory, threads or disk left, or a module that can't be imported.

    It has nothing to do with an architecture or a tool, so it is no evidence and no question's error. The run ends,
    finished questions are kept.
    """


class RunStopped(RewooBenchError):
    """The run ended before its last question; finished questions are kept."""


class OptionChanged(UsageError):
    """A resumed run has another value of an option: `what`, the option and its value when the run began."""

    def __init__(self, what: str) -> None:
        super().__init__(f"--resume: {what}; leave it out, or start a new run")
        self.what = what


class UnknownPrice(UsageError):
    """A limit in dollars, `flag`, is set, and the price of a model isn't known. `why` is the line without the limit."""

    def __init__(self, flag: str, limit: float, why: str) -> None:
        super().__init__(f"{flag} {limit:g}: {why}")
        self.flag = flag
        self.why = why


class CapReached(RunStopped):
    """A cap of the run was reached: `spent` of `cap`, in the unit of `flag`; None where a call has no known price."""

    def __init__(self, flag: Literal["--run-tokens", "--run-cost"], spent: float | None, cap: float) -> None:
        if spent is None:
            line = f"the price of a call isn't known, so {flag} can't be kept"
        elif flag == "--run-tokens":
            line = f"used {spent:,} of {cap:,} tokens ({flag})"
        else:
            line = f"cost {f'{spent:.4f}' if spent >= 0.01 else f'{spent:.2g}'} of {cap} USD ({flag})"
        super().__init__(line)
        self.flag = flag
        self.higher = f"{flag} none" if spent is None else f"{flag} {2 * max(spent, cap):.10g}"
        """The flag with twice as much, with which the run gets further."""


class RepeatedCrash(RunStopped):
    """The same exception came at the same place on several questions: a fault of the code, not of a question."""


class ProviderRefused(RewooBenchError):
    """The provider refuses every request (a wrong key, no such model), or can't be reached at all."""


class LimitReached(RewooBenchError):
    """A limit of the question was reached. `stop_reason` is the value for the row."""

    def __init__(self, stop_reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.stop_reason = stop_reason


def causes(error: BaseException, *, suppressed: bool = False) -> Iterator[BaseException]:
    """The error and its causes, the outermost first; with `suppressed` also those that `from None` hides."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        hidden = cause.__suppress_context__ and not suppressed
        cause = cause.__cause__ or (None if hidden else cause.__context__)


def unknown(what: str, name: object, available: Iterable[str]) -> str:
    """A message for a name that doesn't exist, with the nearest and all available names.

    >>> unknown("architecture", "rewo", ["react", "rewoo"])
    "unknown architecture 'rewo', did you mean 'rewoo'? available: react, rewoo"
    """
    names = sorted(available)
    near = get_close_matches(str(name), names, n=1, cutoff=0.7)
    hint = f", did you mean {near[0]!r}?" if near else ";"
    return f"unknown {what} {name!r}{hint} available: {', '.join(names)}"
