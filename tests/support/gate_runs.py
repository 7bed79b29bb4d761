"""Run folders for the tests of the gate: real parquet and a manifest as `run` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from parts import MOMENT

from rewoo_bench.runs.columns import QUESTIONS
from rewoo_bench.runs.manifest import FORMAT_VERSION

ARCHITECTURE = {
    "name": "rewoo",
    "runner": "rewoo",
    "settings": {"max_steps": 8, "slot_tokens": 200},
    "tools": {"Search": {"max_concurrency": 8}},
    "exemplars": {"planner": 6},
    "prompts_sha256": "aaaa",
    "texts_sha256": {"prompt 'planner'": "p1", "prompt 'solver'": "s1", "exemplars of 'planner'": "e1"},
    "tool_prompts_sha256": {"LLM": "t1"},
}


def row(number: int = 0, **values: Any) -> dict[str, Any]:
    """A question of ReWOO with the oracle: 600 tokens of the planner and 400 of the solver."""
    filled: dict[str, Any] = {
        "run_id": "r", "architecture": "rewoo", "dataset": "sample", "model": "oracle", "planner_model": "oracle",
        "solver_model": "oracle", "example_id": f"q{number:03}", "question_type": "bridge", "trial": 0,
        "question": f"Which river? ({number})", "answers": ["Neva"], "prediction": "Neva", "exact_match": True,
        "f1": 1.0, "judged_correct": None, "stop_reason": "answered", "error": None, "llm_calls": 2, "tool_calls": 2,
        "steps": 2, "replans": 0, "broken_plans": 0, "input_tokens": 950, "cached_input_tokens": 500,
        "output_tokens": 50, "reasoning_tokens": 0, "total_tokens": 1000, "planner_tokens": 600, "solver_tokens": 400,
        "tool_llm_tokens": 0, "agent_tokens": 0, "evidence_tokens": 200, "billed_tokens": 0, "cost_usd": 0.001,
        "usage_source": "estimated", "latency_s": 1.0, "working_s": 1.0, "retries": 0, "started_at": MOMENT,
    }  # fmt: skip
    made = {**filled, **values}
    if "total_tokens" in values and "input_tokens" not in values and made["total_tokens"] >= 0:
        made["input_tokens"] = min(made["input_tokens"], made["total_tokens"])  # a total is that of its parts
        made["output_tokens"] = made["total_tokens"] - made["input_tokens"]
    return made


FAILED: dict[str, Any] = {"prediction": None, "exact_match": None, "f1": None, "stop_reason": "error", "error": "down"}


def rows(count: int = 20, **values: Any) -> list[dict[str, Any]]:
    return [row(number, **values) for number in range(count)]


def manifest(**values: Any) -> dict[str, Any]:
    return {
        "run_id": "r",
        "status": "done",
        "reason": None,
        "options": {"seed": 0, "temperature": 0.0, "question_tokens": None},
        "dataset": {
            "name": "sample",
            "format": "sample",
            "source": {"file": "sample/questions.jsonl", "sha256": "d1"},
            "split": "validation",
            "ids_hash": "h1",
        },
        "corpus": {"file": "passages.jsonl", "content_hash": "c1", "passages": 9},
        "architectures": [ARCHITECTURE],
        "models": {"default": {"name": "oracle"}},
        "prices": {"oracle": None},
        "tokenizer": "cl100k_base",
        **values,
    }


def changed(part: str, **values: Any) -> dict[str, Any]:
    """A manifest with other values in one of its tables."""
    return manifest(**{part: {**manifest()[part], **values}})


def architecture(**values: Any) -> dict[str, Any]:
    """A manifest whose one architecture has other values."""
    return manifest(architectures=[{**ARCHITECTURE, **values}])


MODELS = ("model", "planner_model", "solver_model")


def write_run(folder: Path, lines: Iterable[Mapping[str, Any]], facts: Mapping[str, Any] | None = None) -> Path:
    """A run folder with these rows and this manifest, as a run writes them: each has what the other one says."""
    folder.mkdir(parents=True)
    made = dict(facts or manifest())
    named = dict.fromkeys(MODELS, made["models"]["default"]["name"])
    lines = [
        {**line, "dataset": made["dataset"]["name"], **named, **{m: line[m] for m in MODELS if line[m] != "oracle"}}
        for line in lines
    ]
    if lines:
        model, planner, solver = (lines[0][name] for name in MODELS)
        others = {role: {"name": name} for role, name in (("planner", planner), ("solver", solver)) if name != model}
        made["models"] = {**made["models"], "default": {**made["models"]["default"], "name": model}, **others}
    known = {each["name"] for each in made["architectures"]}
    new = dict.fromkeys(line["architecture"] for line in lines if line["architecture"] not in known)
    made["architectures"] = [*made["architectures"], *({**ARCHITECTURE, "name": name} for name in new)]
    pq.write_table(pa.Table.from_pylist(lines, schema=QUESTIONS), folder / "questions.parquet")
    asked = {"examples": len({line["example_id"] for line in lines}), **made["dataset"]}
    options = {"trials": 1 + max((line["trial"] for line in lines), default=0), **made["options"]}
    (folder / "run.json").write_text(
        json.dumps({"format_version": FORMAT_VERSION, **made, "dataset": asked, "options": options})
    )
    return folder


LIVE = {"model": "openai/gpt", "planner_model": "openai/gpt", "solver_model": "openai/gpt"}
FACTS = changed("models", default={"name": "openai/gpt"})


def lines(count: int, factor: float = 1.0, seed: int = 0, noise: float = 0.1, **values: Any) -> list[dict[str, Any]]:
    """Questions of quite different length, each with some noise of its run."""
    lengths = np.random.default_rng(99).lognormal(7, 0.5, count)
    totals = lengths * np.random.default_rng(seed).normal(1, noise, count).clip(0.5) * factor
    return [row(n, **LIVE, total_tokens=int(total), **values) for n, total in enumerate(totals)]
