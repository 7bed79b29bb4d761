"""What the driver and a worker send each other; plain data, pickled by Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from anyio import to_thread

from rewoo_bench import errors
from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.loaders.sources import file_sha256
from rewoo_bench.runs.journal.records import CallRecord
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.system.files import cache_dir, removed_unless_written
from rewoo_bench.types import Example


@dataclass(frozen=True)
class ShippedCorpus:
    """The passages of a run, for nodes that don't see the driver's file: its hash, and the object with its bytes."""

    path: Path
    sha256: str
    content: Any
    """A list with one `ray.ObjectRef`, since Ray would replace a bare one by its value."""


@dataclass(frozen=True)
class WorkerSetup:
    """Everything that a worker needs once."""

    options: RunOptions
    dataset: Dataset
    """The data set with its first question only."""
    corpus: ShippedCorpus | None
    secrets: Mapping[str, str] = field(repr=False)
    """Environment variables with keys of providers."""
    sent: Mapping[str, Any]
    """By role: what earlier sessions learnt of the endpoints."""
    folder: str
    """The driver's working folder, to which relative paths belong."""
    wants_events: bool
    has_cache: bool
    has_answers: bool
    """Whether earlier sessions of the run got answers."""


@dataclass(frozen=True)
class Lease:
    """One question for a worker, with the calls that the journal has of it."""

    number: int
    example: Example
    trial: int
    architecture: str
    index: int
    records: Sequence[CallRecord]


@dataclass(frozen=True)
class Ended:
    """The end of a lease: a result, or the name and message of an error that ends the run."""

    result: Mapping[str, Any] | None
    stopped: tuple[str, str] | None = None
    endpoints: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    """Model -> whether its provider accepted a request, and whether it answered anything."""
    sent: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def with_result(cls, result: Result, live: LiveCalls, sent: Mapping[str, Any]) -> Ended:
        """Without the task, which the driver has."""
        facts = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "task"}
        return cls(facts, endpoints=live.endpoint_states(), sent=sent)

    @classmethod
    def with_error(cls, error: Exception) -> Ended:
        if isinstance(error, errors.RewooBenchError):
            return cls(None, (type(error).__name__, str(error)))
        return cls(None, ("HarnessFault", f"a worker: {type(error).__name__}: {error}"))

    def result_of(self, task: Task) -> Result:
        """The result. Raises the error that ends the run."""
        if self.stopped is not None:
            name, message = self.stopped
            raise getattr(errors, name, errors.HarnessFault)(message)
        assert self.result is not None
        return Result(task=task, **self.result)


@dataclass(frozen=True)
class WorkerMessage:
    """A message of a worker. One with a number waits for the driver's `DriverReply` of that number."""

    kind: str
    value: Any
    number: int | None = None


@dataclass(frozen=True)
class DriverReply:
    """The driver's answer to a message: a value, or an exception's name and text."""

    number: int
    value: Any = None
    error: tuple[str, str] | None = None


# The passages of a run on each node: the driver's file where the node sees it, else one copy in the node's cache.


async def local_corpus(corpus: ShippedCorpus) -> Path:
    """The passages as a file of this node."""
    if corpus.path.is_file() and await to_thread.run_sync(file_sha256, corpus.path) == corpus.sha256:
        return corpus.path
    copy = cache_dir() / "corpora" / corpus.sha256[:16] / corpus.path.name
    if not copy.exists():
        (content,) = corpus.content
        await to_thread.run_sync(_write, copy, await content)
    return copy


def _write(copy: Path, content: bytes) -> None:
    """Two workers of a node may both write: each replaces the whole file by the same bytes."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=copy.parent, delete=False) as part, removed_unless_written(Path(part.name)):
        part.write(content)
        part.close()
        Path(part.name).replace(copy)
