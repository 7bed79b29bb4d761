"""Limits in dollars for external agents, on a model with a price: the books of a run equal those of its provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from answering import KEY
from command_runs import quiet
from gateway_agents import with_settings
from gateway_runs import rows, write_function, write_questions

from rewoo_bench.models.hosted.providers import find_route
from rewoo_bench.testing.server import ModelServer
from rewoo_bench.types import Usage

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

PRICED = "deepseek/deepseek-chat"  # its price stays known where DEEPSEEK_API_BASE names another address
ANSWER = "the river " * 100


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(lambda request: ANSWER) as server:
        monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
        monkeypatch.setenv("DEEPSEEK_API_BASE", server.api_base)
        yield server


def price(usage: Usage) -> float:
    entry = find_route(PRICED, None, None, "chat").entry
    assert entry is not None
    prices = (float(entry.fields[f"{kind}_cost_per_token"]) for kind in ("input", "output"))
    return sum(tokens * each for tokens, each in zip((usage.input_tokens, usage.output_tokens), prices, strict=True))


def run(agent: str, *flags: object, questions: int = 3) -> int:
    asked = ("--dataset", write_questions(questions).absolute(), "--out", "out", "--model", PRICED)
    return quiet("--arch", write_function(agent).absolute(), *asked, *flags)


def check_books(server: ModelServer) -> float:
    """The rows have what the server sent, in tokens and in dollars; the dollars."""
    paid = server.totals()
    assert rows().billed_tokens.sum() == paid.total_tokens
    assert rows().cost_usd.sum() == pytest.approx(price(paid))
    return price(paid)


def test_the_cap_on_a_runs_cost_holds_for_agents_and_a_resumed_run_has_the_whole_bill(priced: ModelServer) -> None:
    cap = 0.001
    with with_settings(calls=3):
        assert run("chat", "--run-cost", cap, "--concurrency", 4, questions=8) == 3
        assert cap <= price(priced.totals()) < cap * 1.5
        assert quiet("--resume", "out", "--run-cost", "none") == 0
    assert set(rows().stop_reason) == {"answered"}
    assert set(rows().llm_calls) == {3}
    assert len(priced.books) == 3 * 8
    assert check_books(priced) > cap
