"""`--otel`: finished questions as spans, in a file and at a collector."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pandas as pd
import pytest
from command_runs import quiet

from rewoo_bench import load
from rewoo_bench.imports.write import import_run
from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.types import Usage

pytest.importorskip("opentelemetry.sdk", reason="needs OpenTelemetry (pip install 'rewoo-bench[otel]')")
pytestmark = pytest.mark.usefixtures("own_folder")


def spans_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_rows_trace_has_its_agent_and_its_calls() -> None:
    assert quiet("--arch", "rewoo,react", "--model", "oracle", "-n", "3", "--out", "run", "--otel", "spans.jsonl") == 0
    spans = spans_of(Path("spans.jsonl"))
    calls = pd.read_parquet("run/calls.parquet")
    for row in load("run").to_dict("records"):
        trace = [span for span in spans if span["context"]["trace_id"] == f"0x{row['trace_id']}"]
        names = [span["name"] for span in trace]
        assert names[-2:] == [f"invoke_agent {row['architecture']}", "question"]
        question, agent = trace[-1], trace[-2]
        assert agent["parent_id"] == question["context"]["span_id"]
        assert question["links"][0]["context"]["trace_id"] == spans[-1]["context"]["trace_id"]
        assert spans[-1]["name"] == "run"
        attributes = agent["attributes"]
        assert attributes["gen_ai.usage.input_tokens"] == row["input_tokens"]
        assert attributes["gen_ai.usage.output_tokens"] == row["output_tokens"]
        below = [span for span in trace if span["parent_id"] == agent["context"]["span_id"]]
        mine = calls[(calls["architecture"] == row["architecture"]) & (calls["example_id"] == row["example_id"])]
        operations = [span["attributes"]["gen_ai.operation.name"] for span in below]
        assert operations.count("chat") == (mine["kind"] == "model").sum()
        assert operations.count("execute_tool") == (mine["kind"] == "tool").sum()
        assert all(question["start_time"] <= span["start_time"] <= span["end_time"] for span in below)
    assert quiet("--arch", "rewoo", "--model", "oracle", "-n", "1", "--out", "untraced") == 0
    assert load("untraced")["trace_id"].isna().all()
    texts = Path("spans.jsonl").read_text(encoding="utf-8")
    assert not any(question in texts for question in load("run")["question"])


def test_a_file_of_spans_is_read_back_as_a_run() -> None:
    assert quiet("--arch", "rewoo,react", "--model", "oracle", "-n", "3", "--out", "run", "--otel", "spans.jsonl") == 0
    done = anyio.run(partial(import_run, [Path("spans.jsonl")], Path("back")))
    assert (done.rows, done.unreadable, dict(done.formats)) == (6, 0, {"otel": 6})
    assert done.lacks["prompts"] == done.lacks["results"] == 6
    assert done.lacks["usage"] == done.lacks["times"] == done.lacks["solved"] == 0
    key = ["architecture", "example_id", "trial"]
    counts = ["llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "exact_match"]
    was, back = (load(folder).astype({"architecture": str}).sort_values(key) for folder in ("run", "back"))
    assert was[key + counts].values.tolist() == back[key + counts].values.tolist()
    order = [*key, "kind", "name", "input_tokens", "output_tokens"]
    calls = [pd.read_parquet(f"{folder}/calls.parquet").sort_values([*key, "call_index"]) for folder in ("run", "back")]
    assert calls[0][order].fillna(-1).values.tolist() == calls[1][order].fillna(-1).values.tolist()
    assert (back["stop_reason"] == "answered").all()  # the answers themselves aren't in the spans


def test_spans_carry_what_a_call_cost_and_the_parts_of_its_tokens() -> None:
    usage = Usage(1000, cached_input_tokens=600, output_tokens=50, reasoning_tokens=40, cache_write_tokens=100)
    with ModelServer(lambda _: ServerReply("Answer: Neva", usage=usage)) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--price", "input=1,cached=0.1,output=10")
        assert quiet("--arch", "direct", "-n", "2", *model, "--out", "run", "--otel", "spans.jsonl") == 0
    calls = pd.read_parquet("run/calls.parquet")
    assert (calls["reasoning_tokens"] == 40).all()
    for row in load("run").to_dict("records"):
        trace = [s for s in spans_of(Path("spans.jsonl")) if s["context"]["trace_id"] == f"0x{row['trace_id']}"]
        told = [span["attributes"] for span in trace if span["name"].startswith(("chat ", "invoke_agent "))]
        assert len(told) == 2  # the call and its agent, which made no other
        for attributes in told:
            assert attributes["gen_ai.usage.input_tokens"] == row["input_tokens"]
            assert attributes["gen_ai.usage.cache_read.input_tokens"] == row["cached_input_tokens"] == 600
            assert attributes["gen_ai.usage.cache_creation.input_tokens"] == row["cache_write_tokens"]
            assert attributes["gen_ai.usage.output_tokens"] == row["output_tokens"] == 50
            assert attributes["gen_ai.usage.reasoning.output_tokens"] == row["reasoning_tokens"] == 40
            assert attributes["rewoo_bench.cost_usd"] == pytest.approx(row["cost_usd"])
    anyio.run(partial(import_run, [Path("spans.jsonl")], Path("back")))
    assert load("back")["cost_usd"].tolist() == pytest.approx(load("run")["cost_usd"].tolist())


def test_attributes_of_the_conventions_have_their_names() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    assert quiet("--arch", "react", "--model", "oracle", "-n", "1", "--out", "run", "--otel", "spans.jsonl") == 0
    names = {name for span in spans_of(Path("spans.jsonl")) for name in span["attributes"]}
    ours = {name for name in names if name.startswith("rewoo_bench.")}
    assert names - ours - known == set()
    assert "rewoo_bench.cost_usd" not in ours  # the oracle has no price


class Collector(BaseHTTPRequestHandler):
    bodies: list[tuple[str, int]]

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.rfile.read(size)
        self.bodies.append((self.path, size))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, int]]]]:
    bodies: list[tuple[str, int]] = []
    handler = type("Handler", (Collector,), {"bodies": bodies})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_collector_gets_all_spans_before_the_command_ends(collector: tuple[str, list[tuple[str, int]]]) -> None:
    address, bodies = collector
    assert quiet("--arch", "rewoo", "--model", "oracle", "-n", "2", "--out", "run", "--otel", address) == 0
    assert {path for path, _ in bodies} == {"/v1/traces"}
    assert sum(size for _, size in bodies) > 1000


def test_a_file_that_cannot_be_written_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "rewoo", "--model", "oracle", "-n", "1", "--out", "run", "--otel", "no/such/file") == 2
    assert "--otel: can't write 'no/such/file': No such file or directory" in capfd.readouterr().err
    assert quiet("--arch", "rewoo", "--model", "oracle", "-n", "1", "--out", "run") == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_warning_and_ends_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "direct", "--model", "oracle", "-n", "3", "--out", "run", "--otel", "/dev/full") == 0
    said = capfd.readouterr().err
    assert said.count("--otel: spans can't be exported to /dev/full; the run goes on") == 1
    assert "Traceback" not in said
