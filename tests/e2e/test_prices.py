"""`compare --prices` on real runs: the same dollars as were paid, other prices, and runs that lack what it takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_runs import quiet
from priced_runs import costs, sheet

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import CallCost, Completion, Usage

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.anyio]

CACHED = """
[cache.c]
kind = "{kind}"
source = "made up"
as_of = 2026-11-24
[models.m]
input = 1
output = 4
cache_read = 0.1
cache_write = 1.25
cache = "c"
"""


def compared(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *map(str, arguments)])
    return int(ended.value.code or 0)


@pytest.fixture
def chain() -> Path:
    """A run of the oracle over questions of one to four look-ups."""
    flags = ("--arch", "rewoo,react", "--dataset", "chain?hops=1..4", "-n", 16, "--model", "oracle")
    assert quiet(*flags, "--out", "chain") == 0
    return Path("chain")


async def test_at_the_prices_that_were_paid_it_costs_what_was_paid(tmp_path: Path) -> None:
    """The column `cost_usd` at 1 and 4 dollars a million, with a failed attempt in every call and without a cache."""
    used, lost = Usage(1000, 0, 70), Usage(400, 0, 30)
    paid = CallCost(attempts=2, billed=used + lost, cost_usd=(1400 * 1 + 100 * 4) / 1e6)
    model = ScriptedModel(lambda _, role: Completion("Thought: so\nAnswer: Neva", used, call_cost=paid))
    results = await rewoo_bench.evaluate("sample", ["direct", "cot"], model=model, questions=3, out="paid")
    prices = sheet(tmp_path, "[models.m]\ninput = 1\noutput = 4\n")
    costs = load("paid").groupby("architecture", observed=True)["cost_usd"].mean()
    for system in rewoo_bench.compare(results, prices=str(prices)).systems:
        assert system.summary.cost_usd == pytest.approx(float(costs[system.label]))
        assert system.summary.cost_usd == pytest.approx((1400 * 1 + 100 * 4) / 1e6)


def test_marks_of_prefixes_are_recorded_and_found(chain: Path, tmp_path: Path) -> None:
    """ReAct marks the end of its exemplars and of its growing trace; all but the first prompt is found in a cache."""
    react = costs(chain, sheet(tmp_path, CACHED.format(kind="explicit")))["react"]
    assert react.cached_share > 0.8
    assert 0 < react.cache_write_tokens < (1 - react.cached_share) * react.input_tokens


def test_every_format_has_the_dollars_under_each_price(chain: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = (chain, "--prices", "openai:gpt-4o-mini,anthropic-5m")
    capfd.readouterr()
    assert compared(*arguments) == 0
    shown = capfd.readouterr().out
    assert "cost under each price, means per question [95% interval]" in shown
    assert re.search(r"anthropic-5m\n  react / rewoo +16 ", shown)
    assert compared(*arguments, "--format", "json") == 0
    told = json.loads(capfd.readouterr().out)
    assert [each["price"] for each in told["under"]] == ["openai:gpt-4o-mini", "anthropic-5m"]
    (pair,) = told["under"][0]["pairs"]
    assert (pair["a"], pair["b"]) == ("rewoo", "react")
    (cost,) = (figure["interval"] for figure in told["pairs"][0]["figures"] if figure["measure"] == "cost_usd")
    assert pair["ratio"] == pytest.approx(cost)
    assert compared(*arguments, "--format", "csv") == 0
    lines = capfd.readouterr().out.splitlines()
    assert len([line for line in lines if "mean under anthropic-5m" in line]) == 2
    assert len([line for line in lines if "ratio under anthropic-5m" in line]) == 1
    for form in ("markdown", "latex"):
        assert compared(*arguments, "--format", form) == 0
        assert "anthropic-5m" in capfd.readouterr().out


def test_a_published_copy_has_the_dollars_of_its_run(chain: Path) -> None:
    rewoo_bench.publish(chain, "copy")
    first, copy = (rewoo_bench.compare(run, prices="openai,anthropic-5m").under for run in (chain, "copy"))
    assert first == copy
