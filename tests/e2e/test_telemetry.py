"""`--otel`: finished questions as spans, at a collector."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pandas as pd
import pytest
from command_runs import quiet

from rewoo_bench import load
from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.types import Usage

pytest.importorskip("opentelemetry.sdk", reason="needs OpenTelemetry (pip install 'rewoo-bench[otel]')")
pytestmark = pytest.mark.usefixtures("own_folder")


class Collector(BaseHTTPRequestHandler):
    bodies: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        self.bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


class Collected:
    """A collector's address, and the spans that it got."""

    def __init__(self, address: str, bodies: list[tuple[str, bytes]]) -> None:
        self.address = address
        self.bodies = bodies

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = []
        for path, body in self.bodies:
            assert path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    def of_row(self, row: Any) -> list[Any]:
        """The spans of a row's trace, in the order of their names."""
        mine = [span for span in self.spans() if span.trace_id.hex() == row["trace_id"]]
        return sorted(mine, key=lambda span: str(span.name))


@pytest.fixture
def collector() -> Iterator[Collected]:
    bodies: list[tuple[str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Collector,), {"bodies": bodies}))
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield Collected(f"http://127.0.0.1:{server.server_port}", bodies)
    server.shutdown()
    server.server_close()
    thread.join()


def attributes_of(span: Any) -> dict[str, Any]:
    """An attribute's value, whatever its type."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_a_rows_trace_has_its_agent_and_its_calls(collector: Collected) -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    assert (
        quiet("--arch", "rewoo,react", "--model", "oracle", "-n", "3", "--out", "run", "--otel", collector.address) == 0
    )
    calls = pd.read_parquet("run/calls.parquet")
    (run,) = [span for span in collector.spans() if span.name == "run"]
    for row in load("run").to_dict("records"):
        trace = collector.of_row(row)
        (question,) = [span for span in trace if span.name == "question"]
        (agent,) = [span for span in trace if span.name == f"invoke_agent {row['architecture']}"]
        assert agent.parent_span_id == question.span_id
        assert question.links[0].trace_id == run.trace_id
        attributes = attributes_of(agent)
        assert attributes["gen_ai.usage.input_tokens"] == row["input_tokens"]
        assert attributes["gen_ai.usage.output_tokens"] == row["output_tokens"]
        below = [span for span in trace if span.parent_span_id == agent.span_id]
        mine = calls[(calls["architecture"] == row["architecture"]) & (calls["example_id"] == row["example_id"])]
        operations = [attributes_of(span)["gen_ai.operation.name"] for span in below]
        assert operations.count("chat") == (mine["kind"] == "model").sum()
        assert operations.count("execute_tool") == (mine["kind"] == "tool").sum()
        assert all(question.start_time_unix_nano <= span.start_time_unix_nano for span in below)
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    names = {name for span in collector.spans() for name in attributes_of(span)}
    ours = {name for name in names if name.startswith("rewoo_bench.")}
    assert names - ours - known == set()
    assert "rewoo_bench.cost_usd" not in ours  # the oracle has no price
    told = b"".join(body for _, body in collector.bodies)
    assert not any(question.encode() in told for question in load("run")["question"])


def test_spans_carry_what_a_call_cost_and_the_parts_of_its_tokens(collector: Collected) -> None:
    usage = Usage(1000, cached_input_tokens=600, output_tokens=50, reasoning_tokens=40, cache_write_tokens=100)
    with ModelServer(lambda _: ServerReply("Answer: Neva", usage=usage)) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--price", "input=1,cached=0.1,output=10")
        assert quiet("--arch", "direct", "-n", "2", *model, "--out", "run", "--otel", collector.address) == 0
    for row in load("run").to_dict("records"):
        told = [
            attributes_of(span) for span in collector.of_row(row) if span.name.startswith(("chat ", "invoke_agent "))
        ]
        assert len(told) == 2  # the call and its agent, which made no other
        for attributes in told:
            assert attributes["gen_ai.usage.input_tokens"] == row["input_tokens"]
            assert attributes["gen_ai.usage.cache_read.input_tokens"] == row["cached_input_tokens"] == 600
            assert attributes["gen_ai.usage.cache_creation.input_tokens"] == row["cache_write_tokens"]
            assert attributes["gen_ai.usage.output_tokens"] == row["output_tokens"] == 50
            assert attributes["gen_ai.usage.reasoning.output_tokens"] == row["reasoning_tokens"] == 40
            assert attributes["rewoo_bench.cost_usd"] == pytest.approx(row["cost_usd"])


def test_a_collector_that_is_not_there_is_one_warning_and_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    asked = ("--arch", "direct", "--model", "oracle", "-n", "3")
    assert quiet(*asked, "--out", "run", "--otel", "http://127.0.0.1:9") == 0
    assert [record.getMessage() for record in caplog.records] == [
        "--otel: spans can't be exported to http://127.0.0.1:9; the run goes on"
    ]
    assert quiet(*asked, "--out", "untraced") == 0
    assert load("untraced")["trace_id"].isna().all()
    assert quiet(*asked, "--out", "wrong", "--otel", "spans.jsonl") == 2
