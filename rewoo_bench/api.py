"""The evaluator for Python: from names or objects to a list of results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.inputs import model_settings
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.events import Event
from rewoo_bench.journal.store import JOURNAL, open_journal, read_journal
from rewoo_bench.loaders.gold_chains import for_oracle
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.metering.calls import Limits
from rewoo_bench.metering.recorder import Recorder
from rewoo_bench.model_names import REPLAY, is_oracle
from rewoo_bench.models.hosted.rate_limiter import AdaptiveLimiter
from rewoo_bench.models.hosted.retry import RetryingModel
from rewoo_bench.models.open import OpenModel, open_model
from rewoo_bench.models.settings import ModelSettings
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.scoring import Scorer
from rewoo_bench.tools import Corpus
from rewoo_bench.types import Example, GoldAware, Model


async def evaluate(
    dataset: str | Sequence[Example],
    architectures: str | Architecture | Sequence[str | Architecture],
    *,
    model: str | Model = "local/smollm2-135m",
    settings: ModelSettings | None = None,
    limit: int | None = None,
    seed: int = 0,
    trials: int = 1,
    corpus: str | Path | None = None,
    style: str = "multihop",
    scoring: str | Scorer = "hotpotqa",
    limits: Limits | None = None,
    concurrency: int | None = None,
    max_retries: int = 5,
    on_result: Callable[[Result], None] | None = None,
    on_event: Callable[[Task, Event], None] | None = None,
) -> list[Result]:
    """Puts questions to architectures and returns the results in the order of the questions.

    `dataset` is what `--dataset` takes, or examples of your own; for those `style` picks the
    exemplars and `scoring` the metric. `model` is what `--model` takes, or a model of your own.
    `on_result` gets each result as it ends, and `on_event` what happens inside each question as it
    happens. `settings` are the command's by default, with the seed and the concurrency that are given here.
    Writes nothing, but for a replay's journal in a temporary folder. Raises `UsageError`.
    """
    named = [architectures] if isinstance(architectures, str | Architecture) else list(architectures)
    names = tuple(each if isinstance(each, str) else each.name for each in named)
    options = RunOptions(names, limit=limit, seed=seed, trials=trials, concurrency=concurrency, max_retries=max_retries)
    settings = settings or model_settings(options)
    async with AsyncExitStack() as stack:
        if isinstance(dataset, str):
            load = partial(load_dataset_examples, dataset, seed=seed)
            data = load(limit=limit)
            corpus, style, scoring = corpus or data.corpus, data.style, data.scorer
        loaded = [load_architecture(a, style=style) if isinstance(a, str) else a for a in named]
        pages = Corpus.open(Path(corpus)) if corpus else None
        if isinstance(dataset, str):
            if isinstance(model, str) and is_oracle(model):
                looks_up = any(architecture.spec.tools for architecture in loaded)
                data = for_oracle(data, pages, lambda limit: load(limit=limit), looks_up=looks_up)
            examples = data.examples
        else:
            examples = dataset[:limit]
        places = concurrency or 8
        replayed = model.removeprefix(REPLAY) if isinstance(model, str) and model.startswith(REPLAY) else None
        if isinstance(model, str):
            opened = await stack.enter_async_context(open_model(model, replace(settings, n_caches=len(loaded))))
            places = concurrency or opened.concurrency
            model = _patient(opened, max_retries)
        toolbox = await stack.enter_async_context(Toolbox(pages))
        recorder = await stack.enter_async_context(_recorder(replayed)) if replayed else None
        evaluator = Evaluator({"": model}, scoring, toolbox, limits or Limits(), concurrency=places, recorder=recorder)
        results: list[Result] = []

        def keep(result: Result) -> None:
            results.append(result)
            if on_result:
                on_result(result)

        await evaluator.run(examples, loaded, trials=trials, on_result=keep, on_event=on_event)
    return sorted(results, key=lambda result: result.task.index)


@asynccontextmanager
async def _recorder(replayed: str) -> AsyncIterator[Recorder]:
    """Answers from the run in that folder; what is asked is noted in a journal that is thrown away."""
    with TemporaryDirectory(prefix="rewoo-bench-") as folder:
        async with read_journal(Path(replayed) / JOURNAL) as recorded, open_journal(Path(folder) / JOURNAL) as journal:
            yield Recorder(journal, recorded)


def _patient(opened: OpenModel, max_retries: int) -> Model:
    """The model behind retries, where it has a provider to be patient with."""
    if isinstance(opened.model, GoldAware):
        return opened.model
    limiter = AdaptiveLimiter(opened.concurrency)
    return RetryingModel(opened.model, name=opened.name, max_retries=max_retries, limiter=limiter)
