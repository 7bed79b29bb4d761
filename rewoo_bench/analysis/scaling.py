"""How input tokens grow with the look-ups that a question needs: fitted on short questions, tested on long ones.

    ReAct   (h + 1) fixed + h (h + 1) / 2 step     a model call for each look-up and one that answers, each with
                                                   all earlier observations
    ReWOO   fixed + h step                         the planner and the solver once, evidence for each look-up

These are the shapes of Xu et al. 2023 (arXiv 2305.18323, section 2.2) for a question of h look-ups. The two
numbers of a law are fitted by least squares on the questions of 1 to 4 look-ups. The questions of 5 or more
take no part in the fit: they test the law.

Both are laws of an agent without detours, as the oracle is. That of ReAct is a third too low for an oracle that makes
two calls more a question (`--model 'oracle?extra_steps=2'`, 96 chains of 1 to 8 look-ups, by the law of the plain
one), and off by 289% on average on 39 long chains that SmolLM2-135M answered (results/models/chain-smollm2-135m).

    predict(rows)    # Prediction(law=FittedLine("ReAct", fixed=1260.2, step=91.1), fitted=40, held_out=80, …)

`rows` are rows of questions.parquet of one architecture. A look-up (hop) is one that the question needs, whatever the
run did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from rewoo_bench.analysis.cost_formulas import scaled_parts
from rewoo_bench.runs.failed_rows import left_out

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

FITTED_UP_TO = 4
"""Look-ups of the longest questions that a law is fitted on."""
CUT_OFF = ("step_limit", "repeated", "token_limit", "time_limit", "cost_limit", "invalid_plan")
"""Stop reasons of questions that ended before their look-ups were done: their tokens are those of a part."""
_KEY = ["run_id", "example_id", "trial"]
_SHAPE = r"^chain-(?P<hops>\d+)x(?P<width>\d+)"

Name = Literal["ReAct", "ReWOO"]


@dataclass(frozen=True, slots=True)
class FittedLine:
    """Input tokens of a question as a function of its look-ups."""

    name: Name
    fixed: float
    """Tokens of every model call (ReAct), or of the question once (ReWOO)."""
    step: float
    """Tokens that each look-up adds: to every later prompt (ReAct), or once (ReWOO)."""

    def input_tokens(self, look_ups: ArrayLike) -> NDArray[np.float64]:
        """Predicted input tokens, an array of the same shape."""
        calls, seen = _shape(self.name, look_ups)
        predicted: NDArray[np.float64] = calls * self.fixed + seen * self.step
        return predicted


@dataclass(frozen=True, slots=True)
class Prediction:
    """A law, and how far it was off on questions that it wasn't fitted on."""

    law: FittedLine
    fitted: int
    """Rows that it was fitted on."""
    held_out: int
    """Rows that it was tested on."""
    error: float
    """Mean absolute error over the held-out rows, as a share of the measured tokens; NaN where there are none."""
    largest: float
    """The largest of these errors."""


def fit(name: Name, look_ups: ArrayLike, tokens: ArrayLike) -> FittedLine:
    """The law by least squares. Needs two different numbers of look-ups."""
    (fixed, step), *_ = np.linalg.lstsq(np.column_stack(_shape(name, look_ups)), np.asarray(tokens, float), rcond=None)
    return FittedLine(name, float(fixed), float(step))


def predict(rows: pd.DataFrame) -> Prediction | None:
    """The law of an architecture and its error; None where no law covers it, or there are too few rows to fit one.

    Questions that the infrastructure failed or that a limit cut off are in neither part.
    """
    name, (short, long) = law_of(rows), _parted(rows)
    if name is None or look_ups(short).nunique() < 2:
        return None
    law = fit(name, look_ups(short), short["input_tokens"])
    measured = long["input_tokens"].to_numpy(float)
    errors = np.abs(law.input_tokens(look_ups(long)) / measured - 1)
    mean, most = (float(errors.mean()), float(errors.max())) if len(errors) else (math.nan, math.nan)
    return Prediction(law, len(short), len(long), mean, most)


def terms(calls: pd.DataFrame, rows: pd.DataFrame) -> dict[str, FittedLine]:
    """The terms of a ReWOO law, each fitted as the whole is, so that they add up to it.

    `calls` are rows of calls.parquet. Empty where the law is another one, or an older run lacks the prompts' parts.
    """
    prediction = predict(rows)
    parts = scaled_parts(calls)
    if prediction is None or prediction.law.name != "ReWOO" or parts is None:
        return {}
    short = _parted(rows)[0].set_index(_KEY)
    of = {role: parts[(calls["role"] == role).to_numpy()] for role in ("planner", "solver", "tool")}
    exemplars, evidence = of["solver"]["exemplar_tokens"], of["solver"]["found_tokens"]
    sizes = {
        "planner's prompt": of["planner"].sum(axis=1),
        "solver's instructions and question": of["solver"].sum(axis=1) - exemplars - evidence,
        "solver's exemplars": exemplars,
        "plan and evidence": evidence,
        "LLM tool's prompts": of["tool"].sum(axis=1),
    }
    by_question = {
        term: size.groupby([calls.loc[size.index, key] for key in _KEY]).sum().reindex(short.index, fill_value=0.0)
        for term, size in sizes.items()
    }
    return {term: fit("ReWOO", look_ups(short), size) for term, size in by_question.items() if size.any()}


def look_ups(rows: pd.DataFrame) -> pd.Series[float]:
    """How many look-ups each question needs; NaN where that isn't known.

    Runs that are older than the column `hops` name them in the question's type, where the data set is `chain`.
    """
    if "hops" in rows.columns and rows["hops"].notna().any():
        return rows["hops"].astype("float64")
    shape = rows["question_type"].astype(str).str.extract(_SHAPE).astype("float64")
    return shape["hops"] * shape["width"]


def law_of(rows: pd.DataFrame) -> Name | None:
    """The law that covers an architecture, by the roles that took tokens."""
    planned, solved, acted = (_above_zero(rows, f"{role}_tokens") for role in ("planner", "solver", "agent"))
    if planned.any() and solved.any() and not acted.any():
        return "ReWOO"
    alone = acted.any() and not planned.any() and not solved.any()
    return "ReAct" if alone and _above_zero(rows, "tool_calls").any() else None


def cut_off(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """A mask: True where a limit ended the question, or no plan for it was sound."""
    mask: NDArray[np.bool_] = rows["stop_reason"].isin(CUT_OFF).to_numpy(bool)
    return mask


def _parted(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to fit a law on, and rows to test it on."""
    counted = rows[~left_out(rows) & ~cut_off(rows) & _above_zero(rows, "input_tokens")]
    needed = look_ups(counted)
    return counted[(needed <= FITTED_UP_TO).to_numpy(bool)], counted[(needed > FITTED_UP_TO).to_numpy(bool)]


def _above_zero(rows: pd.DataFrame, column: str) -> NDArray[np.bool_]:
    above: NDArray[np.bool_] = np.nan_to_num(rows[column].to_numpy(dtype=np.float64, na_value=math.nan)) > 0
    return above


def _shape(name: Name, look_ups: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many times the fixed tokens are paid, and those of a look-up."""
    needed = np.asarray(look_ups, dtype=np.float64)
    return (needed + 1, needed * (needed + 1) / 2) if name == "ReAct" else (np.ones_like(needed), needed)
