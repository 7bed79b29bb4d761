"""Starts Ray or connects to a cluster. Each problem is one clear line.

Ray reads its settings when it is imported, so what imports it at its top (engine.py) is imported afterwards.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from textwrap import shorten
from typing import Any

from rewoo_bench.errors import UsageError
from rewoo_bench.text.redaction import redact

_STORE = 200_000_000  # bytes of the object store of a Ray that is started here
_CONNECTED_WITHIN_S = 10.0


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


def last_line(error: BaseException) -> str:
    """The end of Ray's message, in one line: the beginning is a traceback or the actor's address."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return redact(shorten(lines[-1], 200, placeholder=" …")) if lines else type(error).__name__
