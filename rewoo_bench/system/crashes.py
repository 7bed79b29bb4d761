"""Unexpected exceptions: as one question's error, as the end of the run, or as a fault of the harness.

    crash_of(error, "ReAct")        ->  Crash(error="KeyError in ReAct: 'x'", place="my_agent.py:41", …)
    harness_fault(error, "Search")  ->  HarnessFault("Search: OSError: [Errno 24] Too many open files: out of …")

A model's reply can make a parser fail, so a crash is data in the question's row. The same exception at the
same place on three questions is a bug of the code, and the run stops.
"""

from __future__ import annotations

import errno
import sysconfig
import traceback
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.errors import (
    HarnessFault,
    JournalError,
    ModelGone,
    ProviderRefused,
    RewooBenchError,
    RunStopped,
    UsageError,
    causes,
)
from rewoo_bench.text.redaction import redact

RUN_STOPPING = (UsageError, JournalError, ModelGone, ProviderRefused, HarnessFault, RunStopped)
"""Exceptions that always end a run."""

_SAME_CRASHES = 3  # questions with the same crash that stop a run
_LONGEST_MESSAGE = 300
_LONGEST_TRACEBACK = 10_000  # characters
_OWN = Path(__file__).parents[1]
_LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))

_SHORT_OF = {
    errno.EMFILE: "open files; raise the limit (`ulimit -n`), or lower --max-connections or --concurrency",
    errno.ENFILE: "open files on the whole machine; lower --max-connections or --concurrency",
    errno.ENOMEM: "memory; lower --concurrency",
    errno.ENOSPC: "space on the disk",
}


@dataclass(frozen=True, slots=True)
class Crash:
    """An exception of a question: `error` is one line, `place` the file and line of the code that failed."""

    kind: str
    message: str
    place: str
    error: str
    traceback: str


class CrashCounter:
    """Counts the questions with the same exception at the same place."""

    def __init__(self) -> None:
        self._questions: dict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, crash: Crash, question: str) -> str | None:
        """The reason to stop the run, or None."""
        same = self._questions[crash.kind, crash.place]
        if question not in same:
            same.append(question)
        if len(same) < _SAME_CRASHES:
            return None
        where = f"{crash.kind} in {crash.place} on question {question!r} and {len(same) - 1} others"
        return f"{where}: {crash.message}" if crash.message else where


def crash_of(error: BaseException, where: str, group: BaseException | None = None) -> Crash:
    """An exception as a question's error; `where` is the name of the failed class if any, `group` the group."""
    kind, message = type(error).__name__, _one_line(str(error))
    failed = f"{kind} in {where}" if where else kind
    line = f"{failed}: {message}" if message else failed
    raised = group or error
    text = redact("".join(traceback.format_exception(raised)))
    if len(text) > _LONGEST_TRACEBACK:
        text = f"{text[: _LONGEST_TRACEBACK // 2]}\n…\n{text[-_LONGEST_TRACEBACK // 2 :]}"
    # The file and line that raised it: the last one outside of libraries, if any.
    raised_at = error.__cause__ if isinstance(error, RewooBenchError) and error.__cause__ else error  # of user's code
    frames = traceback.extract_tb(raised_at.__traceback__ or raised.__traceback__)
    own = [
        frame
        for frame in frames
        if (file := Path(frame.filename)).is_relative_to(_OWN) or not any(map(file.is_relative_to, _LIBRARIES))
    ]
    place = f"{Path((own or frames)[-1].filename).name}:{(own or frames)[-1].lineno}" if frames else "?"
    return Crash(kind, message, place, line, text)


def deciding(error: BaseException) -> BaseException:
    """The most important exception of a group: one that stops a run before one that ends a question."""
    leaves = list(_leaves(error))
    stopping = (leaf for leaf in leaves if isinstance(leaf, RUN_STOPPING) or harness_fault(leaf, ""))
    return next(stopping, leaves[0])


def harness_fault(error: BaseException, where: str) -> HarnessFault | None:
    """The fault, if an exception means that this machine is out of a resource, or that code is missing."""
    for cause in causes(error):
        number = errno.ENOMEM if isinstance(cause, MemoryError) else getattr(cause, "errno", None)
        if isinstance(cause, MemoryError | OSError) and number in _SHORT_OF:
            short_of = f"{_one_line(str(cause))}: out of {_SHORT_OF[number]}"
            return HarnessFault(f"{where}: {type(cause).__name__}: {short_of}")
    if isinstance(error, ImportError | SystemError):
        return HarnessFault(f"{where}: {type(error).__name__}: {_one_line(str(error))}")
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group and of its groups; a single exception is its own leaf."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _one_line(text: str) -> str:
    line = redact(" ".join(text.split()))
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]} …"
