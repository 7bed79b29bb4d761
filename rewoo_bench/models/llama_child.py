"""The process that llama.cpp runs in: `python -P llama_child.py '{"path": …}'`.

It writes one line of JSON, `{"address": "http://127.0.0.1:43127"}` or `{"error": …}`, and then
serves until its standard input ends, as it does when the parent dies in whatever way. `local.py`
starts it. It imports nothing of ours, so that it starts fast.

Why a process: closed in the parent's own, xllamacpp 2026.10 waits for ever, with the interpreter's
lock held, where a request is still running (after Ctrl-C) or the server has only just started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any


def start(settings: dict[str, Any]) -> Any:
    """A server. Raises `ImportError` or `RuntimeError`."""
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
    # answers changed. Without them a prompt has one answer, cached or not, to the last bit.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.no_extra_bufts = True
    params.ui = False
    params.verbosity = -1
    return xllamacpp.Server(params)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the parent ends this one
    try:
        server = start(json.loads(sys.argv[1]))
    except ImportError as error:
        print(json.dumps({"error": "import", "message": str(error)}), flush=True)
    except RuntimeError as error:
        print(json.dumps({"error": "load", "message": str(error)}), flush=True)
    else:
        print(json.dumps({"address": server.listening_address}), flush=True)
        sys.stdin.read()
    os._exit(0)  # without the destructor, which may wait for ever


if __name__ == "__main__":
    main()
