"""A llama-server for tests, as somebody may have built one: its flags, its log, its way to end.

    python llama_server.py --version
    python llama_server.py --model FILE.gguf --host 127.0.0.1 --port 8080 ...

llama.cpp's server itself is xllamacpp's. Flags it doesn't know end it with an error, as the real one's do.
"""

from __future__ import annotations

import argparse
import sys
import threading


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="store_true")
    for text in ("--model", "--host", "--flash-attn"):
        parser.add_argument(text)
    for number in ("--port", "--ctx-size", "--parallel", "--cache-ram", "--threads", "--threads-batch"):
        parser.add_argument(number, type=int)
    for number in ("--ubatch-size", "--cache-reuse"):
        parser.add_argument(number, type=int)
    parser.add_argument("--no-context-shift", action="store_true")
    parser.add_argument("--repack", action=argparse.BooleanOptionalAction)
    options = parser.parse_args()
    if options.version:
        print("version: 9999 (f00dfeed)\nbuilt with a compiler", file=sys.stderr)
        return

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.n_ctx, params.n_parallel, params.n_ubatch = options.ctx_size, options.parallel, options.ubatch_size
    params.hostnames, params.port = [options.host], options.port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.no_extra_bufts = not options.repack
    params.ui = False
    server = xllamacpp.Server(params)
    print(f"main: listening on {server.listening_address}", file=sys.stderr, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
