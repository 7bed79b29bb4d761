"""What asks a test's server: a client alone, and an evaluator with whole runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from answering import KEY
from model_server import ModelServer
from parts import Billing, billed

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import open_run
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.tools import Corpus
from rewoo_bench.types import Completion, Example, Message, Model, Request

ASK = [Message("system", "Be brief."), Message("user", "Which river flows\nthrough Paris?  ")]
RUN = {"run_id": "r", "dataset": "sample", "model": "m", "planner_model": "m", "solver_model": "m"}
Row = dict[str, Any]


class Client(HostedModel):
    """A client whose replies and failures have the cost of their whole call."""

    async def complete(self, request: Request) -> Completion:
        return await billed(super().complete, request)


@asynccontextmanager
async def client(server: ModelServer, name: str = "openai/tiny", **settings: Any) -> AsyncIterator[HostedModel]:
    """A client that is closed at the end."""
    model = Client(name, ModelSettings(api_base=server.api_base, **settings), api_key=KEY)
    try:
        yield model
    finally:
        await model.aclose()


def architectures(*names: str) -> list[Architecture]:
    """Bundled ones, with the prompts of HotpotQA's questions."""
    return [load_architecture(name, style="multihop") for name in names]


@asynccontextmanager
async def model_of(
    server: ModelServer, *, timeout: float = 30.0, max_retries: int = 3, limiter: AdaptiveLimiter | None = None
) -> AsyncIterator[Billing]:
    """A client that tries again where a fault may pass."""
    async with client(server, "openai/test", timeout=timeout) as model:
        yield Billing(RetryingModel(model, max_retries=max_retries, base_delay=0.01, limiter=limiter))


async def run(
    folder: Path,
    server: ModelServer,
    questions: Sequence[Example],
    names: Sequence[str | Architecture],
    corpus: Corpus | None = None,
    *,
    patience: Mapping[str, Any] | None = None,
    trials: int = 1,
    **settings: Any,
) -> tuple[list[Row], list[Row]]:
    """The rows and the calls that a run wrote; what it raises comes after they are written."""
    async with model_of(server, **(patience or {})) as model:
        models: dict[str, Model] = {"": model}
        async with open_run(folder, RUN) as opened:
            recorder = Recorder(opened.journal)
            evaluator = Evaluator(models, "hotpotqa", Toolbox(corpus), recorder=recorder, **settings)
            asked = [each if isinstance(each, Architecture) else architectures(each)[0] for each in names]
            try:
                await evaluator.run(questions, asked, trials=trials, store=opened.store, on_result=lambda _: None)
            finally:
                await opened.export(task.key for task in tasks_of(questions, asked, trials))
    return read(folder)


def read(folder: Path) -> tuple[list[Row], list[Row]]:
    """The rows and the calls in a run folder."""
    questions, calls = (pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("questions", "calls"))
    return questions, calls
