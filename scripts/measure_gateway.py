"""What the gateway costs: requests through it beside the same requests made directly, in turn, in one run.

    python scripts/measure_gateway.py                  # 64 at once, 2,000 requests a round
    python scripts/measure_gateway.py --latency-ms 200

The provider and the clients are processes of their own. The gateway, its meter, the model client and the journal
are in this one, so its CPU time is the overhead. `direct` is the client at the provider; `gateway` is the same client
at the gateway, under 64 keys. Both ask for whole answers, and for streams of 32 events. Medians are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import anyio
from aiohttp import web

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or litellm asks the network for prices at its import

from rewoo_bench.agents.gateway import Gateway
from rewoo_bench.calls.meter import Meter
from rewoo_bench.calls.recorded import RecordedModel
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import RetryingModel
from rewoo_bench.evaluation.folder import open_run
from rewoo_bench.models.hosted.client import ModelSettings
from rewoo_bench.models.open import open_model
from rewoo_bench.runs.journal.records import TaskKey

KEYS, EVENTS = 64, 32
BODY = {"model": "test", "messages": [{"role": "user", "content": "word " * 400}], "max_tokens": 64}
USAGE = {"prompt_tokens": 407, "completion_tokens": EVENTS, "total_tokens": 407 + EVENTS}


async def answer(request: web.Request) -> web.StreamResponse:
    """The provider: an answer of 32 tokens, whole or as a stream."""
    body = await request.json()
    await asyncio.sleep(request.app["latency_s"])
    if not body.get("stream"):
        message = {"role": "assistant", "content": "word " * EVENTS}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "x", "object": "chat.completion", "choices": [choice], "usage": USAGE})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number in range(EVENTS):
        finish = "stop" if number == EVENTS - 1 else None
        choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": finish}
        await response.write(f"data: {json.dumps({'id': 'x', 'choices': [choice]})}\n\n".encode())
    if (body.get("stream_options") or {}).get("include_usage"):
        await response.write(f"data: {json.dumps({'id': 'x', 'choices': [], 'usage': USAGE})}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


async def serve(latency_ms: float) -> None:
    """Runs the provider until it is ended; prints its address."""
    app = web.Application()
    app["latency_s"] = latency_ms / 1000
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


async def ask(addresses: Sequence[str], calls: int, stream: bool) -> None:
    """The clients: as many at once as there are addresses. Prints the seconds that all calls took."""
    waiting = iter(range(calls))
    body = {**BODY, "stream": stream}

    async def work(session: aiohttp.ClientSession, address: str) -> None:
        for _ in waiting:
            async with session.post(f"{address}/chat/completions", json=body) as response:
                text = await response.read()
                assert response.status == 200, text

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for address in addresses:
                group.create_task(work(session, address))
        print(time.perf_counter() - start)


@contextmanager
def provider(latency_ms: float) -> Iterator[str]:
    command = [sys.executable, __file__, "--serve", "--latency-ms", str(latency_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@asynccontextmanager
async def gateway(api_base: str) -> AsyncIterator[list[str]]:
    """The addresses of 64 open questions."""
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_model("openai/test", ModelSettings(api_base=api_base)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        recorder = Recorder((await stack.enter_async_context(open_run(folder, {"run_id": "gateway"}))).journal)
        model = RetryingModel(opened.model)
        server = await stack.enter_async_context(Gateway("test"))
        group = await stack.enter_async_context(anyio.create_task_group())
        sessions = []
        for number in range(KEYS):
            recorded = RecordedModel(await recorder.question(TaskKey("agent", f"q{number}", 0)), model)
            sessions.append(stack.enter_context(server.open_session(Meter({"": recorded}), {})))
            group.start_soon(sessions[-1].serve)
        yield [f"{server.address(session)}/v1" for session in sessions]
        group.cancel_scope.cancel()


async def timed(addresses: Sequence[str], calls: int, stream: bool) -> tuple[float, float]:
    """Calls a second, and milliseconds of this process's CPU time for each call."""
    cpu = time.process_time()
    flags = [*(["--stream"] if stream else []), "--calls", str(calls)]
    command = [sys.executable, __file__, *flags, "--ask", *addresses]
    ended = await anyio.run_process(command, stderr=None)
    return calls / float(ended.stdout), (time.process_time() - cpu) / calls * 1000


async def measure(options: argparse.Namespace) -> None:
    with provider(options.latency_ms) as api_base:
        async with gateway(api_base) as keys:
            figures: dict[tuple[str, bool], list[tuple[float, float]]] = {}
            for round_ in range(options.rounds + 1):
                for stream in (False, True):
                    for name, addresses in (("direct", [api_base] * KEYS), ("gateway", keys)):
                        figure = await timed(addresses, options.calls, stream)
                        if round_:  # the first is a warm-up
                            figures.setdefault((name, stream), []).append(figure)
    print(
        f"{options.calls:,} calls, {KEYS} at once, {options.latency_ms:g} ms each; medians of {options.rounds} rounds"
    )
    for (name, stream), rounds in figures.items():
        speed, cpu = (statistics.median(values) for values in zip(*rounds, strict=True))
        cost = f", {cpu:.2f} ms of CPU a call" if name == "gateway" else ""
        print(f"{name:8} {'streams' if stream else 'whole  '}  {speed:7.0f} calls a second{cost}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.latency_ms))
    elif options.ask:
        asyncio.run(ask(options.ask, options.calls, options.stream))
    else:
        anyio.run(measure, options)


if __name__ == "__main__":
    main()
