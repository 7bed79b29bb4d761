"""llama.cpp on this machine, with an OpenAI-compatible endpoint on loopback.

    async with serve(Path("model.gguf"), ServerSettings(context=8192), copies=2) as servers:
        servers.of("rewoo").api_base     # "http://127.0.0.1:43127/v1"
        servers.of("react").api_base     # "http://127.0.0.1:43129/v1"

Each server is a process of its own (server_process.py has the reason) that ends with this one. Users of the same
file with the same settings share the servers, which end with their last user.

Why a server for each architecture: llama.cpp finds the prefix of a prompt in the prompts before it.
In one server, the architecture that comes second finds the prompts of the first, and looks faster
than it is. llama.cpp has no other way to keep them apart: a slot for each (`id_slot`) shares the
prompts in main memory with all other slots, and one without these forgets a planner's prompt at
the solver's.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anyio import CancelScope, to_thread

from rewoo_bench.errors import ModelError, ModelGone, ModelNotFound
from rewoo_bench.events import current_architecture
from rewoo_bench.models.local.server_process import WITHOUT_PROXY
from rewoo_bench.text.words import counted
from rewoo_bench.types import Completion, Model, Request

_TIME_TO_END_S = 2.0
_TIME_TO_BE_KNOWN_S = 1.0  # to have ended, after its connections broke
_SHARED_FROM = 512_000_000  # bytes of weights; several servers of a smaller file have a copy each
_log = logging.getLogger(__name__)


_LONGEST_HEADER = 64 << 20  # bytes; a vocabulary of 260,000 words takes 8 MB


def has_chat_template(path: Path) -> bool:
    """Whether a model file has a template of its own for turns. Raises `ModelNotFound` for what is no model file."""
    try:
        with path.open("rb") as file:
            header = file.read(_LONGEST_HEADER)
    except OSError as error:
        raise ModelNotFound(f"can't read the model file {str(path)!r}: {error.strerror or error}") from None
    if not header.startswith(b"GGUF"):
        raise ModelNotFound(f"not a GGUF model file: {str(path)!r}")
    return b"tokenizer.chat_template" in header


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of a model's server.

    `context` is the tokens of one prompt and its answer. `n_parallel` requests are decoded in one batch; with 1 an
    answer depends on its prompt alone (server_process.py has the exception), with more also on the rest of the
    batch. `threads` None means one for each physical core that this process may use, and fewer where other processes
    keep cores busy (`free_cores`). `share_weights` maps the file into memory, where several servers share its weights.
    `program` is a user's llama-server instead of xllamacpp's, with arguments that take precedence over ours.
    """

    context: int = 8192
    n_parallel: int = 1
    threads: int | None = None
    share_weights: bool = False
    program: tuple[str, ...] = ()


class LocalServer:
    """A running server. `settings` are those in force: `context` is at most the trained length, as llama.cpp has it."""

    def __init__(self, path: Path, settings: ServerSettings) -> None:
        """Loads the model, which takes seconds. Raises `ModelNotFound`."""
        self.path = path
        self.settings = replace(settings, threads=settings.threads or physical_cores())
        self._reading = threading.Lock()
        self._end: str | None = None
        # The time for which an OpenMP thread spins at a barrier before it sleeps. It must be short: where other
        # processes want the cores, a thread that spins keeps the one from running for which it waits. A prompt of 500
        # tokens and 40 output tokens of a 135M model on two cores took 1.06 s idle with 1,000 and with 3,000,000 spins,
        # 2.0 s with none, and beside four busy processes 4 to 10 s with 1,000 and 14 to 105 s with 100,000 and more.
        # The second variable asks for large pages, where the kernel gives them on request.
        env = {"GOMP_SPINCOUNT": "1000", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ}
        program = str(Path(__file__).with_name("server_process.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", program, json.dumps({"path": str(path), **asdict(self.settings)})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # llama.cpp's own log
            env=env,
            start_new_session=True,  # Linux shares cores between sessions: this one gets its share beside a busy shell
        )
        try:
            said = self._said() or {"error": "load", "message": "it ended while loading"}
            if error := said.get("error"):
                raise ModelNotFound(self._fault(error, said["message"]))
            self.address = said["address"]
            context = self._get("/props")["default_generation_settings"]["n_ctx"]
            self.parameters: int = self._get("/v1/models")["data"][0]["meta"]["n_params"]
        except BaseException:  # Ctrl-C, too: no server is left running
            self.close()
            raise
        self.settings = replace(self.settings, context=context)
        self.api_base = f"{self.address}/v1"
        self.pid = self._process.pid

    def how_it_ended(self) -> str | None:
        """The reason why it ended; None where it still runs, which takes a second to find out."""
        try:
            code = self._process.wait(_TIME_TO_BE_KNOWN_S)
        except subprocess.TimeoutExpired:
            return None
        with self._reading:  # all calls in flight come here at once
            if self._end is None:
                by = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
                self._end = self._said().get("ended", by)
            return self._end

    def close(self) -> None:
        """End the process and free its memory. Requests in flight fail; closing twice is allowed."""
        try:
            self._process.communicate(timeout=_TIME_TO_END_S)  # closes the pipes, at which it ends; and waits
        except subprocess.TimeoutExpired:  # it is loading, and doesn't read the pipe
            self._process.kill()
            self._process.communicate()

    def _get(self, path: str) -> dict[str, Any]:
        """What the server says of itself."""
        with WITHOUT_PROXY.open(self.address + path, timeout=60) as answer:
            facts: dict[str, Any] = json.load(answer)
        return facts

    def _said(self) -> dict[str, str]:
        """The next line of the process; empty where it has ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        facts: dict[str, str] = json.loads(line) if line else {}
        return facts

    def _fault(self, kind: str, message: str) -> str:
        if kind == "import":
            return (
                f"local models need xllamacpp, which can't be loaded here ({message}): "
                "`pip install xllamacpp`, or name a hosted model or an --api-base"
            )
        if self.settings.program:
            return f"--llama-server: {message}"
        return (
            f"llama.cpp can't load {str(self.path)!r} ({message.rstrip('.')}): it may be of a kind that "
            f"xllamacpp {version('xllamacpp')} doesn't know, damaged, or too big for the memory"
        )


def server_version(program: Sequence[str]) -> dict[str, str]:
    """The server's name and version. Raises `ModelNotFound` where the user's program can't be started."""
    if not program:
        return {"xllamacpp": version("xllamacpp")}
    try:
        done = subprocess.run([program[0], "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelNotFound(f"--llama-server: {program[0]!r} can't be started: {error}") from None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("version")]
    if done.returncode or not lines:
        raise ModelNotFound(f"--llama-server: {program[0]!r} is not a llama-server: it prints no version")
    return {"llama_server": lines[0]}


_EXTENSIONS = ("avx", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimddp", "i8mm", "sve")


def processor() -> str:
    """The instructions that sums are made with, `x86_64 avx avx2`: they decide how sums are rounded, and so answers.

    Only the machine's architecture where the system has no /proc/cpuinfo.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    flags = found.group(1).split() if found else []
    return " ".join([platform.machine(), *(each for each in _EXTENSIONS if each in flags)])


def free_cores() -> int:
    """Threads for a model: one for each physical core of this process, less the cores that other processes keep busy.

    At least 1. A second thread beside a busy process waits at every barrier for its turn: with one busy process on two
    cores, two threads took 1.7 times as long as one.
    """
    cores = physical_cores()
    running = []  # number of processes that run or wait for a core, without this one, at some moments
    try:
        for _ in range(5):
            running.append(int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[0]) - 1)
            time.sleep(0.01)
    except OSError:  # not Linux
        return cores
    busy = min(running)
    if cores < 1 or not busy:
        return cores
    count = os.cpu_count() or 1
    free = max(1, min(cores, count - busy))
    if free <= cores / 2:
        _log.warning(
            "other programs keep %d of %d cores busy, so the local model gets %s and is slow; "
            "end the others, or name a hosted model",
            *(min(busy, count), count, counted(free, "core")),
        )
    return free


def physical_cores() -> int:
    """Number of cores that this process may use, hyper-threads counted once; -1 (llama.cpp's own count) elsewhere."""
    if not hasattr(os, "sched_getaffinity"):
        return -1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text("ascii") if siblings.exists() else str(cpu))
    return len(cores)


class Servers:
    """Servers of one file, each with a prefix cache of its own. An architecture always uses the same server."""

    def __init__(self, path: Path, settings: ServerSettings, copies: int) -> None:
        """Loads the model `copies` times, which takes seconds. Raises `ModelNotFound`."""
        if copies > 1 and path.stat().st_size > _SHARED_FROM:
            settings = replace(settings, share_weights=True)
        settings = replace(settings, threads=settings.threads or free_cores())
        self.users = 0
        self._assigned: dict[str, LocalServer] = {}
        self._assigning = threading.Lock()
        self.all: list[LocalServer] = []
        try:
            for _ in range(copies):
                self.all.append(LocalServer(path, settings))
        except BaseException:  # Ctrl-C, too: no server is left running
            self.close()
            raise
        self.settings = self.all[0].settings  # those in force, the same for all servers

    def of(self, architecture: str) -> LocalServer:
        """The architecture's server. If there are more architectures than servers, they share them in turn."""
        with self._assigning:
            return self._assigned.setdefault(architecture, self.all[len(self._assigned) % len(self.all)])

    def close(self) -> None:
        """End the processes. Closing twice is allowed."""
        for server in self.all:
            server.close()


_running: dict[tuple[Path, ServerSettings, int], Servers] = {}  # by file, settings and number
_starting = threading.Lock()


@asynccontextmanager
async def serve(path: Path, settings: ServerSettings = ServerSettings(), *, copies: int = 1) -> AsyncIterator[Servers]:
    """Servers for this file, shared with all users of the same file and settings. Raises `ModelNotFound`."""

    def begin() -> tuple[tuple[Path, ServerSettings, int], Servers]:
        key = (path.resolve(), settings, copies)
        with _starting:  # held while loading, so that a second user waits for the first one's servers
            servers = _running[key] = _running.get(key) or Servers(*key)
            servers.users += 1
        return key, servers

    def end() -> None:
        with _starting:
            servers.users -= 1
            if servers.users:
                return
            del _running[key]
        servers.close()

    key, servers = await to_thread.run_sync(begin)
    try:
        yield servers
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(end)


@atexit.register
def _close_all() -> None:
    """End servers that an interrupted program left running."""
    while _running:
        _running.popitem()[1].close()


@dataclass(frozen=True)
class PerArchitectureModel:
    """A model on servers that this run started: the servers, and the client of each.

    A provider that can't be reached may be back in a minute. Our own server that ran out of memory or crashed won't:
    every further question would fail after all its retries, so the run ends with the reason and can be resumed.
    """

    servers: Servers
    clients: Mapping[LocalServer, Model]

    async def complete(self, request: Request) -> Completion:
        """The model's completion. Raises `ModelError`, as `ModelGone` where the server has ended."""
        server = self.servers.of(current_architecture())
        try:
            return await self.clients[server].complete(request)
        except ModelError as error:
            if error.status is None and (end := await to_thread.run_sync(server.how_it_ended)):
                name = server.path.name
                raise ModelGone(f"the server of {name!r} has ended ({end})", call_cost=error.call_cost) from error
            raise
