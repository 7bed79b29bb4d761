"""Limits in dollars for external agents, on a model with a price: the books of a run equal those of its provider."""

from __future__ import annotations

import pytest
from command_runs import quiet
from gateway_agents import with_settings
from gateway_runs import calls, rows, write_function, write_questions

from rewoo_bench.testing.server import ModelServer

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

PRICED = "openai/gpt-4o-mini"
INPUT_USD, OUTPUT_USD = 0.15e-6, 0.6e-6  # for a token
ANSWER = "the river " * 100


@pytest.fixture
def priced() -> ModelServer:
    return ModelServer(lambda request: ANSWER)


def run(server: ModelServer, agent: str, *flags: object, questions: int = 3) -> int:
    model = ("--model", PRICED, "--api-base", server.api_base)
    asked = ("--dataset", write_questions(questions).absolute(), "--out", "out")
    return quiet("--arch", write_function(agent).absolute(), *asked, *model, *flags)


def check_books(server: ModelServer) -> float:
    """The rows have what the server sent, in tokens and in dollars; the dollars."""
    paid = server.totals()
    dollars = paid.input_tokens * INPUT_USD + paid.output_tokens * OUTPUT_USD
    assert rows().billed_tokens.sum() == paid.total_tokens
    assert rows().cost_usd.sum() == pytest.approx(dollars)
    return float(dollars)


def test_a_cost_limit_ends_an_agent_that_asks_for_ever(priced: ModelServer) -> None:
    limit = 0.001
    with priced as server, with_settings(max_retries=0):
        assert run(server, "asks_for_ever", "--cost-limit", limit) == 0
    assert set(rows().stop_reason) == {"cost_limit"}
    assert rows().error.str.contains(f"of {limit} USD").all()
    dearest = calls().billed_tokens.max() * OUTPUT_USD
    assert ((rows().cost_usd >= limit) & (rows().cost_usd < limit + dearest)).all()
    check_books(server)


def test_the_cap_on_a_runs_cost_holds_for_agents_and_a_resumed_run_has_the_whole_bill(priced: ModelServer) -> None:
    cap = 0.001
    with priced as server, with_settings(calls=3):
        assert run(server, "chat", "--max-total-cost", cap, "--concurrency", 4, questions=8) == 3
        spent = server.totals()
        dollars = spent.input_tokens * INPUT_USD + spent.output_tokens * OUTPUT_USD
        assert cap <= dollars < cap * 1.5
        assert quiet("--resume", "out", "--max-total-cost", "none") == 0
    assert set(rows().stop_reason) == {"answered"}
    assert set(rows().llm_calls) == {3}
    assert len(server.books) == 3 * 8
    assert check_books(server) > cap
