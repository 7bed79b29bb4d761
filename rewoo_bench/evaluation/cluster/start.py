"""Starts Ray or finds a cluster, checks its nodes, and starts workers. Each problem is one clear line."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from textwrap import shorten
from typing import Any

from rewoo_bench.errors import RunStopped, UsageError
from rewoo_bench.evaluation.cluster import probe
from rewoo_bench.evaluation.cluster.messages import WorkerSetup
from rewoo_bench.evaluation.cluster.pool import PoolWorker
from rewoo_bench.text.redaction import redact

_OPEN_CALLS = 10_000  # of an actor at the same time
_STORE = 200_000_000  # bytes of the object store of a Ray that is started here
_CONNECTED_WITHIN_S = 10.0


@contextmanager
def ray_cluster(address: str | None) -> Iterator[None]:
    """Connects to the cluster at `address`, or starts Ray on this machine. Raises `UsageError`."""
    if find_spec("ray") is None:
        raise UsageError("--engine ray needs the package: pip install 'rewoo-bench[ray]'")
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
    """Raises `UsageError` where nothing listens, or something else than Ray: Ray would try for minutes."""
    if address is None or address in ("auto", "local"):
        return
    if "://" in address:
        raise UsageError(f"--ray-address: {address!r} is Ray's client; name the head itself (HOST:PORT), or auto")
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECTED_WITHIN_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise UsageError(f"--ray-address: nothing listens at {address!r} (HOST:PORT): {error}") from None
    _check_speaks_ray(address)


def _check_speaks_ray(address: str) -> None:
    """Raises `UsageError` where something else listens. Has Ray show its token to a cluster that wants it.

    Ray reads its mode when it is imported. With a token it can't use a cluster that wants none.
    """
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    import grpc  # type: ignore[import-untyped]  # Ray has it

    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_CONNECTED_WITHIN_S)
            channel.unary_unary("/ray.rpc.NodeInfoGcsService/CheckAlive")(b"", timeout=_CONNECTED_WITHIN_S)
            if os.environ.get("RAY_AUTH_MODE") == "token":
                raise UsageError(f"--ray-address: the cluster at {address!r} wants no token: unset RAY_AUTH_MODE")
        except grpc.FutureTimeoutError:
            raise UsageError(f"--ray-address: what listens at {address!r} is no Ray cluster") from None
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                os.environ.setdefault("RAY_AUTH_MODE", "token")


async def check_nodes(resources: Mapping[str, float]) -> None:
    """Raises `UsageError` where no node has room for a worker, or a node has other versions than this process."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    if not any(all(node["Resources"].get(name, 0) >= much for name, much in resources.items()) for node in nodes):
        raise UsageError(f"--worker-resources: no node of the cluster has {json.dumps(dict(resources))}")
    ray.cloudpickle.register_pickle_by_value(probe)  # type: ignore[no-untyped-call]
    here = probe.versions()
    ask = ray.remote(num_cpus=0, max_retries=0)(probe.versions)
    for node in nodes:
        there = await ask.options(scheduling_strategy=_on(node["NodeID"])).remote()
        check_versions(here, there, node["NodeManagerAddress"])


def _on(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


def check_versions(here: Mapping[str, str], there: Mapping[str, str], node: str) -> None:
    for package, version in here.items():
        if package not in there:
            raise UsageError(f"the Ray node {node} has no {package}: install {package}=={version} there")
        if there[package] != version and package != "python":
            raise UsageError(f"the Ray node {node} has {package} {there[package]}, and this machine {version}")


async def start_worker(number: int, setup: WorkerSetup, resources: Mapping[str, float]) -> PoolWorker:
    """A new worker that is ready.

    Raises `UsageError`, `RunStopped` without a node, and `RayError` where the worker dies at once.
    """
    import ray

    from rewoo_bench.evaluation.cluster.worker import RayWorker

    place: Any = "SPREAD"
    if not resources:  # the nodes with processors in turn
        nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        if not nodes:
            raise RunStopped("no node of the Ray cluster is left")
        working = [node for node in nodes if node["Resources"].get("CPU")] or nodes
        place = _on(working[number % len(working)]["NodeID"])
    others = {name: much for name, much in resources.items() if name not in ("CPU", "GPU")}
    try:
        handle: Any = (
            ray.remote(RayWorker)
            .options(
                max_concurrency=_OPEN_CALLS,
                num_cpus=resources.get("CPU", 0),
                num_gpus=resources.get("GPU", 0),
                resources=others,
                scheduling_strategy=place,
            )
            .remote()
        )
    except ValueError as error:  # a fraction that Ray doesn't take
        raise UsageError(f"--worker-resources: {last_line(error)}") from None
    begun = await handle.begin.remote(setup)
    if isinstance(begun, str):
        raise UsageError(begun)
    return PoolWorker(number, handle, begun)


def last_line(error: BaseException) -> str:
    """The end of Ray's message, in one line: the beginning is a traceback or the actor's address."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return redact(shorten(lines[-1], 200, placeholder=" …")) if lines else type(error).__name__
