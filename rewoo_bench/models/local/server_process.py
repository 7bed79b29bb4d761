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
from typing import Any, NoReturn

# MiB of cached prompts at most; the oldest leave first. It is the same for any number of servers, so that an
# architecture's cached prefixes don't depend on the other architectures.
_PROMPT_CACHE = 512
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # none reaches this machine's loopback


def start_embedded(settings: dict[str, Any]) -> Any:
    """xllamacpp's server. Raises `ImportError` or `RuntimeError`."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["context"] * settings["n_parallel"]
    params.n_parallel = settings["n_parallel"]
    params.cache_ram_mib = _PROMPT_CACHE
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


def run_embedded(settings: dict[str, Any]) -> None:
    """Serves with xllamacpp until the parent has closed the pipe or is gone."""
    try:
        server = start_embedded(settings)
    except (ImportError, RuntimeError) as error:
        say(error="import" if isinstance(error, ImportError) else "load", message=str(error))
        return
    say(address=server.listening_address)
    sys.stdin.read()  # in the main thread: xllamacpp's server doesn't start where another one reads
    os._exit(0)  # without the destructor, which may wait for ever


def run_program(settings: dict[str, Any]) -> None:
    """Serves with a user's llama-server, which ends with the parent, also while it is loading.

    It has the settings of the embedded one; the user's arguments come last.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    threads = str(settings["threads"])
    name, *own = settings["program"]
    command = [
        name,
        "--model", settings["path"],
        "--ctx-size", str(settings["context"] * settings["n_parallel"]),
        "--parallel", str(settings["n_parallel"]),
        "--cache-ram", str(_PROMPT_CACHE),
        "--threads", threads, "--threads-batch", threads,
        "--host", "127.0.0.1", "--port", str(port),
        "--no-context-shift", "--cache-reuse", "0", "--flash-attn", "off", "--no-repack", "--ubatch-size", "64",
        *own,
    ]  # fmt: skip
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        say(error="load", message=f"{name!r} can't be started: {error.strerror}")
        return
    last_line: deque[str] = deque(maxlen=1)

    def end_with_parent() -> NoReturn:
        sys.stdin.read()
        process.kill()
        os._exit(0)

    def read_log() -> None:  # it would fill the pipe
        assert process.stderr is not None
        last_line.extend(text for line in process.stderr if (text := line.decode("utf-8", "replace").strip()))

    logging = threading.Thread(target=read_log, daemon=True)
    logging.start()
    threading.Thread(target=end_with_parent, daemon=True).start()
    while (is_running := process.poll() is None) and not is_ready(f"http://127.0.0.1:{port}/health"):
        time.sleep(0.05)
    if is_running:
        say(address=f"http://127.0.0.1:{port}")
    code = process.wait()
    logging.join(1)
    end = f"{f'signal {signal.Signals(-code).name}' if code < 0 else f'code {code}'}: {' '.join(last_line)}"
    if is_running:
        say(ended=end)
    else:
        say(error="load", message=f"{name!r} ended with {end}")


def is_ready(address: str) -> bool:
    try:
        with WITHOUT_PROXY.open(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def say(**facts: str) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the parent ends this one
    given = json.loads(sys.argv[1])
    (run_program if given["program"] else run_embedded)(given)
    os._exit(1)
