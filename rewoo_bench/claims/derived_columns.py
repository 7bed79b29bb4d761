"""Further columns for claims, computed from the files of a run: a value per question of one architecture.

    derived("own_calls", rows, calls)     # model calls of the architecture, without those of the LLM tool

`rows` and `calls` are questions.parquet and calls.parquet of one architecture, `rows` indexed by
`example_id, trial`. A column is None where the files of an older run lack what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rewoo_bench.analysis.call_prices import priced, read_calls
from rewoo_bench.analysis.cost_formulas import PARTS, cost_law
from rewoo_bench.config.price_sheets import RULES, named_tariff
from rewoo_bench.runs.columns import QUESTIONS

if TYPE_CHECKING:
    import pandas as pd

KEY = ["example_id", "trial"]


def derived(name: str, rows: pd.DataFrame, calls: pd.DataFrame | None, folder: Path) -> pd.Series[float] | None:
    """A column by its name, of `QUESTIONS` or of those below; `folder` is the run's."""
    if name in PRICED:
        return _dollars(rows, folder, *PRICED[name]) if calls is not None else None
    if name in FROM_CALLS:
        return FROM_CALLS[name](rows, calls) if calls is not None else None
    if name in FROM_ROWS:
        return FROM_ROWS[name](rows)
    return rows[name].astype("float64") if name in rows.columns else None


def _calls_beyond_tools(rows: pd.DataFrame) -> pd.Series[float]:
    return (rows["llm_calls"] - rows["tool_calls"]).astype("float64")


def _wrong_answer(rows: pd.DataFrame) -> pd.Series[float]:
    """1 where the architecture gave an answer and the answer was wrong."""
    wrong = (rows["stop_reason"] == "answered") & ~rows["exact_match"].fillna(value=True).astype(bool)
    return wrong.astype("float64").mask(rows["exact_match"].isna())


def _answered(rows: pd.DataFrame) -> pd.Series[float]:
    """1 where the architecture gave an answer, right or wrong."""
    return (rows["stop_reason"] == "answered").astype("float64")


def _over_limit(rows: pd.DataFrame) -> pd.Series[float]:
    """1 where a limit of steps or tokens ended the question."""
    over = rows["stop_reason"].isin(["step_limit", "token_limit"])
    return over.astype("float64").mask(rows["exact_match"].isna())


def _incorrect(rows: pd.DataFrame) -> pd.Series[float]:
    """1 where there is no right answer: a wrong one, or none."""
    return 1 - rows["exact_match"].astype("float64")


def _seven_steps(rows: pd.DataFrame) -> pd.Series[float]:
    """1 where the question took seven steps or more."""
    return (rows["steps"] >= 7).astype("float64")


def _looping(rows: pd.DataFrame) -> pd.Series[float] | None:
    """1 where the trajectory repeats itself until its end; None where an older run can't tell."""
    if "loop_tokens" not in rows.columns or rows["loop_tokens"].isna().all():
        return None
    return rows["loop_step"].notna().astype("float64").mask(rows["loop_tokens"].isna())


def _plan_steps(rows: pd.DataFrame) -> pd.Series[float]:
    """Steps of a plan and the answer: how the paper counts ReWOO's steps."""
    return (rows["steps"] + 1).astype("float64")


def _own_calls(rows: pd.DataFrame, calls: pd.DataFrame) -> pd.Series[float]:
    own = (calls["kind"] == "model") & ~calls["role"].isin(["judge", "tool"])
    return _summed(rows, own.astype("float64"), calls)


def _summed(rows: pd.DataFrame, values: pd.Series[float], calls: pd.DataFrame) -> pd.Series[float]:
    """The sum over each question's calls."""
    return values.groupby([calls[name] for name in KEY], observed=True).sum().reindex(rows.index, fill_value=0.0)


def _law(column: str) -> Callable[[pd.DataFrame, pd.DataFrame], pd.Series[float] | None]:
    def of(rows: pd.DataFrame, calls: pd.DataFrame) -> pd.Series[float] | None:
        if not set(PARTS) <= set(calls.columns):
            return None
        tokens = cost_law(calls).set_index(KEY)[column].astype("float64")
        return tokens.reindex(rows.index)

    return of


def _dollars(rows: pd.DataFrame, folder: Path, rule: str, cached: bool) -> pd.Series[float]:
    """Dollars of each question under a named price; without a cache at the same prices where it isn't `cached`."""
    import pandas as pd

    tariff = named_tariff(rule)
    calls = read_calls(folder, rows.reset_index())
    costs = priced(calls, {"": tariff if cached else replace(tariff, rule=None)})
    return pd.Series(calls.of_rows(costs.usd), rows.index)


FROM_ROWS: dict[str, Callable[[pd.DataFrame], pd.Series[float] | None]] = {
    "calls_beyond_tools": _calls_beyond_tools,
    "wrong_answer": _wrong_answer,
    "answered": _answered,
    "over_limit": _over_limit,
    "plan_steps": _plan_steps,
    "incorrect": _incorrect,
    "seven_steps": _seven_steps,
    "looping": _looping,
}
FROM_CALLS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], pd.Series[float] | None]] = {
    "own_calls": _own_calls,
    "formula_tokens": _law("formula"),
    "prompt_tokens": _law("prompts"),
}
# `usd:openai` is what a question costs under that price, `usd:openai:uncached` the same without its cache.
PRICED = {
    f"usd:{rule}{ending}": (rule, cached) for rule in RULES for ending, cached in (("", True), (":uncached", False))
}
YES_OR_NO = frozenset(
    {"exact_match", "judged_correct", "wrong_answer", "answered", "over_limit", "incorrect", "seven_steps", "looping"}
)
SCORES = YES_OR_NO | {"f1"}
SECONDS = frozenset({"latency_s", "working_s"})
# Columns without a meaning in an oracle's run: accuracy and latency.
NOT_OF_AN_ORACLE = SCORES | SECONDS
COLUMNS = frozenset({field.name for field in QUESTIONS if str(field.type) in ("int32", "int64", "double", "bool")})
COLUMNS |= {*FROM_ROWS, *FROM_CALLS, *PRICED}
