"""Records what instrumentation packages write about a scripted agent, beside the ledger of its model server.

    pip install -r tests/golden/telemetry/requirements.txt
    PYTHONPATH=. python tests/support/record_telemetry.py        # all of them, each in a process of its own

Each writes `NAME.jsonl` and `NAME.ledger.json` into tests/golden/telemetry. The agent, its tools and the model server
are real and on this machine; spans come over OTLP/HTTP to a receiver that writes them as a collector does.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.types import ToolCall, Usage

FOLDER = Path(__file__).parents[1] / "golden/telemetry"
HEIGHT, SUM, TWICE = "How high is the tower in feet?", "What is 2 + 2?", "Is it open, and is it still?"
SYSTEM = "You answer briefly. Use the tools."
MODEL = "test-model"


def search(query: str) -> str:
    """Looks something up."""
    LOG.append({"name": "search", "arguments": {"query": query}, "result": f"{query}: 330 ({len(LOG)})"})
    return str(LOG[-1]["result"])


def divide(by: int) -> str:
    """Divides the last number."""
    LOG.append({"name": "divide", "arguments": {"by": by}, "result": "Error: division by zero"})
    return str(LOG[-1]["result"])


LOG: list[dict[str, Any]] = []
TOOLS: Mapping[str, Callable[..., str]] = {"search": search, "divide": divide}
SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": tool.__doc__,
            "parameters": {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]},
        },
    }
    for name, tool, argument, kind in (("search", search, "query", "string"), ("divide", divide, "by", "integer"))
]
SCRIPT: Mapping[str, list[Any]] = {
    HEIGHT: [[("search", {"query": "tower"})], [("divide", {"by": 0}), ("search", {"query": "foot"})], "1,083 feet"],
    SUM: ["4"],
    TWICE: [[("search", {"query": "open"})], [("search", {"query": "open"})], "Yes, twice"],
}


def reply_of(served: list[int]) -> Callable[[dict[str, Any]], ServerReply]:
    def reply(request: dict[str, Any]) -> ServerReply:
        served.append(len(served))
        n = len(served)
        usage = Usage(100 + n, 60 + n, 30 + 2 * n, 5 + n)
        messages = request["messages"]
        question = next(m["content"] for m in messages if m["role"] == "user")
        question = question if isinstance(question, str) else question[0]["text"]
        step = SCRIPT[question][sum(m["role"] == "assistant" for m in messages)]
        if isinstance(step, str):
            return ServerReply(step, usage=usage)
        calls = [ToolCall(f"call_{n}_{i}", name, arguments) for i, (name, arguments) in enumerate(step)]
        return ServerReply("", "tool_calls", calls, usage)

    return reply


def ledger_of(server: ModelServer) -> list[dict[str, Any]]:
    """What the server served and what the tools did, by question."""
    tools = iter(LOG)
    found: dict[str, dict[str, Any]] = {}
    for entry in server.books:
        question = next(m["content"] for m in entry.request["messages"] if m["role"] == "user")
        question = question if isinstance(question, str) else question[0]["text"]
        assert entry.usage is not None
        assert isinstance(entry.answer, ServerReply)
        of = found.setdefault(
            question, {"question": question, "calls": [], "tools": [], "answer": SCRIPT[question][-1]}
        )
        calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in entry.answer.tool_calls]
        of["calls"].append(
            {
                "input": entry.usage.input_tokens,
                "cached": entry.usage.cached_input_tokens,
                "output": entry.usage.output_tokens,
                "reasoning": entry.usage.reasoning_tokens,
                "text": entry.answer.text,
                "tool_calls": calls,
                "roles": [m["role"] for m in entry.request["messages"]],
            }
        )
        of["tools"] += [next(tools) for call in calls if call["name"] in TOOLS]
    return list(found.values())


class Receiver:
    """Takes OTLP over HTTP, and any JSON that is posted, and keeps it in the order in which it came."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if "protobuf" in str(self.headers.get("content-type")):
                    receiver.lines.append(otlp_json(self.path, body))
                elif body.startswith(b"{"):
                    receiver.lines.append(json.loads(body))
                self.answer(b"{}")

            def answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def otlp_json(path: str, body: bytes) -> Any:
    """The request as OTLP JSON: ids in hexadecimal, enumerations as numbers."""
    kind = "logs" if path.endswith("logs") else "trace"
    module = import_module(f"opentelemetry.proto.collector.{kind}.v1.{kind}_service_pb2")
    message = getattr(module, f"Export{kind.title()}ServiceRequest")()
    message.ParseFromString(body)
    to_dict = import_module("google.protobuf.json_format").MessageToDict

    def hexadecimal(value: Any) -> Any:
        if isinstance(value, dict):
            ids = ("traceId", "spanId", "parentSpanId")
            return {
                name: base64.b64decode(each).hex() if name in ids and isinstance(each, str) else hexadecimal(each)
                for name, each in value.items()
            }
        return [hexadecimal(each) for each in value] if isinstance(value, list) else value

    return hexadecimal(to_dict(message, use_integers_for_enums=True))


def ask(client: Any, question: str, tools: Mapping[str, Callable[..., str]] = TOOLS) -> str:
    """A loop of the model and its tools until it answers."""
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    while True:
        response = client.chat.completions.create(model=MODEL, messages=messages, tools=SCHEMAS)
        message = response.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = tools[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


@contextmanager
def exported(receiver: Receiver, with_logs: bool = False) -> Iterator[Any]:
    """A tracer whose spans go to the receiver, as the packages find it."""
    trace, sdk = import_module("opentelemetry.trace"), import_module("opentelemetry.sdk.trace")
    exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter
    batch = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor
    provider = sdk.TracerProvider()
    provider.add_span_processor(batch(exporter(f"{receiver.address}/v1/traces")))
    trace.set_tracer_provider(provider)
    logs = None
    if with_logs:
        sdk_logs = import_module("opentelemetry.sdk._logs")
        log_exporter = import_module("opentelemetry.exporter.otlp.proto.http._log_exporter").OTLPLogExporter
        processor = import_module("opentelemetry.sdk._logs.export").BatchLogRecordProcessor
        logs = sdk_logs.LoggerProvider()
        logs.add_log_record_processor(processor(log_exporter(f"{receiver.address}/v1/logs")))
        import_module("opentelemetry._logs").set_logger_provider(logs)
    yield provider.get_tracer("agent")
    provider.shutdown()
    if logs is not None:
        logs.shutdown()


def openai_client(base: str) -> Any:
    return import_module("openai").OpenAI(base_url=base, api_key="none", max_retries=0)


def plain(module: str) -> Callable[[str, Receiver], None]:
    """OpenAI's client, instrumented by a package; each question in a span."""

    def record(base: str, receiver: Receiver) -> None:
        with exported(receiver, with_logs=True) as tracer:
            import_module(module).OpenAIInstrumentor().instrument()
            for question in SCRIPT:
                with tracer.start_as_current_span("question"):
                    ask(openai_client(base), question)

    return record


def console(base: str, receiver: Receiver) -> None:
    """As `plain`, with the SDK's own console exporter in its form over several lines."""
    trace, sdk = import_module("opentelemetry.trace"), import_module("opentelemetry.sdk.trace")
    export = import_module("opentelemetry.sdk.trace.export")
    provider = sdk.TracerProvider()
    with (FOLDER / "openinference-console.json").open("w") as file:
        provider.add_span_processor(export.SimpleSpanProcessor(export.ConsoleSpanExporter(out=file)))
        trace.set_tracer_provider(provider)
        import_module("openinference.instrumentation.openai").OpenAIInstrumentor().instrument()
        for question in SCRIPT:
            with provider.get_tracer("agent").start_as_current_span("question"):
                ask(openai_client(base), question)
        provider.shutdown()


def langgraph(base: str, receiver: Receiver) -> None:
    """An agent of LangGraph, whose model calls are seen by its own package and by that of OpenAI's client."""
    with exported(receiver) as tracer:
        import_module("openinference.instrumentation.langchain").LangChainInstrumentor().instrument()
        import_module("opentelemetry.instrumentation.openai_v2").OpenAIInstrumentor().instrument()
        run_langgraph(base, lambda: tracer.start_as_current_span("request"))


def run_langgraph(base: str, around: Callable[[], Any] = nullcontext) -> None:
    model = import_module("langchain_openai").ChatOpenAI(model=MODEL, base_url=base, api_key="none")
    tool = import_module("langchain_core.tools").tool
    create = import_module("langgraph.prebuilt").create_react_agent
    agent = create(model, [tool(each) for each in TOOLS.values()], prompt=SYSTEM)
    for question in SCRIPT:
        # one after the other, so that the ledger knows the order
        with around():
            agent.invoke({"messages": [{"role": "user", "content": question}]}, {"max_concurrency": 1})


def pydantic_ai(is_doubled: bool) -> Callable[[str, Receiver], None]:
    """An agent of Pydantic AI; doubled: OpenAI's client is instrumented, too."""

    def record(base: str, receiver: Receiver) -> None:
        ai = import_module("pydantic_ai")
        model = import_module("pydantic_ai.models.openai").OpenAIChatModel
        provider = import_module("pydantic_ai.providers.openai").OpenAIProvider(base_url=base, api_key="none")
        with exported(receiver) as tracer:
            if is_doubled:
                import_module("opentelemetry.instrumentation.openai_v2").OpenAIInstrumentor().instrument()
            ai.Agent.instrument_all(True)
            agent = ai.Agent(
                model(MODEL, provider=provider), tools=list(TOOLS.values()), instructions=SYSTEM, name="guide"
            )
            for question in SCRIPT:
                with tracer.start_as_current_span("request"):
                    agent.run_sync(question)

    return record


def langfuse(base: str, receiver: Receiver) -> None:
    """OpenAI's client in Langfuse's wrapper, with tools and the agent as observations."""
    os.environ.update(
        LANGFUSE_HOST=receiver.address, LANGFUSE_BASE_URL=receiver.address,
        LANGFUSE_PUBLIC_KEY="pk-lf-1", LANGFUSE_SECRET_KEY="none",
    )  # fmt: skip
    package = import_module("langfuse")
    client = import_module("langfuse.openai").OpenAI(base_url=base, api_key="none", max_retries=0)
    tools = {name: package.observe(as_type="tool")(tool) for name, tool in TOOLS.items()}
    observed = package.observe(as_type="agent", name="guide")(lambda question: ask(client, question, tools))
    for question in SCRIPT:
        observed(question)
    package.get_client().flush()


def langfuse_api(base: str, receiver: Receiver) -> None:
    """What Langfuse's SDK sends, as rows of the observations API: as its server makes them, checked by the SDK."""
    langfuse(base, receiver)
    row = import_module("langfuse.api.commons.types.observation_v2").ObservationV2
    parse = import_module("langfuse.api.core.pydantic_utilities").parse_obj_as
    rows = []
    for line in receiver.lines:
        for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            found = {each["key"]: each["value"].get("stringValue") for each in span["attributes"]}
            times = [datetime.fromtimestamp(int(span[f"{name}TimeUnixNano"]) / 1e9, UTC) for name in ("start", "end")]
            observation = {
                "id": span["spanId"], "traceId": span["traceId"], "parentObservationId": span.get("parentSpanId"),
                "name": span["name"], "type": str(found["langfuse.observation.type"]).upper(), "projectId": "mine",
                "startTime": times[0].isoformat(), "endTime": times[1].isoformat(), "level": "DEFAULT",
                "input": found.get("langfuse.observation.input"), "output": found.get("langfuse.observation.output"),
                "model": found.get("langfuse.observation.model.name"), "usageDetails": None, "costDetails": None,
            }  # fmt: skip
            if usage := json.loads(found.get("langfuse.observation.usage_details") or "null"):
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                reasoned = usage["completion_tokens_details"]["reasoning_tokens"]
                observation["usageDetails"] = {
                    "input": usage["prompt_tokens"] - cached, "input_cached_tokens": cached,
                    "output": usage["completion_tokens"] - reasoned, "output_reasoning_tokens": reasoned,
                    "total": usage["total_tokens"],
                }  # fmt: skip
                observation["costDetails"] = {"input": 0.25, "output": 0.5, "total": 0.75}
            parse(row, observation)
            rows.append(observation)
    receiver.lines = [{"data": rows, "meta": {}}]


CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LATEST = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
V2 = "opentelemetry.instrumentation.openai_v2"
RECORDINGS: Mapping[str, tuple[Callable[[str, Receiver], None], Mapping[str, str]]] = {
    "openai-v2-without-texts": (plain(V2), {}),
    "openai-v2-log-events": (plain(V2), {CONTENT: "true"}),
    "openai-v2-attributes": (plain(V2), {**LATEST, CONTENT: "span_only"}),
    "openai-v2-operation-details": (plain(V2), {**LATEST, CONTENT: "event_only"}),
    "traceloop": (plain("opentelemetry.instrumentation.openai"), {}),
    "traceloop-indexed": (plain("opentelemetry.instrumentation.openai"), {}),  # of 0.40.14
    "openinference": (plain("openinference.instrumentation.openai"), {}),
    "openinference-console": (console, {}),
    "langgraph-twice": (langgraph, {}),
    "pydantic-ai": (pydantic_ai(False), {}),
    "pydantic-ai-twice": (pydantic_ai(True), {**LATEST, CONTENT: "span_only"}),
    "langfuse-sdk": (langfuse, {}),
    "langfuse-api": (langfuse_api, {}),
}


def record(name: str) -> None:
    receiver = Receiver()
    with ModelServer(reply_of([])) as server:
        RECORDINGS[name][0](server.api_base, receiver)
    (FOLDER / f"{name}.ledger.json").write_text(json.dumps(ledger_of(server), indent=1) + "\n")
    if receiver.lines:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in receiver.lines)
        for secret in (os.environ.get("STORE") or "no folder", str(Path.cwd()), os.uname().nodename):
            text = text.replace(secret, "somewhere")
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", text)
        if len(text) < 100_000:
            (FOLDER / f"{name}.jsonl").write_text(text)
        else:
            (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        return record(sys.argv[2])
    for name in sys.argv[1:] or RECORDINGS:
        with TemporaryDirectory() as store:
            settings = {**os.environ, **RECORDINGS[name][1], "STORE": store}
            subprocess.run([sys.executable, __file__, "--one", name], env=settings, check=True, timeout=180)
    return None


if __name__ == "__main__":
    main()
