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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import pyarrow.compute as pc

from rewoo_bench.analysis.cost_laws import PARTS, cost_law
from rewoo_bench.analysis.prices import priced, read_calls
from rewoo_bench.config.names import REPLAY
from rewoo_bench.config.price_sheets import RULES, named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.comparability import queued
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, load, read_table
from rewoo_bench.runs.manifest import MANIFEST, ArchitectureFacts, DatasetFacts, Manifest, no_run, read_manifest
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import left_out, oracle_rows

if TYPE_CHECKING:
    import pandas as pd


# The data sets that claims are about: their names in claims.toml, in titles, and as `--dataset` takes them.
#
# title("physics")            # "PhysicsQA"
# dataset_flag("sotu")        # "sotu=FILE --corpus PASSAGES": the file is the paper's, and its rows have no pages


Data = Literal[
    "hotpotqa", "triviaqa", "gsm8k", "strategyqa", "physics", "sports", "sotu", "parallelqa", "chain", "sample", "other"
]
# Recognised by the format of their rows, whatever their files are called.
BY_FORMAT: tuple[Data, ...] = get_args(Data)[:8]
_TITLES: dict[Data, str] = {
    "hotpotqa": "HotpotQA",
    "triviaqa": "TriviaQA",
    "gsm8k": "GSM8K",
    "strategyqa": "StrategyQA",
    "parallelqa": "ParallelQA",
    "physics": "PhysicsQA",
    "sports": "SportsUnderstanding",
    "sotu": "SOTUQA",
    "chain": "Generated chains of look-ups",
}
_FROM_A_FILE: tuple[Data, ...] = ("physics", "sports", "sotu", "parallelqa")
_WITHOUT_PAGES: tuple[Data, ...] = ("triviaqa", "strategyqa", "physics", "sports", "sotu", "parallelqa")


def title(data: Data) -> str:
    """The name that papers use."""
    return _TITLES.get(data, data)


def dataset_flag(data: Data) -> str:
    """The value of `--dataset`, with `--corpus` where its rows have no pages to search.

    FILE stands for the file of a data set that no hub has, PASSAGES for the pages.
    """
    return f"{data}{'=FILE' if data in _FROM_A_FILE else ''}{' --corpus PASSAGES' if data in _WITHOUT_PAGES else ''}"


# Further columns for claims, computed from the files of a run: a value per question of one architecture.
#
#     derived("own_calls", rows, calls)     # model calls of the architecture, without those of the LLM tool
#
# `rows` and `calls` are questions.parquet and calls.parquet of one architecture, `rows` indexed by
# `example_id, trial`. A column is None where the files of an older run lack what it needs.


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


_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
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
    tools: int | None = None
    """Number of tools that it offers the model."""
    exemplars: int = 0
    """Number of exemplars in its prompts."""
    unlike_paper: tuple[str, ...] = ()
    """In what its form isn't that of its paper, as in runs made before that was the default."""
    complete: bool = True
    never_asked: int = 0
    """Rows that a stopped run lacks; 0 for a part of a data set, where the number isn't known."""

    @cached_property
    def calls(self) -> pd.DataFrame | None:
        """Its rows of calls.parquet; None where the run has no such file."""
        if not self.calls_file.is_file():
            return None
        calls = read_table(self.calls_file, CALLS)
        own: pd.DataFrame = calls.filter(pc.equal(calls["architecture"], self.architecture)).to_pandas()
        return own

    def column(self, name: str) -> pd.Series[float] | None:
        """A column of the files, or one derived from them, without failed questions; None where there is none."""
        column = derived(name, self.rows, self.calls, self.calls_file.parent)
        return None if column is None else column.loc[self.rows.index[~left_out(self.rows)]]


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
    judge_parameters: float | None = None
    """Parameters of the judge; None where there is none, or where neither says."""
    queued: bool = False
    """Whether its questions shared a model on one machine: latency includes waiting for the model."""
    oracle: bool = False
    """Whether an oracle answered, or a replay of one: accuracy and latency mean nothing."""
    settings: str = ""
    """Equal for groups of the same models and settings, whatever their data set."""

    @property
    def replay(self) -> bool:
        """Whether its answers are replayed from another run."""
        return self.model.startswith(REPLAY)

    def runs(self, architectures: Iterable[str] = ()) -> tuple[str, ...]:
        """The runs with these architectures' rows; of all architectures where none is named."""
        wanted = set(architectures) or set(self.architectures)
        return tuple(dict.fromkeys(own.run for name, own in self.architectures.items() if name in wanted))

    def questions(self, architecture: str) -> frozenset[str]:
        """The ids of its questions."""
        return frozenset(self.architectures[architecture].rows.index.get_level_values("example_id"))

    @property
    def label(self) -> str:
        """`hotpotqa (dev.json), openai/small, 50% of tool calls failing (empty)`."""
        dataset = self.dataset
        if self.data != "other" and not dataset.startswith(self.data):
            dataset = f"{self.data} ({dataset})"
        failing = f"{self.failure_rate:.0%} of tool calls failing ({self.failure_mode})" if self.failure_rate else ""
        return ", ".join(filter(None, [dataset, self.model, failing]))

    def of_type(self, question_type: str) -> RunGroup | None:
        """The same with the questions of one type only; None where there is none."""
        kept = {
            name: replace(own, rows=own.rows[own.rows["question_type"].astype(str) == question_type], never_asked=0)
            for name, own in self.architectures.items()
        }
        return replace(self, architectures=kept) if any(len(own.rows) for own in kept.values()) else None

    def only(self, least_steps: int | None, most_steps: int | None, unforeseen: bool | None) -> RunGroup | None:
        """The same with the fitting questions of the chain data set only; None where none fits."""
        if least_steps is None and most_steps is None and unforeseen is None:
            return self
        if self.data != "chain":
            return None
        kept = {}
        for name, own in self.architectures.items():
            shape, steps = _shapes(own.rows), steps_of(own.rows)
            fits = (steps >= (least_steps or 0)) & (steps <= (most_steps or steps.max()))
            if unforeseen is not None:
                fits &= shape["unforeseen"].notna() == unforeseen
            kept[name] = replace(own, rows=own.rows[fits], never_asked=0)
        return replace(self, architectures=kept) if any(len(own.rows) for own in kept.values()) else None


def steps_of(rows: pd.DataFrame) -> pd.Series[float]:
    """Look-ups that each question of the chain data set needs."""
    shape = _shapes(rows)
    return shape["hops"].astype(float) * shape["width"].astype(float)


def _shapes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows["question_type"].astype(str).str.extract(_SHAPE).astype(object)


def gather(*runs: str | Path) -> list[RunGroup]:
    """The run groups of these run folders, in their order. Raises `DataError`."""
    folders = []
    for run in dict.fromkeys(map(Path, runs)):
        if not run.is_dir() and run.name != QUESTIONS_FILE:
            raise no_run(run, MANIFEST)
        folders.append(run if run.is_dir() else run.parent)
        if not (folders[-1] / MANIFEST).is_file():
            raise no_run(folders[-1], MANIFEST)
    groups: list[RunGroup] = []
    where = os.path.commonpath([folder.resolve().parent for folder in folders]) if folders else ""
    for folder in folders:
        name = folder.resolve().relative_to(where).as_posix()
        _add(_run_group(folder, name, read_manifest(folder)), groups)
    return groups


def _add(new: RunGroup, groups: list[RunGroup]) -> None:
    """Adds a run to the first group that it belongs to, or as a group of its own."""
    for position, each in enumerate(groups):
        alike = (each.base, each.ids, each.failure_rate, each.failure_mode) == (
            new.base, new.ids, new.failure_rate, new.failure_mode
        )  # fmt: skip
        if alike and not set(each.architectures) & set(new.architectures):
            groups[position] = replace(
                each,
                architectures={**each.architectures, **new.architectures},
                queued=each.queued or new.queued,
            )
            return
    groups.append(new)


def _run_group(folder: Path, name: str, manifest: Manifest) -> RunGroup:
    rows = load(folder)
    if not len(rows):
        raise DataError(f"{folder} has no finished question")
    options, dataset = manifest.options, manifest.dataset
    models = [str(rows[name].iloc[0]) for name in ("model", "planner_model", "solver_model")]
    source = dataset.source
    settings = {"models": models, "settings": [options.get(name) for name in _SETTINGS]}
    same = {
        "dataset": [dataset.name, dataset.format, dataset.split, dataset.seed],
        "source": [source.get(name) for name in ("sha256", "hub", "config", "revision")],
        "corpus": manifest.corpus.content_hash if manifest.corpus else None,
        **settings,
    }
    rate = float(options.get("tool_failure_rate") or 0.0)
    return RunGroup(
        data=_data(dataset),
        dataset=str(rows["dataset"].iloc[0]),
        model=_model(*models),
        failure_rate=rate,
        failure_mode=str(options.get("tool_failure_mode", "empty")) if rate else "",
        base=json.dumps(same, sort_keys=True),
        ids=str(dataset.ids_hash),
        architectures={own.architecture: own for own in _architectures(rows, folder, name, manifest)},
        parameters=_parameters(models, manifest),
        judge_parameters=_parameters([str(options.get("judge_model"))], manifest),
        queued=bool(queued(manifest)),
        oracle=bool(oracle_rows(rows).any()),
        settings=json.dumps(settings, sort_keys=True),
    )


def _architectures(rows: pd.DataFrame, folder: Path, run: str, manifest: Manifest) -> Iterator[ArchitectureRows]:
    facts = {each.name: each for each in manifest.architectures}
    for name, group in rows.groupby("architecture", sort=False, observed=True):
        indexed = group.set_index(KEY)
        if indexed.index.has_duplicates:
            raise DataError(f"{folder}: {name!r} has the question {indexed.index[indexed.index.duplicated()][0]} twice")
        own = facts.get(str(name))
        yield ArchitectureRows(
            str(name),
            indexed,
            folder / CALLS_FILE,
            run,
            tools=len(own.tools) if own else None,
            exemplars=sum(own.exemplars.values()) if own else 0,
            unlike_paper=tuple(_unlike_paper(own)) if own else (),
            complete=manifest.status == "done",
            never_asked=max(0, _expected_rows(manifest) - len(indexed)),
        )


def _unlike_paper(own: ArchitectureFacts) -> Iterator[str]:
    """In what ReWOO and ReAct weren't as in their papers before that was the default."""
    settings = own.settings or {}
    if own.name == "rewoo" and own.exemplars.get("solver"):
        yield "ReWOO's solver has an exemplar"
    if own.name == "rewoo" and settings.get("max_replans"):
        yield "a broken plan is made anew"
    if own.name == "react" and settings.get("answer_at_limit", settings.get("partial_answer")):
        yield "ReAct is asked for an answer at its limit"


def _parameters(models: Sequence[str], manifest: Manifest) -> float | None:
    """Of the smallest of these models: as their files say, else as the name does; None where that isn't known."""
    known = {each["name"]: each["parameters"] for each in manifest.models.values() if each.get("parameters")}
    sizes = [known.get(model) or _named_size(model) for model in models if model != "None"]
    return min((float(size) for size in sizes if size), default=None)


def _named_size(model: str) -> float | None:
    """The number of parameters that a name gives: 1.5e9 of `qwen2.5-coder-1.5b`."""
    sizes = [float(number) * {"b": 1e9, "m": 1e6}[unit.lower()] for number, unit in _SIZE.findall(model)]
    return sizes[-1] if sizes else None


def _expected_rows(manifest: Manifest) -> int:
    """Rows of each architecture in the whole run; 0 where an older manifest doesn't say."""
    questions = manifest.dataset.examples or 0
    return int(questions * (manifest.options.get("trials") or 1))


def _data(dataset: DatasetFacts) -> Data:
    """The claims' name of the data set, whatever its file is called."""
    for data in BY_FORMAT:
        if data == dataset.format:
            return data
    if dataset.source.get("generator") == "chain":
        return "chain"
    return "sample" if dataset.name == "sample" else "other"


def _model(model: str, planner: str, solver: str) -> str:
    roles = [
        f"{role} {name}" for role, name in (("planner", planner), ("solver", solver)) if name not in (model, "None")
    ]
    return " + ".join([model, *roles])


def before(each: RunGroup, groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Groups with the same data set, model and settings, in which no tool was made to fail."""
    return [other for other in groups if other.base == each.base and not other.failure_rate]
