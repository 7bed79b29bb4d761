"""What a cache holds of prompts, had they all begun with more tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plot_runs import oracle_run

from rewoo_bench.analysis.call_costs import cached_tokens, priced, read_calls
from rewoo_bench.config.price_sheets import CacheRule, named_tariff
from rewoo_bench.runs.folder import load


def sizes(**columns: list[float]) -> dict[str, np.ndarray]:
    ages = {"shared_run_age_s": [1.0, 1.0, 9.0], "shared_question_age_s": [1.0, 1.0, 9.0]}
    return {name: np.array(values) for name, values in {**ages, **columns}.items()}


def rule(**values: object) -> CacheRule:
    return CacheRule.model_validate({"kind": "automatic", "source": "made up", "as_of": "2026-11-24", **values})


def test_a_context_lengthens_what_is_found_and_stays_where_a_longer_prefix_is_too_old() -> None:
    """Blocks of 10 from 100 tokens on. The third call's own prefix is 9 s old, too old; a failed call has 0."""
    calls = sizes(input_tokens=[95, 0, 95], shared_question_tokens=[0, 0, 90], shared_run_tokens=[55, 0, 55])
    blocks = rule(minimum_prefix_tokens=100, block_tokens=10, lifetime_s=5)
    for context, found in ((0, [0, 0, 0]), (44, [0, 0, 0]), (45, [100, 0, 0]), (128, [180, 0, 120])):
        assert cached_tokens(calls, blocks, context)[0].tolist() == found


def test_a_context_is_part_of_what_ends_at_a_mark() -> None:
    calls = sizes(
        input_tokens=[95, 0, 95], shared_run_tokens=[55, 0, 55], marked_tokens=[55, 0, 55],
        last_marked_tokens=[80, 0, 80], shared_marked_tokens=[55, 0, 55],
    )  # fmt: skip
    marks = rule(kind="explicit", minimum_prefix_tokens=100, lifetime_s=5)
    for context, found, written in ((0, [0, 0, 0], [0, 0, 0]), (30, [0, 0, 0], [110, 0, 110]),
                                    (50, [105, 0, 0], [25, 0, 130]), (100, [155, 0, 100], [25, 0, 80])):  # fmt: skip
        assert [part.tolist() for part in cached_tokens(calls, marks, context)] == [found, written]


def test_with_a_context_each_call_is_longer(tmp_path: Path) -> None:
    run = oracle_run(tmp_path / "run", "rewoo", "react", dataset="chain?hops=1..3", questions=6)
    calls, none = read_calls(run, load(run)), named_tariff("none")
    more = priced(calls, {"": none}, context=1000).usd - priced(calls, {"": none}).usd
    assert more == pytest.approx(np.full(len(more), 1000 * none.input))
