"""llama.cpp on this machine, behind an OpenAI-compatible endpoint on loopback.

    async with serve(Path("model.gguf"), ServerSettings(context=8192)) as server:
        server.api_base     # "http://127.0.0.1:43127/v1"

It runs in a process of its own (llama_child.py says why) that ends with this one. Whoever asks for
the same file with the same settings shares one server, which ends with its last user.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from anyio import CancelScope, to_thread

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.gguf import read_header

_TIME_TO_END_S = 2.0
_TIME_TO_BE_KNOWN_S = 1.0  # to have ended, after its connections broke


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a model is served.

    `context` is tokens of one prompt and its answer. `n_parallel` is how many requests are decoded
    in one batch; with 1 an answer depends on its prompt alone (llama_child.py has the exception),
    with more also on what else was in the batch. `prompt_cache_mib` bounds the memory for prompts
    that wait for their next use (in turn they all find their prefix there, one slot or four); it is
    taken only as needed. `threads` is None for one on each physical core this process may use.
    `program` is a llama-server of the user's in the place of xllamacpp's, with arguments that
    overrule ours (llama_child.py has those).
    """

    context: int = 8192
    n_parallel: int = 1
    prompt_cache_mib: int = 2048
    threads: int | None = None
    program: tuple[str, ...] = ()


class LocalServer:
    """A running server. `settings` are those in force: no context longer than was trained."""

    def __init__(self, path: Path, settings: ServerSettings) -> None:
        """Loads the model, which takes seconds. Raises `ModelNotFound`."""
        header = read_header(path)
        trained = header.context or settings.context
        self.path = path
        self.settings = replace(
            settings, context=min(settings.context, trained), threads=settings.threads or physical_cores()
        )
        self._process = _start_process(path, self.settings)
        self._reading = threading.Lock()
        self._end: str | None = None
        try:
            self.address = self._await_address()
        except BaseException:
            self.close()
            raise

    @property
    def api_base(self) -> str:
        return f"{self.address}/v1"

    def _await_address(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "load", "message": "it died while loading"}
        if "address" in answer:
            return str(answer["address"])
        if answer["error"] == "import":
            raise ModelNotFound(
                f"local models need xllamacpp, which can't be loaded here ({answer['message']}): "
                "`pip install xllamacpp`, or name a hosted model or an --api-base"
            )
        if self.settings.program:
            raise ModelNotFound(f"--llama-server: {answer['message']}")
        raise ModelNotFound(
            f"llama.cpp can't load {str(self.path)!r} ({answer['message'].rstrip('.')}): it may be of a kind that "
            f"xllamacpp {version('xllamacpp')} doesn't know, damaged, or too big for the memory"
        )

    def how_it_ended(self) -> str | None:
        """What ended it before its time; None where it still runs, which takes a second to be sure of."""
        try:
            code = self._process.wait(_TIME_TO_BE_KNOWN_S)
        except subprocess.TimeoutExpired:
            return None
        with self._reading:  # all calls in flight ask at once
            if self._end is None:
                assert self._process.stdout is not None
                line = self._process.stdout.readline()
                by = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
                self._end = json.loads(line)["ended"] if line else by
            return self._end

    def close(self) -> None:
        """End the process and give its memory back. Requests under way fail; closing twice is fine."""
        try:
            self._process.communicate(timeout=_TIME_TO_END_S)  # closes the pipes, at which it ends; and waits
        except subprocess.TimeoutExpired:  # it is loading, and hears nothing
            self._process.kill()
            self._process.communicate()


def _start_process(path: Path, settings: ServerSettings) -> subprocess.Popen[bytes]:
    child = Path(__file__).with_name("llama_child.py")
    told = json.dumps({"path": str(path), **asdict(settings)})
    # How long an OpenMP thread spins before it sleeps. On two cores, a 135M model's output tokens a
    # second, idle and with one core busy: 24 and 24 where it sleeps at once ("passive"), 54 and 1 to
    # 12 by libgomp's default, 50 and 16 with this; and it doesn't spin on between two requests.
    # The second asks for large pages, where the kernel gives them to who asks.
    env = {"GOMP_SPINCOUNT": "3000000", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ}
    return subprocess.Popen(
        [sys.executable, "-P", str(child), told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # llama.cpp's own log
        env=env,
    )


def server_version(program: Sequence[str]) -> dict[str, str]:
    """What serves, by name, and its version. Raises `ModelNotFound` where a program of the user's can't be started."""
    if not program:
        return {"xllamacpp": version("xllamacpp")}
    try:
        done = subprocess.run([program[0], "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelNotFound(f"--llama-server: {program[0]!r} can't be started: {error}") from None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("version")]
    if done.returncode or not lines:
        raise ModelNotFound(f"--llama-server: {program[0]!r} is no llama-server: it tells no version")
    return {"llama_server": lines[0]}


def physical_cores() -> int:
    """Cores that this process may use, hyper-threads counted once; -1, llama.cpp's own count, elsewhere."""
    if not hasattr(os, "sched_getaffinity"):
        return -1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text("ascii") if siblings.exists() else str(cpu))
    return len(cores)


class _Servers:
    """The running servers, each with how many use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[Path, ServerSettings], tuple[LocalServer, int]] = {}

    def acquire(self, path: Path, settings: ServerSettings) -> LocalServer:
        key = (path.resolve(), settings)
        with self._lock:  # held while loading, so that a second user waits for the first one's server
            server, users = self._running.get(key) or (LocalServer(*key), 0)
            self._running[key] = (server, users + 1)
        return server

    def release(self, path: Path, settings: ServerSettings) -> None:
        key = (path.resolve(), settings)
        with self._lock:
            server, users = self._running.pop(key)
            if users > 1:
                self._running[key] = (server, users - 1)
                return
        server.close()

    def close(self) -> None:
        """End what an interrupted program left running."""
        while self._running:
            self._running.popitem()[1][0].close()


_servers = _Servers()
atexit.register(_servers.close)


@asynccontextmanager
async def serve(path: Path, settings: ServerSettings = ServerSettings()) -> AsyncIterator[LocalServer]:
    """A server for this file, shared with whoever else asks for the same. Raises `ModelNotFound`."""
    server = await to_thread.run_sync(_servers.acquire, path, settings)
    try:
        yield server
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(_servers.release, path, settings)
