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

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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

    rows = [
        {**dict(zip(_QUESTION, key, strict=True)), **row}
        for key, group in _asked(calls).groupby(_QUESTION, sort=False, observed=True)
        for row in _question(group)
    ]
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


def _question(calls: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The row of one question, where a formula covers its architecture."""
    roles = set(calls["role"])
    if roles == {"agent"} and calls["place"].str.startswith(("turn", "partial")).all():
        yield _react(calls)
    elif "solver" in roles and roles <= {"planner", "solver", "tool"}:
        yield _rewoo(calls)


def _react(calls: pd.DataFrame) -> dict[str, Any]:
    parts = calls[PARTS].to_numpy(dtype=int)
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


def _rewoo(calls: pd.DataFrame) -> dict[str, Any]:
    by_role = {role: group[PARTS].astype(int) for role, group in calls.groupby("role", observed=True)}
    planner, solver = by_role["planner"].iloc[0], by_role["solver"].iloc[-1]
    formula = (
        2 * planner["question_tokens"] + planner["context_tokens"] + solver["context_tokens"]
        + planner["exemplar_tokens"] + solver["found_tokens"]
    )  # fmt: skip
    prompts = sum(int(by_role[role].to_numpy().sum()) for role in ("planner", "solver"))
    tool = int(by_role["tool"].to_numpy().sum()) if "tool" in by_role else 0
    exemplars = int(solver["exemplar_tokens"])
    return {
        "law": "ReWOO", "k": len(calls) - len(calls[calls["role"] == "tool"]), "formula": int(formula),
        "solver_exemplars": exemplars, "rest": prompts - int(formula) - exemplars, "prompts": prompts,
        "tool_prompts": tool,
    }  # fmt: skip
