"""The columns of questions.parquet and calls.parquet.

These names are what users, scripts and CI rely on; changing one is a breaking change.
Tokens are logical (what the architecture needed), except `billed_tokens` (what was paid in this run, including
failed attempts). A judge's calls are in calls.parquet only, under the role `judge`:

    sum of calls where role != "judge"  ==  the row of the question

`evidence_tokens` are the tokens of the observations, each counted once, with the pinned tokenizer of tokens.py for
every model.

`hops` is the number of look-ups and calculations that the gold chain needs, and `gold_pages_found` the share of its
pages that an observation showed (retrieval.py); null where the data set has no gold evidence. `level` is the difficulty
in the data set's words. `seed`, `temperature` (of the default model) and `tool_failure_rate` are the run's options.
`routed_to` is the architecture that a router chose, and `router_tokens` are those of its own calls; both are null for
every other architecture.
`oracle` is true where the answers are an oracle's, or a replay of an oracle's: accuracy and latency mean nothing.

`broken_plans` is the number of plans, of the first one and the `replans`, that couldn't be run as written; null where
nothing is planned ahead.

`loop_step` is the step at which a trajectory begins to repeat itself until its end (loops.py), counted from 1; null
where it doesn't. `loop_tokens` are the total tokens of the model calls from there on: 0 where it doesn't loop, and null
where no call was seen.

Tokens are null for a tool's call. A cost is null where the price isn't known, and where no call was answered or paid
for. A latency is null where it wasn't measured: in a replay, and for a question that began in an earlier session.

`startup_s` are the seconds in which a question waited for something to start, and are in no latency: an agent's process
until its first request, the import of a library, an MCP server. `flags` are reasons to doubt a row; results/columns.md
lists them. Runs of earlier versions lack both; `load` adds them as null, and infers loops. They may lack the others of
`LATER`, too.
"""

from __future__ import annotations

import pyarrow as pa

from rewoo_bench.errors import DataError

_MOMENT = pa.timestamp("us", tz="UTC")

QUESTIONS = pa.schema(
    [
        ("run_id", pa.string()),
        ("architecture", pa.string()),
        ("dataset", pa.string()),
        ("model", pa.string()),
        ("planner_model", pa.string()),
        ("solver_model", pa.string()),
        ("seed", pa.int64()),
        ("temperature", pa.float64()),
        ("tool_failure_rate", pa.float64()),
        ("oracle", pa.bool_()),
        ("example_id", pa.string()),
        ("question_type", pa.string()),
        ("level", pa.string()),
        ("hops", pa.int32()),
        ("trial", pa.int32()),
        ("question", pa.string()),
        ("answers", pa.list_(pa.string())),
        ("answers_sha256", pa.list_(pa.string())),
        ("prediction", pa.string()),
        ("exact_match", pa.bool_()),
        ("f1", pa.float64()),
        ("judged_correct", pa.bool_()),
        ("stop_reason", pa.string()),
        ("error", pa.string()),
        ("llm_calls", pa.int32()),
        ("tool_calls", pa.int32()),
        ("steps", pa.int32()),
        ("replans", pa.int32()),
        ("broken_plans", pa.int32()),
        ("routed_to", pa.string()),
        ("input_tokens", pa.int64()),
        ("cached_input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("reasoning_tokens", pa.int64()),
        ("cache_write_tokens", pa.int64()),
        ("total_tokens", pa.int64()),
        ("planner_tokens", pa.int64()),
        ("solver_tokens", pa.int64()),
        ("tool_llm_tokens", pa.int64()),
        ("agent_tokens", pa.int64()),
        ("router_tokens", pa.int64()),
        ("evidence_tokens", pa.int64()),
        ("gold_pages_found", pa.float64()),
        ("billed_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("usage_source", pa.string()),
        ("latency_s", pa.float64()),
        ("working_s", pa.float64()),
        ("startup_s", pa.float64()),
        ("retries", pa.int32()),
        ("flags", pa.list_(pa.string())),
        ("loop_step", pa.int32()),
        ("loop_tokens", pa.int64()),
        ("started_at", _MOMENT),
        ("trace_id", pa.string()),
    ]
)

CALLS = pa.schema(
    [
        ("run_id", pa.string()),
        ("architecture", pa.string()),
        ("example_id", pa.string()),
        ("trial", pa.int32()),
        ("call_index", pa.int32()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("role", pa.string()),
        ("place", pa.string()),
        ("level", pa.int32()),
        ("status", pa.string()),
        ("attempts", pa.int32()),
        ("input_tokens", pa.int64()),
        ("cached_input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("reasoning_tokens", pa.int64()),
        ("cache_write_tokens", pa.int64()),
        ("discarded_tokens", pa.int64()),
        ("billed_tokens", pa.int64()),
        ("context_tokens", pa.int64()),
        ("exemplar_tokens", pa.int64()),
        ("question_tokens", pa.int64()),
        ("written_tokens", pa.int64()),
        ("found_tokens", pa.int64()),
        ("shared_question_tokens", pa.int64()),
        ("shared_question_age_s", pa.float64()),
        ("shared_run_tokens", pa.int64()),
        ("shared_run_age_s", pa.float64()),
        ("marked_tokens", pa.int64()),
        ("last_marked_tokens", pa.int64()),
        ("shared_marked_tokens", pa.int64()),
        ("usage_source", pa.string()),
        ("finish_reason", pa.string()),
        ("latency_s", pa.float64()),
        ("waiting_s", pa.float64()),
        ("replayed", pa.bool_()),
        ("started_at", _MOMENT),
    ]
)

NO_LLM_ROLES = frozenset({"judge", "embedding", "count", "abandoned"})
"""Roles of model calls that aren't counted in `llm_calls`: they generate nothing, or not for the answer."""

NO_STEP_ROLES = NO_LLM_ROLES | {"tool"}
"""Roles of model calls that are no turn of the architecture's own model."""

SHARED = CALLS.names[CALLS.names.index("shared_question_tokens") : CALLS.names.index("usage_source")]
"""Columns of calls.parquet that say what an earlier call had of a prompt, and where its cache marks are.

`shared_question_tokens`: the longest prefix of the prompt that an earlier call of the same question had;
`shared_run_tokens`: that a call of another question had, of the same architecture, trial and model. A cache that keeps
all prompts finds the longer one. The ages are seconds since any call last had that prefix. `marked_tokens`: up to the
first cache mark, the end of the part that all questions share; `last_marked_tokens`: up to the last one;
`shared_marked_tokens`: the longest prefix up to a mark of an earlier call. All in the tokens of `input_tokens`, and
null for a tool, for a call in no question's cost and where there is no journal; in a replay those of the recorded run
(journal/shared_prefixes.py).
"""

LATER = frozenset(
    {
        *("seed", "temperature", "tool_failure_rate", "oracle", "level", "hops", "routed_to", "router_tokens"),
        *("evidence_tokens", "gold_pages_found", "startup_s", "flags", "trace_id", "answers_sha256"),
        *("loop_step", "loop_tokens", "broken_plans"),  # of questions
        *("cache_write_tokens", "discarded_tokens"),
        *("context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"),  # of calls
        *SHARED,
    }
)
"""Columns that runs of earlier versions lack."""


def check_schema(found: pa.Schema, expected: pa.Schema) -> None:
    """Raises `DataError` for a missing column, and for one that holds something else than a run writes.

    Other columns, and other types of the same kind, are let pass: pandas writes whole numbers with gaps as `double`.
    """
    for field in expected:
        if field.name not in found.names:
            if field.name in LATER:
                continue
            raise DataError(f"the column {field.name!r} is missing")
        kind = found.field(field.name).type
        if _kind(kind) not in (_kind(field.type), "nothing"):
            raise DataError(f"the column {field.name!r} has {_kind(kind)}, expected {_kind(field.type)}")


def _kind(type_: pa.DataType) -> str:
    """What a column holds, in words."""
    kinds = pa.types
    if kinds.is_dictionary(type_):
        return _kind(type_.value_type)
    if kinds.is_list(type_) or kinds.is_large_list(type_):
        return "lists of texts" if _kind(type_.value_type) in ("texts", "nothing") else f"{type_}"
    of = {
        "nothing": kinds.is_null(type_),
        "texts": kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_),
        "numbers": kinds.is_integer(type_) or kinds.is_floating(type_),
        "truth values": kinds.is_boolean(type_),
        "times": kinds.is_timestamp(type_),
    }
    return next((name for name, holds in of.items() if holds), f"{type_}")
