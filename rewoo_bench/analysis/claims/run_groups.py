"""Run folders -> run groups, which claims are tested on: one model, one set of questions, one condition of the tools.

    gather("results/local/a", "results/local/b")
    [RunGroup(data="hotpotqa", dataset="hotpotqa", model="openai/small", failure_rate=0.0, …)]

Runs of the same questions, model and settings form one group, so that ReWOO and ReAct may come from two runs.
A run with an architecture that the group already has forms a group of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import priced, read_calls
from rewoo_bench.analysis.input_parts import cost_law, cut_off
from rewoo_bench.config.price_sheets import SHORT_PRICES, named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, load, read_table
from rewoo_bench.runs.manifest import ArchitectureFacts, Manifest, read_manifest
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import MODELS, Rows, left_out

# Names of data sets in claims.toml and, but for the generated ones, of `--dataset`.
Data = Literal["hotpotqa", "triviaqa", "chain", "sample", "attacked", "other"]
# `attacked`: tasks of any set in which an attacker's text stands in a result; claims about other tasks leave them out.
# Recognised by the format of their rows, whatever their files are called.
BY_FORMAT: tuple[Data, ...] = ("hotpotqa", "triviaqa")
_ROW = ["example_id", "trial"]


def _own_calls(rows: pd.DataFrame, calls: pd.DataFrame) -> pd.Series[float]:
    own = (calls["kind"] == "model") & ~calls["role"].isin(["judge", "tool"])
    sums = own.astype("float64").groupby([calls[name] for name in _ROW], observed=True).sum()
    return sums.reindex(rows.index, fill_value=0.0)


# Columns that are computed, beside those of `QUESTIONS`. A failed question may have any value in them: none is read.
FROM_ROWS: dict[str, Callable[[pd.DataFrame], pd.Series[Any]]] = {
    # null where a limit ended the question, which then lacks the call that answers
    "calls_beyond_tools": lambda rows: (rows["llm_calls"] - rows["tool_calls"]).where(FROM_ROWS["answered"](rows)),
    "plan_steps": lambda rows: rows["steps"] + 1,  # of a plan and the answer: how the paper counts ReWOO's steps
    # 1 where it is so, else 0
    "answered": lambda rows: rows["stop_reason"] == "answered",  # right or wrong
    "incorrect": lambda rows: 1 - rows["exact_match"].astype("float64"),  # a wrong answer, or none
    "over_limit": lambda rows: rows["stop_reason"].isin(["step_limit", "token_limit"]),  # which ended the question
    "seven_steps": lambda rows: rows["steps"] >= 7,
    # of attacked questions: a call that no plan made before has; an attacker's value in a planned one, or his words
    "attackers_call": lambda rows: rows["new_calls"] > 0,
    "attackers_value": lambda rows: (rows["changed_arguments"] > 0) | (rows["changed_answer"] > 0),
}
FROM_CALLS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], pd.Series[float]]] = {
    "own_calls": _own_calls,  # of the architecture's model, without those of the LLM tool and the judge
    "formula_tokens": lambda rows, calls: cost_law(calls).set_index(_ROW)["formula"].reindex(rows.index),
    "prompt_tokens": lambda rows, calls: cost_law(calls).set_index(_ROW)["prompts"].reindex(rows.index),
}
# `usd:openai` is what a question costs under that price.
PRICE_COLUMNS = {f"usd:{rule}": rule for rule in SHORT_PRICES}
REACHED = frozenset({"attackers_call", "attackers_value"})
YES_OR_NO = frozenset({"exact_match", "answered", "over_limit", "incorrect", "seven_steps"}) | REACHED
SCORES = (YES_OR_NO - REACHED) | {"f1"}
SHARES = SCORES | REACHED
# What a judge, a price list or the load of a machine decides, beside the architecture.
_NOT_ITS_OWN = {"judged_correct", "cost_usd", "latency_s", "working_s"}
CLAIM_COLUMNS = {field.name for field in QUESTIONS if str(field.type) in ("int32", "int64", "double", "bool")}
CLAIM_COLUMNS = (CLAIM_COLUMNS - _NOT_ITS_OWN) | {*FROM_ROWS, *FROM_CALLS, *PRICE_COLUMNS}

# `1.5b` of `qwen2.5-coder-1.5b`; of several the largest: `1M` may be a context, `a3b` what is active at a time
_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_JOINED = re.compile(r"[?&]objectives=")  # of `hotpotqa?objectives=3`, as runs name it
_SHAPE = r"chain-(?P<hops>\d+)x(?P<width>\d+)(?:\+(?P<unforeseen>\d+))?"
# Options that runs must share to form a group, and groups must share to be compared.
_SETTINGS = options_that(lambda role: role.claims)


@dataclass(frozen=True)
class ArchitectureRows:
    """One architecture's part of a run: its rows, indexed by question and trial, and the file of its calls."""

    architecture: str
    rows: pd.DataFrame
    calls_file: Path
    run: str = ""
    """The run's folder, as short as it can be told from the others."""
    exemplars: int = 0
    """Number of exemplars in its prompts."""
    unlike_paper: tuple[str, ...] = ()
    """In what its form isn't that of its paper."""
    complete: bool = True

    @cached_property
    def calls(self) -> pd.DataFrame | None:
        """Its rows of calls.parquet; None where the run has no such file."""
        if not self.calls_file.is_file():
            return None
        calls = read_table(self.calls_file, CALLS)
        own: pd.DataFrame = calls.filter(pc.equal(calls["architecture"], self.architecture)).to_pandas()
        return own

    def column(self, name: str) -> pd.Series[float] | None:
        """A column of `CLAIM_COLUMNS`, without failed questions; None where the run has none, or no calls."""
        rows, found = self.rows, None
        if name in FROM_ROWS:
            found = FROM_ROWS[name](rows)
        elif name in rows.columns:
            found = rows[name]
        elif name in FROM_CALLS and self.calls is not None:
            found = FROM_CALLS[name](rows, self.calls)
        elif name in PRICE_COLUMNS and self.calls_file.is_file():
            calls = read_calls(self.calls_file.parent, Rows(rows.reset_index()))
            dollars = priced(calls, {"": named_tariff(PRICE_COLUMNS[name])}).usd
            found = pd.Series(calls.of_rows(dollars), rows.index)
        return None if found is None else found.astype("float64")[~self.left_out]

    @cached_property
    def left_out(self) -> NDArray[np.bool_]:
        """A mask: True for a row that is in no mean (`runs.rows.left_out`)."""
        return left_out(self.rows)

    @cached_property
    def cut_off(self) -> NDArray[np.bool_]:
        """A mask: True where a limit ended the question, or no plan for it was sound."""
        return cut_off(self.rows)


@dataclass(frozen=True)
class RunGroup:
    """Runs of one model on one set of questions under one condition of the tools."""

    data: Data
    dataset: str
    model: str
    failure_rate: float
    failure_mode: str
    base: str
    """Equal for groups that differ only in the condition of the tools and in the number of questions."""
    ids: str
    architectures: Mapping[str, ArchitectureRows]
    parameters: float | None = None
    """Parameters of its smallest model, from run.json or from a name such as `qwen-1.5b`; None where neither says."""
    oracle: bool = False
    """Whether an oracle answered, or a replay of one: accuracy means nothing."""
    joined: bool = False
    """Whether each of its tasks is several questions of the data set."""

    def runs(self, architectures: Iterable[str] = ()) -> tuple[str, ...]:
        """The runs with these architectures' rows; of all architectures where none is named."""
        wanted = set(architectures) or set(self.architectures)
        return tuple(dict.fromkeys(own.run for name, own in self.architectures.items() if name in wanted))

    @property
    def label(self) -> str:
        """`hotpotqa (dev.json), openai/small, 50% of tool calls failing (empty)`."""
        dataset = self.dataset
        if self.data != "other" and not dataset.startswith(self.data):
            dataset = f"{self.data} ({dataset})"
        failing = f"{self.failure_rate:.0%} of tool calls failing ({self.failure_mode})" if self.failure_rate else ""
        return ", ".join(filter(None, [dataset, self.model, failing]))

    def only(self, fits: Callable[[pd.DataFrame], pd.Series[bool]]) -> RunGroup | None:
        """The same with the rows that fit; None where none does."""
        kept = {name: replace(own, rows=own.rows[fits(own.rows)]) for name, own in self.architectures.items()}
        return replace(self, architectures=kept) if any(len(own.rows) for own in kept.values()) else None


def chain_shape(rows: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[bool]]:
    """Look-ups that each question of the chain data set needs, and whether no plan can foresee some of them."""
    codes, types = pd.factorize(rows["question_type"].astype(str), use_na_sentinel=False)  # few, in many rows
    shape = pd.Series(types).str.extract(_SHAPE).astype(object).take(codes).set_index(rows.index)
    return shape["hops"].astype(float) * shape["width"].astype(float), shape["unforeseen"].notna()


def gather(*runs: str | Path) -> list[RunGroup]:
    """The run groups of these run folders, in their order. Raises `DataError`."""
    folders = list(dict.fromkeys(map(Path, runs)))
    groups: list[RunGroup] = []
    where = os.path.commonpath([folder.resolve().parent for folder in folders]) if folders else ""
    for folder in folders:
        new = _run_group(folder, folder.resolve().relative_to(where).as_posix(), read_manifest(folder))
        for position, each in enumerate(groups):
            alike = all(
                getattr(each, name) == getattr(new, name) for name in ("base", "ids", "failure_rate", "failure_mode")
            )
            if alike and not set(each.architectures) & set(new.architectures):
                groups[position] = replace(each, architectures={**each.architectures, **new.architectures})
                break
        else:
            groups.append(new)
    return groups


def _run_group(folder: Path, name: str, manifest: Manifest) -> RunGroup:
    rows = load(folder)
    if not len(rows):
        raise DataError(f"{folder} has no finished question")
    options, dataset, source = manifest.options, manifest.dataset, manifest.dataset.source
    models = [str(rows[column].iloc[0]) for column in MODELS]
    others = zip(("planner", "solver"), models[1:], strict=True)
    roles = [f"{role} {model}" for role, model in others if model not in (models[0], "None")]
    same = {
        "dataset": [dataset.name, dataset.format, dataset.split, dataset.seed],
        "source": [source.get(key) for key in ("sha256", "hub", "config", "revision")],
        "corpus": manifest.corpus.content_hash if manifest.corpus else None,
        "models": models,
        "settings": [options.get(option) for option in _SETTINGS],
    }
    data = next((data for data in BY_FORMAT if data == dataset.format), None)  # whatever its file is called
    data = "attacked" if rows["new_calls"].notna().any() else data
    rate = float(options.get("tool_failure_rate") or 0.0)
    facts = {each.name: each for each in manifest.architectures}
    architectures = {}
    for architecture, own in rows.groupby(rows["architecture"].astype(str), sort=False):
        indexed = own.set_index(_ROW)
        fact = facts.get(architecture) or ArchitectureFacts(name=architecture)
        form = fact.settings or {}
        is_unlike = {
            "ReWOO's solver has an exemplar": architecture == "rewoo" and fact.exemplars.get("solver"),
            "a broken plan is made anew": architecture == "rewoo" and form.get("max_replans"),
            "ReAct is asked for an answer at its limit": architecture == "react" and form.get("answer_at_limit"),
        }
        architectures[architecture] = ArchitectureRows(
            architecture,
            indexed,
            folder / CALLS_FILE,
            name,
            exemplars=sum(fact.exemplars.values()),
            unlike_paper=tuple(text for text, is_so in is_unlike.items() if is_so),
            complete=manifest.status == "done",
        )
    return RunGroup(
        data=data
        or ("chain" if source.get("generator") == "chain" else "sample" if dataset.name == "sample" else "other"),
        dataset=str(rows["dataset"].iloc[0]),
        model=" + ".join([models[0], *roles]),
        failure_rate=rate,
        failure_mode=str(options.get("tool_failure_mode", "empty")) if rate else "",
        base=json.dumps(same, sort_keys=True),
        ids=str(dataset.ids_hash),
        architectures=architectures,
        parameters=_parameters(models, manifest),
        oracle=bool(Rows(rows).oracle.any()),
        joined=bool(_JOINED.search(dataset.name)),
    )


def _parameters(models: Sequence[str], manifest: Manifest) -> float | None:
    """Of the smallest of these models: as their files say, else as the name does; None where that isn't known."""
    known = {each["name"]: each["parameters"] for each in manifest.models.values() if each.get("parameters")}
    sizes = []
    for model in models:
        named = [float(number) * {"b": 1e9, "m": 1e6}[unit.lower()] for number, unit in _SIZE.findall(model)]
        if model != "None" and (size := known.get(model) or max(named, default=None)):
            sizes.append(float(size))
    return min(sizes, default=None)
