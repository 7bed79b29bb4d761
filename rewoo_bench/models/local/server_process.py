"""The process of a llama.cpp server: `python -P server_process.py '{"path": …}'`.

It writes one line of JSON, `{"address": "http://127.0.0.1:43127"}` or `{"error": …}`, and then
serves until its standard input ends, which also happens when the parent dies. `server.py` starts it. It
imports nothing of ours, so that it starts fast. If the settings have a `program`, that llama-server serves
instead of xllamacpp's; when it ends, so does this process, with another line, `{"ended": …}`.

Why a process: closed in the parent's own, xllamacpp 2026.10 waits for ever, with the interpreter's
lock held, where a request is still running (after Ctrl-C) or the server has only just started.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from typing import Any


def start_embedded(settings: dict[str, Any]) -> Any:
    """xllamacpp's server. Raises `ImportError` or `RuntimeError`."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["context"] * settings["n_parallel"]
    params.n_parallel = settings["n_parallel"]
    params.cache_ram_mib = settings["prompt_cache_mib"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames, params.port = ["127.0.0.1"], 0  # any free port
    params.ctx_shift = False  # a prompt that is too long is an error, and never cut unseen
    params.n_cache_reuse = 0  # moving cached pieces about changes results
    # Flash attention and repacked weights add up in an order that depends on how many tokens are in
    # the batch, and so on what was found in the prompt cache: a third to two thirds of greedy
    # answers changed. Without them a prompt has one answer, whatever of it is cached; but for one
    # whose last piece is a single token (less than eight with K-quants), as it is where the whole
    # prompt was asked before: other kernels read such a piece, and round otherwise.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.no_extra_bufts = True
    # Without flash attention the scores of a piece's tokens against all before them are a table, in
    # a 135M model of 12 MB for 260 tokens after 1,000 others; for 64 it fits into a core's own cache.
    params.n_ubatch = 64
    # Private memory can be in large pages (server.py asks for them), which saves some 5% of the time.
    modes = xllamacpp.llama_load_mode
    params.load_mode = modes.LLAMA_LOAD_MODE_MMAP if settings["share_weights"] else modes.LLAMA_LOAD_MODE_NONE
    params.ui = False
    params.verbosity = -1
    return xllamacpp.Server(params)


class OwnServer:
    """A user's llama-server, with the settings of the embedded one; the user's arguments come last."""

    def __init__(self, settings: dict[str, Any]) -> None:
        port = _free_port()
        self.listening_address = f"http://127.0.0.1:{port}"
        self._command = [settings["program"][0], *_arguments(settings, port), *settings["program"][1:]]
        self._process: subprocess.Popen[str] | None = None
        self._last_line: deque[str] = deque(maxlen=1)

    def start(self) -> None:
        """Loads the model. Raises `RuntimeError`."""
        name = self._command[0]
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise RuntimeError(f"{name!r} can't be started: {error.strerror}") from None
        self._process = process
        listening = threading.Thread(target=self._listen, args=[process], daemon=True)
        listening.start()
        while not self._is_ready():
            if process.poll() is not None:
                listening.join(1)
                raise RuntimeError(f"{name!r} ended with {_named(process.returncode)}: {' '.join(self._last_line)}")
            time.sleep(0.05)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()

    def wait(self) -> str:
        """Waits until it has ended; returns how it ended."""
        assert self._process is not None
        return f"{_named(self._process.wait())}: {' '.join(self._last_line)}"

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Reads its log, which would fill the pipe, and keeps the last line."""
        assert process.stderr is not None
        self._last_line.extend(line.strip() for line in process.stderr if line.strip())

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.listening_address}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _arguments(settings: dict[str, Any], port: int) -> list[str]:
    """The settings of `start_embedded` as flags."""
    threads = str(settings["threads"])
    return [
        "--model", settings["path"],
        "--ctx-size", str(settings["context"] * settings["n_parallel"]),
        "--parallel", str(settings["n_parallel"]),
        "--cache-ram", str(settings["prompt_cache_mib"]),
        "--threads", threads, "--threads-batch", threads,
        "--host", "127.0.0.1", "--port", str(port),
        "--no-context-shift", "--cache-reuse", "0", "--flash-attn", "off", "--no-repack",
    ]  # fmt: skip


def _named(code: int) -> str:
    """How a process ended, from its return code."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the parent ends this one
    settings = json.loads(sys.argv[1])
    try:
        server = serve_own(settings) if settings["program"] else start_embedded(settings)
    except ImportError as error:
        print(json.dumps({"error": "import", "message": str(error)}), flush=True)
    except RuntimeError as error:
        print(json.dumps({"error": "load", "message": str(error)}), flush=True)
    else:
        print(json.dumps({"address": server.listening_address}), flush=True)
        wait_for_end(server)
    os._exit(0)  # without the destructor, which may wait for ever


def serve_own(settings: dict[str, Any]) -> OwnServer:
    """The user's server. It ends with the parent, also while it is still loading."""
    server = OwnServer(settings)
    threading.Thread(target=wait_for_end, args=[server], daemon=True).start()
    server.start()
    threading.Thread(target=report_end, args=[server], daemon=True).start()
    return server


def report_end(server: OwnServer) -> None:
    """Ends this process when the user's server has ended, and prints how it ended."""
    print(json.dumps({"ended": server.wait()}), flush=True)
    os._exit(1)


def wait_for_end(server: Any) -> None:
    """Ends this process, and the user's server, when the parent has closed the pipe or is gone."""
    # For xllamacpp's server only in the main thread: it doesn't start where another one reads.
    sys.stdin.read()
    if isinstance(server, OwnServer):
        server.close()
    os._exit(0)


if __name__ == "__main__":
    main()
