"""Loops of runs that are older than their columns, inferred from the sizes of their calls.

    with_loops(questions, calls)    # with loop_step, loop_tokens, and the flag `inferred_loop` where there is a loop

Published calls have no texts. Two turns are taken for the same where their replies have the same number of output
tokens, call the same tools, and add the same number of tokens to the next prompt: the reply and what the tools
returned. Two different turns may agree in all of that, so each loop that is found is flagged, and none is looked for
where the question was answered. A turn that repeats an action in other words is missed, so a loop may begin earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from rewoo_bench.loops import AT_LIMIT, loop_start
from rewoo_bench.runs.columns import NO_STEP_ROLES, QUESTIONS

INFERRED = "inferred_loop"
KEY = ("run_id", "architecture", "example_id", "trial")
OF_CALLS = (*KEY, "call_index", "kind", "name", "role", "place", "status", "input_tokens", "output_tokens")


def with_loops(questions: pa.Table, calls: pa.Table) -> pa.Table:
    """The questions with the columns that they lack; null where a question has no call."""
    of: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for call in calls.select(OF_CALLS).to_pylist():
        of.setdefault(tuple(call[name] for name in KEY), []).append(call)
    keys = zip(*(questions[name].to_pylist() for name in KEY), strict=True)
    answered = [reason == "answered" for reason in questions["stop_reason"].to_pylist()]
    found = [
        _loop(sorted(of.get(key, ()), key=lambda call: call["call_index"]), is_answered)
        for key, is_answered in zip(keys, answered, strict=True)
    ]
    flags = questions["flags"].to_pylist() if "flags" in questions.column_names else [None] * len(questions)
    columns = {
        "loop_step": [step for step, _ in found],
        "loop_tokens": [tokens for _, tokens in found],
        "flags": [
            there if step is None else [*(there or ()), INFERRED] for there, (step, _) in zip(flags, found, strict=True)
        ],
    }
    there = [name for name in questions.column_names if name not in columns]
    made = questions.select(there)
    for name, values in columns.items():
        made = made.append_column(QUESTIONS.field(name), pa.array(values, QUESTIONS.field(name).type))
    return made


def _loop(calls: Sequence[dict[str, Any]], is_answered: bool) -> tuple[int | None, int | None]:
    """`loop_step` and `loop_tokens` of a question with these calls."""
    own = [call for call in calls if not call["place"].endswith(AT_LIMIT)]
    done = [call for call in own if call["kind"] == "tool" or _is_turn(call)]
    turns = [call for call in done if call["kind"] != "tool"]
    if not turns:
        return None, None
    added = [after["input_tokens"] - before["input_tokens"] for before, after in pairwise(turns)]
    # No prompt follows the last turn: it may have added what any turn with a reply of its size did.
    last = dict.fromkeys(more for turn, more in zip(turns, added, strict=False) if _reply(turn) == _reply(turns[-1]))
    found = next(filter(None, (loop_start(_sizes(done, [*added, more])) for more in last)), None)
    if found is None or is_answered:
        return None, 0
    step, place = found
    looped = [
        call
        for call in own
        if call["kind"] == "model" and call["role"] != "judge" and call["call_index"] >= done[place]["call_index"]
    ]
    return step + 1, sum(call["input_tokens"] + call["output_tokens"] for call in looped)


def _sizes(done: Sequence[dict[str, Any]], added: Sequence[int]) -> list[tuple[bool, tuple[Any, ...]]]:
    """What each call did, as far as its size tells. `added` are the tokens that each turn adds to the next prompt."""
    sizes: list[tuple[bool, tuple[Any, ...]]] = []
    reply: tuple[Any, ...] = ()
    more = iter(added)
    for call in done:
        if call["kind"] == "tool":
            sizes.append((True, (call["name"], call["status"], *reply)))
        else:
            sizes.append((False, _reply(call)))
            reply = (*_reply(call), next(more))
    return sizes


def _reply(call: dict[str, Any]) -> tuple[str, int]:
    return call["role"], call["output_tokens"]


def _is_turn(call: dict[str, Any]) -> bool:
    return call["kind"] == "model" and call["status"] == "ok" and call["role"] not in NO_STEP_ROLES
