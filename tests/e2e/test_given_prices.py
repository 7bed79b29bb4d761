"""Prices that a run is given: `--price` and `--prices`, for endpoints without a known price."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_runs import quiet, run
from model_server import ModelServer, ServerFault, ServerReply

import rewoo_bench
from rewoo_bench.analysis.prices import own_or_listed, pricing_of
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.runs.rows import Rows
from rewoo_bench.types import Usage

pytestmark = pytest.mark.usefixtures("own_folder")


def asked(server: ModelServer, *flags: object) -> int:
    """A run of direct over four questions, unless the flags say otherwise."""
    model = ("--model", "openai/test", "--api-base", server.api_base)
    return quiet("--arch", "direct", "-n", 4, *model, *flags)


def refused(capfd: pytest.CaptureFixture[str], server: ModelServer, *flags: object) -> str:
    assert asked(server, *flags) == 2
    assert not server.books
    return capfd.readouterr().err.strip()


@pytest.fixture
def thousand() -> Iterator[ModelServer]:
    """A server whose answers each take 999 tokens of input and one of output."""
    reply = ServerReply("#E1 = Search[Neva]\nAnswer: Neva", usage=Usage(input_tokens=999, output_tokens=1))
    with ModelServer(lambda _: reply) as server:
        yield server


def test_python_takes_prices_as_a_list(thousand: ModelServer) -> None:
    async def ask() -> rewoo_bench.Results:
        options: dict[str, Any] = {"api_base": thousand.api_base, "questions": 1, "price": ["input=1,output=10"]}
        return await rewoo_bench.evaluate("sample", "direct", model="openai/test", **options)

    assert [result.cost_usd for result in anyio.run(ask)] == [pytest.approx((999 * 1 + 1 * 10) / 1e6)]


def test_a_given_price_fills_the_dollars_and_makes_a_cap_usable(thousand: ModelServer) -> None:
    price = ("--price", "input=1,output=10")
    assert asked(thousand, *price, "--run-cost", 0.0025, "--concurrency", 1, "--out", "here") == 3
    rows = load("here")
    assert rows["cost_usd"].tolist() == pytest.approx([1009e-6] * len(rows))
    assert len(rows) < 4
    assert read_manifest(Path("here")).prices == {
        "openai/test": {"input": 1.0, "cached_input": 1.0, "output": 10.0, "cache_write": 1.0}
    }


def test_each_role_has_its_own_price(thousand: ModelServer) -> None:
    models = ("--solver-model", "openai/other")
    prices = ("--price", "input=1,output=0", "--price", "solver:input=100,output=0")
    asked(thousand, *models, *prices, "--out", "here")
    kept = read_manifest(Path("here")).prices or {}
    assert {name: (each or {})["input"] for name, each in kept.items()} == {"openai/test": 1.0, "openai/other": 100.0}


def test_a_sheet_prices_a_model_by_another_name(thousand: ModelServer) -> None:
    assert asked(thousand, "--prices", "openai:gpt-4o", "--out", "here") == 0
    assert load("here")["cost_usd"].tolist() == pytest.approx([(999 * 2.5 + 10) / 1e6] * 4)


def test_a_resumed_run_keeps_its_prices(thousand: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    price = ("--price", "input=1,output=10")
    assert asked(thousand, *price, "--run-cost", 0.0025, "--concurrency", 1, "--out", "here") == 3
    assert run("--resume", "here", "--price", "input=2,output=10") == 2
    assert "--price was 'input=1,output=10' in this run" in capfd.readouterr().err
    assert run("--resume", "here", "--run-cost", "none") == 0
    assert load("here")["cost_usd"].tolist() == pytest.approx([1009e-6] * 4)


def test_a_price_given_on_resuming_is_that_of_the_earlier_answers_too(
    thousand: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert asked(thousand, "--run-tokens", 2000, "--concurrency", 1, "--out", "here") == 3
    assert run("--resume", "here", "--run-tokens", "none", "--price", "input=1,output=10", "--no-progress") == 0
    rows = load("here")
    found = own_or_listed(["here"], Rows(rows), manifests("here"))
    assert found
    assert found.cost_usd is not None
    assert found.under.startswith("openai/test's prices, cached input as the endpoint counted it")
    assert found.cost_usd.tolist() == pytest.approx([1009e-6] * 4)
    capfd.readouterr()
    assert run("--resume", "here", "--price", "input=2,output=10") == 2
    assert "--price was 'input=1,output=10' in this run" in capfd.readouterr().err


def test_a_price_given_to_compare_is_that_of_a_run_which_had_it(thousand: ModelServer) -> None:
    price = "input=1,cached=0.5,output=10"
    assert asked(thousand, "--price", price, "--out", "priced") == 0
    assert asked(thousand, "--out", "unpriced") == 0
    rows, read = load("unpriced"), manifests("unpriced")
    found = pricing_of(["unpriced"], rows, read, price=[price])
    by_name = pricing_of(["unpriced"], rows, read, price=[f"openai/test:{price}"])
    for each in (found, by_name):
        assert each.cost_usd is not None
        assert each.cost_usd.tolist() == pytest.approx(load("priced")["cost_usd"].tolist())
    after, before = rewoo_bench.compare("unpriced", price=price), rewoo_bench.compare("priced")
    assert after.pricing
    assert before.pricing
    assert after.pricing.under == before.pricing.under


@pytest.fixture
def faulty() -> Iterator[ModelServer]:
    """A server whose answer to each question is cut at the first attempt, after usage with cached input."""
    usage, seen = {"prompt_tokens": 999, "completion_tokens": 1, "total_tokens": 1000}, set[str]()
    lost = {"choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 640}}}
    answer = ServerReply("Answer: Neva", usage=Usage(999, 512, 1))

    def reply(request: dict[str, Any]) -> ServerReply | ServerFault:
        asked = json.dumps(request["messages"])
        if asked in seen:
            return answer
        seen.add(asked)
        return ServerFault("body", status=200, body=json.dumps(lost).encode())

    with ModelServer(reply) as server:
        yield server


def test_failed_attempts_with_cached_input_cost_the_same_whoever_counts_them(faulty: ModelServer) -> None:
    price = "input=1,cached=0.1,output=10"
    assert asked(faulty, "--price", price, "--out", "priced") == 0
    rows, read = load("priced"), manifests("priced")
    assert rows["retries"].tolist() == [1] * 4
    assert rows["cost_usd"].tolist() == pytest.approx([(359 + 487 + 0.1 * (640 + 512) + 20) / 1e6] * 4, rel=1e-12)
    found = pricing_of(["priced"], rows, read, price=[price])
    assert found.cost_usd is not None
    assert found.cost_usd.tolist() == pytest.approx(rows["cost_usd"].tolist(), rel=1e-12)


def test_a_replay_counts_no_failed_attempt_under_any_price(
    faulty: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    price = "input=1,cached=0.1,output=10"
    assert asked(faulty, "--price", price, "--out", "priced") == 0
    assert quiet("--arch", "direct", "-n", 4, "--model", "replay/priced", "--out", "again") == 0
    assert "a replay pays nothing: its dollars are what the recorded calls would cost" in capfd.readouterr().err
    rows, read = load("again"), manifests("again")
    assert read_manifest(Path("again")).prices == read_manifest(Path("priced")).prices
    assert "cost (again): a replay pays nothing" in str(rewoo_bench.compare("again"))
    assert rows["cost_usd"].tolist() == pytest.approx([(487 + 0.1 * 512 + 10) / 1e6] * 4, rel=1e-12)
    found = pricing_of(["again"], rows, read, price=[price])
    assert found.cost_usd is not None
    assert found.cost_usd.tolist() == pytest.approx(rows["cost_usd"].tolist(), rel=1e-12)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--price", "input=1"), "--price input=1: expected input=0.15,cached=0.075,output=0.6 in dollars per million"),
        (("--price", "planner:input=1,output=1"), "the planner has no model of its own; give --planner-model"),
        (("--prices", "openai"), "--prices openai: unknown model of the sheet 'openai/test'"),
        (("--prices", "opnai:gpt-4o"), "unknown price 'opnai'"),
    ],
)
def test_a_wrong_price_is_one_line_before_the_first_call(
    server: ModelServer, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...], said: str
) -> None:
    error = refused(capfd, server, *flags)
    assert said in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("flag", "value", "instead"),
    [("--price", "input=1,output=1", "NAME"), ("--prices", "anthropic", "anthropic"), ("--prices", "none", "none")],
)
def test_the_oracle_has_no_price(capfd: pytest.CaptureFixture[str], flag: str, value: str, instead: str) -> None:
    assert run("--arch", "direct", "--model", "oracle", flag, value, "--no-progress") == 2
    said = "'oracle' costs nothing; leave it out, and price the finished run with rewoo-bench compare RUN --prices"
    assert capfd.readouterr().err.rstrip().endswith(f"{flag} {value}: {said} {instead}")


def test_two_runs_at_different_prices_of_a_model_are_said_to_be(thousand: ModelServer) -> None:
    for out, price in (("one", "input=1,output=10"), ("two", "input=2,output=10")):
        assert asked(thousand, "--price", price, "--out", out) == 0
    found = rewoo_bench.compare("one", "two")
    assert "the runs have different prices of openai/test: --prices NAME puts them under one" in str(found)
    assert any(line.startswith("At each run's own prices ") for line in found.verdicts)
    assert found.as_dict()["prices"].startswith("each run's own prices, cached input as the endpoint counted it")
    money = found.to_frame().query("measure == 'cost_usd'")
    assert set(money["prices"]) == {found.pricing.under}


def test_listed_prices_of_another_server_are_said_to_be_the_providers(thousand: ModelServer) -> None:
    model = ("--model", "openai/gpt-4o-mini", "--api-base", thousand.api_base)
    assert quiet("--arch", "direct", "-n", 2, *model, "--out", "here") == 0
    assert "what the server at --api-base takes isn't known" in str(rewoo_bench.compare("here"))
