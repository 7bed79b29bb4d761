"""What calls.parquet says a prompt shares with earlier ones, against caches played on the prompts themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_runs import quiet
from priced_runs import ask, asked, text, write
from prompt_caches import replayed

from rewoo_bench.analysis.call_costs import cached_tokens, read_calls
from rewoo_bench.config.price_sheets import SHORT_PRICES, CacheRule, named_tariff
from rewoo_bench.runs.folder import load

PROMPT = text("P", 1000)


def shared(folder: Path) -> list[tuple[int, int]]:
    """Of each call the tokens shared within the question, and with other ones."""
    calls = pd.read_parquet(folder / "calls.parquet")
    return [*zip(calls["shared_question_tokens"], calls["shared_run_tokens"], strict=True)]


def columns_of(folder: Path, rule: CacheRule) -> np.ndarray:
    calls = read_calls(folder, load(folder))
    return np.column_stack([calls.of_rows(part) for part in cached_tokens(calls.columns, rule)])


def test_a_prompt_shares_with_its_own_question_and_with_others(tmp_path: Path) -> None:
    first = ask(0, 1, 1100, 5, PROMPT, asked("q1", 100))
    again = ask(2, 3, 1200, 5, PROMPT, asked("q1", 100), text("o1", 100))
    other = ask(4, 5, 1100, 5, PROMPT, asked("q2", 100))
    run = write(tmp_path / "run", {("react", "q1"): [first, again], ("react", "q2"): [other]})
    assert shared(run) == [(0, 0), (1100, 0), (0, 1000)]
    ages = pd.read_parquet(run / "calls.parquet")["shared_run_age_s"]
    assert ages.isna().tolist() == [True, True, False]
    assert ages[2] == pytest.approx(1)


def test_a_call_in_flight_and_another_architecture_share_nothing(tmp_path: Path) -> None:
    long, meanwhile = ask(0, 10, 1000, 5, PROMPT), ask(9, 12, 1000, 5, PROMPT)
    run = write(tmp_path / "run", {("react", "q1"): [long, meanwhile], ("rewoo", "q1"): [ask(20, 21, 1000, 5, PROMPT)]})
    assert shared(run) == [(0, 0)] * 3


def test_marks_of_a_cache_are_known(tmp_path: Path) -> None:
    first = ask(0, 1, 1100, 5, PROMPT, asked("q1", 100), marks=(0,))
    again = ask(2, 3, 1200, 5, PROMPT, asked("q1", 100), text("o1", 100), marks=(0, 2))
    calls = pd.read_parquet(write(tmp_path / "run", {("react", "q1"): [first, again]}) / "calls.parquet")
    assert calls["marked_tokens"].tolist() == [1000, 1000]
    assert calls["last_marked_tokens"].tolist() == [1000, 1200]
    assert calls["shared_marked_tokens"].tolist() == [0, 1000]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "chain"
    names = "rewoo,rewoo-lazy,react-json,react,react-native,plan-execute,llmcompiler,rewoo-react,direct,cot"
    names += ",rewoo-code,react-code"
    flags = ("--dataset", "chain?hops=1..6", "-n", "12", "--trials", "2", "--max-steps", "13", "--model", "oracle")
    assert quiet("--arch", names, *flags, "--out", folder) == 0
    return folder


@pytest.mark.slow
@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", [name for name in SHORT_PRICES if name != "none"])
def test_every_shipped_rule_finds_in_the_columns_what_it_finds_in_the_prompts(chain: Path, name: str) -> None:
    """Oracle runs of twelve architectures, two trials, eight questions at once: equal to the token."""
    rule = named_tariff(name).rule
    assert rule is not None
    expected = replayed(chain, rule)
    assert np.array_equal(columns_of(chain, rule), expected)
    assert expected[:, 0].sum() > 0 or name == "gemini"  # no prompt has 2,048 tokens that another one had


@pytest.mark.parametrize("lifetime", [0.001, 0.003, 0.01, 0.1])
@pytest.mark.parametrize("kind", ["automatic", "explicit"])
def test_where_prefixes_expire_columns_and_prompts_differ_by_little(chain: Path, kind: str, lifetime: float) -> None:
    """Of a prefix that expired the columns know the longest shorter one that another question had, not every one."""
    rule = CacheRule.model_validate({"kind": kind, "lifetime_s": lifetime, "source": "-", "as_of": "2026-11-25"})
    found, expected = columns_of(chain, rule)[:, 0], replayed(chain, rule)[:, 0]
    assert abs(found.sum() - expected.sum()) <= 0.02 * expected.sum() + 2 * expected.max()  # or two prompts
