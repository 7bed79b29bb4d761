"""Embeddings of external agents go to a model of their own, or are refused."""

from __future__ import annotations

import math

import openai
import pytest
from command_runs import quiet
from dialect_server import DialectServer
from gateway_runs import calls, check_books, rows, run_agents, traces, write_function, write_questions
from open_questions import open_question

from rewoo_bench.analysis.prices import pricing_of, with_dollars
from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import manifests
from rewoo_bench.runs.rows import Rows

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_embeddings_go_to_the_runs_embedding_model() -> None:
    with DialectServer() as provider:
        agents = [write_function("everything")]
        assert run_agents(provider, agents, "--embedding-model", "openai/embed-x", questions=2) == 0
    assert {entry.body["model"] for entry in provider.books if entry.path == "/embeddings"} == {"embed-x"}
    assert {entry.body["model"] for entry in provider.books if entry.path != "/embeddings"} == {"gpt-x"}
    assert set(calls().query("role == 'embedding'").name) == {"openai/embed-x"}
    note = "asked for the embedding model text-embedding-3-large"
    assert all(trace["notes"]["gateway"][note] == 1 for trace in traces())
    check_books(provider)
    replayed = ("--arch", agents[0].absolute(), "--model", "replay/out", "--out", "again")
    assert quiet(*replayed, "--dataset", write_questions(2).absolute()) == 0
    assert list(rows("again").total_tokens) == list(rows().total_tokens)


def test_embeddings_have_a_price_of_their_own() -> None:
    prices = ("--price", "input=1,cached=1,output=2", "--price", "embedding:input=0.02,output=0")
    with DialectServer() as provider:
        agents = [write_function("everything")]
        assert run_agents(provider, agents, "--embedding-model", "openai/embed-x", *prices, questions=1) == 0
    asked = [(entry.tokens, 0.02 if entry.path == "/embeddings" else 1) for entry in provider.books]
    cost = sum(tokens.input * price + tokens.output * 2 for tokens, price in asked)
    assert list(rows().cost_usd) == [pytest.approx(cost / 10**6)]
    (compared,) = pricing_of(["out"], rows(), manifests("out"), price=prices[1::2]).of(Rows(rows()))["cost_usd"]
    assert compared == pytest.approx(cost / 10**6)


def test_dollars_without_a_price_of_the_embeddings_say_so(capfd: pytest.CaptureFixture[str]) -> None:
    price = "input=1,cached=1,output=2"
    with DialectServer() as provider:
        agents = [write_function("everything")]
        assert run_agents(provider, agents, "--embedding-model", "openai/embed-x", "--price", price, questions=1) == 0
    assert rows().cost_usd.isna().all()
    assert "Dollars are at openai/gpt-x's prices and without embeddings." in capfd.readouterr().out
    (budgeted,) = with_dollars(["out"], Rows(rows()), manifests("out"))[0]["cost_usd"]
    assert math.isnan(budgeted)
    for more in ([], ["--price", price]):
        with pytest.raises(SystemExit):
            main(["compare", "out", *more])
        assert "the embeddings of openai/embed-x aren't in the dollars" in " ".join(capfd.readouterr().out.split())


@pytest.mark.anyio
async def test_without_an_embedding_model_embeddings_are_refused() -> None:
    with DialectServer() as provider:
        async with (
            open_question(provider.api_base) as question,
            openai.AsyncOpenAI(base_url=question.base_url, api_key="any") as client,
        ):
            with pytest.raises(openai.BadRequestError, match="this run has no --embedding-model; name one"):
                await client.embeddings.create(model="text-embedding-3-small", input="Neva")
    assert provider.books == []


@pytest.mark.parametrize(
    ("model", "reason"),
    [("oracle", "it has no embeddings"), ("openai/x", "leave it out")],
)
def test_an_embedding_model_that_a_run_has_no_use_for_is_refused(
    model: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quiet("--arch", "direct", "--model", "oracle", "--embedding-model", model, "--out", "out") == 2
    assert reason in capsys.readouterr().err
