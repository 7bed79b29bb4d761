"""The engine of a run with `--engine ray`, from the connection with the cluster to its end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import CancelScope

from rewoo_bench.calls.rate_limiter import AdaptiveLimiter
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.concurrency import background_task
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.cluster.engine import RayEngine
from rewoo_bench.evaluation.cluster.start import check_nodes, ray_cluster, worker_setup
from rewoo_bench.evaluation.prepare import PreparedRun, connections
from rewoo_bench.runs.folder import ENGINE_FILE
from rewoo_bench.runs.options import RunOptions


@asynccontextmanager
async def ray_engine(
    options: RunOptions,
    run: PreparedRun,
    recorder: Recorder,
    *,
    sent: Mapping[str, Any],
    folder: Path,
    wants_events: bool,
    say: Callable[[str], None],
) -> AsyncIterator[RayEngine]:
    """Workers on a cluster, for as long as the context lasts. Raises `UsageError`."""
    if run.is_model_given:
        raise UsageError("engine: a model object can't be sent to the workers of a cluster; name a model")
    if recorder.replay is not None:
        raise UsageError("--engine ray: a replay makes no calls; leave it out")
    resources = json.loads(options.worker_resources) if options.worker_resources else {}
    with ray_cluster(options.ray_address):
        await check_nodes(resources)
        workers = options.workers or 1
        facts = {
            "sent": sent,
            "wants_events": wants_events,
            "has_cache": recorder.cache is not None,
            "has_answers": recorder.journal.has_answers(),
        }
        setup = await worker_setup(options, run, workers, facts)
        limiters = {name: AdaptiveLimiter(most) for name, most in connections_of_all(options, run).items()}
        engine = RayEngine(setup, recorder, workers, resources, say, folder / ENGINE_FILE, limiters)
        async with background_task(engine.serve):
            try:
                yield engine
            finally:
                with CancelScope(shield=True):
                    await engine.end()


def connections_of_all(options: RunOptions, run: PreparedRun) -> dict[str, int]:
    """Maximum number of simultaneous calls to each model: `--max-connections`, or what a worker takes for each."""
    workers = 1 if options.max_connections else options.workers or 1
    return {name: workers * places for name, places in connections(options, run).items()}
