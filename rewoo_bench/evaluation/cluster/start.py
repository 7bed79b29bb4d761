"""Starts Ray or connects to a cluster. Each problem is one clear line.

Ray reads its settings when it is imported, so what imports it at its top (engine.py) is imported afterwards.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import Any

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.cluster.messages import last_line
from rewoo_bench.evaluation.evaluator import Engine
from rewoo_bench.evaluation.prepare import PreparedRun
from rewoo_bench.runs.options import RunOptions

_log = logging.getLogger(__name__)
_STORE = 200_000_000  # bytes of the object store of a Ray that is started here
_CONNECTED_WITHIN_S = 10.0


@asynccontextmanager
async def ray_workers(
    options: RunOptions, run: PreparedRun, recorder: Recorder, *, sent: Mapping[str, Any], wants_events: bool
) -> AsyncIterator[Engine]:
    """The workers of a run, on a cluster that is joined or started for it. Raises `UsageError`."""
    if run.is_model_given:
        raise UsageError("workers: a model object can't be sent to the workers of a cluster; name a model")
    if recorder.replay is not None:
        raise UsageError("--workers: a replay makes no calls; leave it out")
    if options.answer_cache is not None:
        raise UsageError("--answer-cache: workers of a cluster have none; leave it out, or --workers")
    if wants_events:
        raise UsageError("on_event: workers of a cluster report no events; leave it out")
    with ray_cluster(options.ray_address):
        from rewoo_bench.evaluation.cluster.engine import ray_engine

        async with ray_engine(options, run, recorder, sent=sent, say=_log.warning) as engine:
            yield engine


@contextmanager
def ray_cluster(address: str | None) -> Iterator[None]:
    """Connects to the cluster at `address`, or starts Ray on this machine. Raises `UsageError`."""
    if find_spec("ray") is None:
        raise UsageError("--workers needs the package: pip install 'rewoo-bench[ray]'")
    _check_address(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    started: dict[str, Any] = {} if address else {"object_store_memory": _STORE, "include_dashboard": False}
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **started)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        if address is None:
            raise UsageError(f"Ray can't be started: {last_line(error)}") from None
        where = f"--ray-address: no Ray cluster can be reached at {address!r}: {last_line(error)}"
        raise UsageError(f"{where}; it may want its token: RAY_AUTH_MODE=token and RAY_AUTH_TOKEN") from None
    finally:
        for each, handler in handlers.items():  # Ray sets its own
            signal.signal(each, handler)
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raises `UsageError` where nothing listens: Ray would try for minutes."""
    if address is None or address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECTED_WITHIN_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise UsageError(f"--ray-address: nothing listens at {address!r} (HOST:PORT): {error}") from None
