"""Where a question's input tokens went, in the terms of Xu et al. 2023 (arXiv 2305.18323, section 2.2).

    ReAct   k |Q| + k |C| + k |S| + sum over j < k of (k - j) (|T_j| + |A_j| + |O_j|)     grows with k squared
    ReWOO   2 |Q| + 2 |C| + |S| + sum over j of (|P_j| + |E_j|)                           grows with k

Input tokens of one question in k steps: question Q, context C, exemplars S, and of each step thought T,
action A and observation O, or plan P and evidence E. Every term is measured on the question's own
prompts (`context_tokens` and its neighbours in calls.parquet), with the pinned tokenizer throughout.

This is an account and no test: for ReAct the terms are differences of the prompts that they add up to, so the
formula always holds. scaling.py makes predictions, which can be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

PARTS = ["context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"]
_QUESTION = ["architecture", "example_id", "trial"]


def cost_law(calls: pd.DataFrame) -> pd.DataFrame:
    """A row for each question that one of the two formulas covers; `calls` is calls.parquet.

    `k` counts model calls. `formula` is the formula's value, `prompts` the tokens of those prompts. The formula leaves
    out the solver's own exemplars, a question that occurs more than twice, and a second plan (`rest`). An LLM tool's
    prompts come on top: `prompts` + `tool_prompts` is all input of the question.
    """
    import pandas as pd

    asked = _asked(calls)
    groups: dict[Any, Any] = asked.groupby(_QUESTION, sort=False, observed=True).indices
    prompts = _Prompts(
        role=asked["role"].to_numpy(dtype=object),
        place=asked["place"].to_numpy(dtype=object),
        parts=asked[PARTS].fillna(0).to_numpy(dtype=int),
    )
    found = ((key, _question(prompts.only(where))) for key, where in groups.items())
    rows = [{**dict(zip(_QUESTION, key, strict=True)), **row} for key, row in found if row is not None]
    columns = [*_QUESTION, "law", "k", "formula", "solver_exemplars", "rest", "prompts", "tool_prompts"]
    return pd.DataFrame(rows, columns=columns)


def scaled_parts(calls: pd.DataFrame) -> pd.DataFrame | None:
    """The parts of each prompt, scaled to add up to its `input_tokens`; None where an older run lacks them.

    Parts are counted with the pinned tokenizer, `input_tokens` by the model's. So the shares are those of the
    pinned tokenizer, and the sums are those of the tables. A row a call; one that has no prompt is all zeros.
    """
    if not set(PARTS) <= set(calls.columns) or not calls[PARTS].notna().all(axis=1).any():
        return None
    parts = calls[PARTS].astype("float64").fillna(0.0)
    whole = parts.sum(axis=1)
    return parts.mul(calls["input_tokens"].astype("float64").fillna(0.0) / whole.where(whole > 0), axis=0).fillna(0.0)


def _asked(calls: pd.DataFrame) -> pd.DataFrame:
    """The model calls that the formulas are about, in their order."""
    asked = calls[(calls["kind"] == "model") & (calls["role"] != "judge") & (calls["status"] == "ok")]
    return asked.sort_values("call_index")


@dataclass(frozen=True, slots=True)
class _Prompts:
    """The prompts of some calls in their order; `parts` has a row for each, with the columns of `PARTS`."""

    role: NDArray[Any]
    place: NDArray[Any]
    parts: NDArray[np.int64]

    def only(self, where: NDArray[Any]) -> _Prompts:
        return _Prompts(self.role[where], self.place[where], self.parts[where])


def _question(calls: _Prompts) -> dict[str, Any] | None:
    """The row of one question; None where no formula covers its architecture."""
    roles = set(calls.role)
    if roles == {"agent"} and all(str(place).startswith(("turn", "partial")) for place in calls.place):
        return _react(calls.parts)
    if {"planner", "solver"} <= roles <= {"planner", "solver", "tool"}:
        return _rewoo(calls)
    return None


def _react(parts: NDArray[np.int64]) -> dict[str, Any]:
    k = len(parts)
    context, exemplars, question = (int(size) for size in parts[0, :3])
    trace = parts[:, 3] + parts[:, 4]
    steps = [int(size) for size in trace[1:] - trace[:-1]]  # T + A + O of steps 1 to k - 1
    formula = k * (question + context + exemplars) + sum((k - j) * size for j, size in enumerate(steps, start=1))
    prompts = int(parts.sum())
    return {
        "law": "ReAct", "k": k, "formula": formula, "solver_exemplars": 0, "rest": prompts - formula,
        "prompts": prompts, "tool_prompts": 0,
    }  # fmt: skip


def _rewoo(calls: _Prompts) -> dict[str, Any]:
    planner, solver = (dict(zip(PARTS, _prompt_parts(calls, *which), strict=True)) for which in (("planner", 0), ("solver", -1)))
    formula = (
        2 * planner["question_tokens"] + planner["context_tokens"] + solver["context_tokens"]
        + planner["exemplar_tokens"] + solver["found_tokens"]
    )  # fmt: skip
    is_tool = calls.role == "tool"
    prompts, tool = int(calls.parts[~is_tool].sum()), int(calls.parts[is_tool].sum())
    exemplars = solver["exemplar_tokens"]
    return {
        "law": "ReWOO", "k": int((~is_tool).sum()), "formula": formula, "solver_exemplars": exemplars,
        "rest": prompts - formula - exemplars, "prompts": prompts, "tool_prompts": tool,
    }  # fmt: skip


def _prompt_parts(calls: _Prompts, role: str, position: int) -> list[int]:
    """The parts of the first or the last prompt of a role."""
    return [int(size) for size in calls.parts[calls.role == role][position]]
