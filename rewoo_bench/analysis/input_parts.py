"""Where a question's input tokens went, in the terms of Xu et al. 2023 (arXiv 2305.18323, section 2.2).

    ReAct   k |Q| + k |C| + k |S| + sum over j < k of (k - j) (|T_j| + |A_j| + |O_j|)     grows with k squared
    ReWOO   2 |Q| + 2 |C| + |S| + sum over j of (|P_j| + |E_j|)                           grows with k

Input tokens of one question in k steps: question Q, context C, exemplars S, and of each step thought T,
action A and observation O, or plan P and evidence E. Every term is measured on the question's own
prompts (`context_tokens` and its neighbours in calls.parquet), with the pinned tokenizer throughout.

This is an account and no test: for ReAct the terms are differences of the prompts that they add up to, so the
formula always holds. What a short run predicts of a long one, below, can be wrong.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.runs.columns import PARTS

LawName = Literal["ReAct", "ReWOO"]
_QUESTION = ["architecture", "example_id", "trial"]


def cost_law(calls: pd.DataFrame) -> pd.DataFrame:
    """A row for each question that one of the two formulas covers; `calls` is calls.parquet.

    `k` counts model calls. `formula` is the formula's value, `prompts` the tokens of those prompts. The formula leaves
    out the solver's own exemplars, a question that occurs more than twice, and a second plan (`rest`). An LLM tool's
    prompts come on top: `prompts` + `tool_prompts` is all input of the question.
    """
    asked = calls[(calls["kind"] == "model") & (calls["role"] != "judge") & (calls["status"] == "ok")]
    asked = asked.sort_values("call_index")
    groups: dict[Any, Any] = asked.groupby(_QUESTION, sort=False, observed=True).indices
    all_roles, places = (asked[name].to_numpy(dtype=object) for name in ("role", "place"))
    all_parts = asked[PARTS].fillna(0).to_numpy(dtype=int)
    rows = []
    for key, where in groups.items():
        roles, parts = all_roles[where], all_parts[where]
        is_tool, found, exemplars = roles == "tool", set(roles), 0
        prompts, tool_prompts = int(parts[~is_tool].sum()), int(parts[is_tool].sum())
        if found == {"agent"} and all(str(place).startswith(("turn", "partial")) for place in places[where]):
            law: LawName = "ReAct"
            trace = parts[:, 3] + parts[:, 4]
            steps = trace[1:] - trace[:-1]  # T + A + O of steps 1 to k - 1
            formula = len(parts) * parts[0, :3].sum() + (np.arange(len(steps), 0, -1) * steps).sum()
        elif {"planner", "solver"} <= found <= {"planner", "solver", "tool"}:
            law = "ReWOO"  # of the first prompt of the planner and the last one of the solver
            planner = dict(zip(PARTS, parts[roles == "planner"][0], strict=True))
            solver = dict(zip(PARTS, parts[roles == "solver"][-1], strict=True))
            formula = 2 * planner["question_tokens"] + planner["context_tokens"] + planner["exemplar_tokens"]
            formula += solver["context_tokens"] + solver["found_tokens"]
            exemplars = int(solver["exemplar_tokens"])
        else:
            continue
        rest = prompts - int(formula) - exemplars
        rows.append((*key, law, int((~is_tool).sum()), int(formula), exemplars, rest, prompts, tool_prompts))
    columns = [*_QUESTION, "law", "k", "formula", "solver_exemplars", "rest", "prompts", "tool_prompts"]
    return pd.DataFrame(rows, columns=columns)


def scaled_parts(calls: pd.DataFrame) -> pd.DataFrame | None:
    """The parts of each prompt, scaled to add up to its `input_tokens`; None where no prompt has parts.

    Parts are counted with the pinned tokenizer, `input_tokens` by the model's. So the shares are those of the
    pinned tokenizer, and the sums are those of the tables. A row a call; one that has no prompt is all zeros.
    """
    if not calls[PARTS].notna().all(axis=1).any():
        return None
    parts = calls[PARTS].astype("float64").fillna(0.0)
    whole = parts.sum(axis=1)
    return parts.mul(calls["input_tokens"].astype("float64").fillna(0.0) / whole.where(whole > 0), axis=0).fillna(0.0)


CUT_OFF = ("step_limit", "repeated", "token_limit", "time_limit", "cost_limit", "invalid_plan")
"""Stop reasons of questions that ended before their look-ups were done: their tokens are those of a part."""


def look_ups(rows: pd.DataFrame) -> pd.Series[float]:
    """How many look-ups each question needs; NaN where that isn't known.

    Where no row has `hops`, a question of `chain` has them in its type.
    """
    if "hops" in rows.columns and rows["hops"].notna().any():
        return rows["hops"].astype("float64")
    shape = rows["question_type"].astype(str).str.extract(r"^chain-(?P<hops>\d+)x(?P<width>\d+)").astype("float64")
    return shape["hops"] * shape["width"]


def cut_off(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """A mask: True where a limit ended the question, or no plan for it was sound."""
    mask: NDArray[np.bool_] = rows["stop_reason"].isin(CUT_OFF).to_numpy(bool)
    return mask
