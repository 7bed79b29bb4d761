"""What could have been planned, as tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rewoo_bench.analysis.plannable.run import HORIZONS, Plannable
from rewoo_bench.analysis.plannable.steps import CHOICES, KINDS
from rewoo_bench.analysis.prices import SHOWN
from rewoo_bench.analysis.stats.paired import A_RARE_EVENT, RARE, Interval, ratio_of_means
from rewoo_bench.runs.rows import mean_over_questions
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.words import counted

ASSUMPTIONS = (
    "an estimate, no measurement. It takes for granted that prompts and outputs are the loop's own, that "
    "plans have no faults, and that a value which stands in an earlier text comes from there"
)
SECONDS = (
    "seconds are an estimate, too: what a plan writes in a call's place takes the run's own time for each token (the "
    "slope of a line through its calls), but no more than that call took"
)
AHEAD = (
    "tool calls ahead of their turn: asked for by a plan before the loop asked for them, so not those of a plan's "
    "first turn"
)
WAYS = {"plan-ahead": "a whole plan", "plans as code": "programs"}
"""The ways to plan that a sentence names."""
OF_RARE = f"{RARE} {A_RARE_EVENT}: few tasks make most of the spread"
FEWEST_TASKS = 10
"""Tasks of which an interval is shown; of fewer it says nothing."""


def share(part: Any, whole: Any, tasks: Any) -> Interval:
    """A share of sums with its 95% interval over tasks; the trials of a task are one observation."""
    _, task = np.unique(np.asarray(tasks, dtype=str), return_inverse=True)
    sums = [np.bincount(task, weights=np.asarray(values, dtype=float)) for values in (whole, part)]
    if not sums[0].any():
        return Interval(np.nan, np.nan, np.nan, 0)
    found = ratio_of_means(*sums)
    return Interval(found.estimate, max(0.0, found.low), min(1.0, found.high), found.n, rare=found.rare)


def savings(found: Plannable, architecture: str) -> pd.DataFrame:
    """A row for each horizon and measure: the part of the loop's amount that falls away, with its 95% interval."""
    own = found.tasks[found.tasks["architecture"] == architecture]
    of = {horizon: own[own["horizon"] == horizon].reset_index(drop=True) for horizon in HORIZONS}
    loop, tasks = of["loop"], of["loop"]["example_id"].to_numpy()
    measures = ["model_calls", "sequential_calls", "input_tokens", "output_tokens", "latency_s"]
    measures += [f"usd:{name}" for name in found.prices]
    rows = []
    for horizon in HORIZONS[1:]:
        for measure in measures:
            before, after = loop[measure].to_numpy(float), of[horizon][measure].to_numpy(float)
            if np.isnan(before + after).any() or not before.any():
                continue
            ratio = ratio_of_means(before, after, clusters=tasks)
            means = {"loop": mean_over_questions(before, tasks), "planned": mean_over_questions(after, tasks)}
            rows.append(
                {
                    **{"architecture": architecture, "horizon": horizon, "measure": measure},
                    **{**means, "saved": 1 - ratio.estimate},
                    **{"low": 1 - ratio.high, "high": 1 - ratio.low, "n": ratio.n, "rare": ratio.rare},
                }
            )
    return pd.DataFrame(rows)


def verdict(found: Plannable, architecture: str, price: str) -> str:
    """The sentence that a reader came for; empty where no dollars are known."""
    all_ = savings(found, architecture)
    own = {row["horizon"]: row for row in all_.to_dict("records") if row["measure"] == f"usd:{price}"}
    if not own:
        return ""
    first, last = (own[horizon] for horizon in WAYS)
    low, high = sorted((first["saved"], last["saved"]))
    rule, model = found.prices[price].rsplit(", ", 1)
    where = f"{'without a cache' if rule == SHOWN['none'] else f'under {rule}'}, at {model}'s prices"
    shares = [f"{value:.0%}".replace("-0%", "0%") for value in (low, high)]
    saved = " to ".join(dict.fromkeys(shares))
    estimated = f"{architecture}: by an estimate, planning ahead would have saved {saved} of the cost {where}."
    return f"{estimated} {_error(own, rule)}"


def _error(own: Mapping[Any, Mapping[Any, Any]], rule: str) -> str:
    """How far such an estimate was off where a planner was run, and what it shows with that error."""
    measures = [f"usd:{name}" for name, title in SHOWN.items() if title in rule.split(" and ")]
    measured = errors()
    measured = measured[measured["measure"].isin(measures)]
    if measured.empty:
        return "No planner was measured under this rule."
    took = {horizon: measured[measured["horizon"] == horizon]["took_per_predicted"] for horizon in WAYS}
    ranges = [f"cost {of.min():.2f} to {of.max():.2f} times" for of in took.values()]
    first, second = (f"{way} {cost}" for way, cost in zip(WAYS.values(), ranges, strict=True))
    enough = [name for name in WAYS if own[name]["n"] >= FEWEST_TASKS]
    saving = [WAYS[name] for name in enough if (1 - own[name]["low"]) * took[name].max() < 1]
    shown = f"a saving by {' and by '.join(saving)}" if saving else "neither a saving nor a loss"
    measured_error = f"Where planners were run, {first} its estimate. {second.capitalize()} theirs."
    return f"{measured_error} With errors of this size the estimate shows {shown}."


def errors() -> pd.DataFrame:
    """What planners took of what is predicted of them, where both were measured (scripts/study_predictor.py).

    A row for each data set, model, pair of architectures and measure; `took_per_predicted` is 1 for a right prediction.
    """
    return pd.read_csv(Path(__file__).with_name("predicted.csv"))


def trust_table(prices: Mapping[str, str]) -> list[list[str]]:
    """Of each horizon the runs, and the median and the range of what planners took, divided by what was predicted."""
    measured = errors()
    names = {"model_calls": "model calls", "total_tokens": "tokens"}
    rules = {rule for title in prices.values() for rule in title.rpartition(", ")[0].split(" and ")}
    names |= {f"usd:{name}": f"$, {title}" for name, title in SHOWN.items() if title in rules}
    rows = [["measured / predicted", "runs", *names.values()]]
    for horizon in HORIZONS[1:]:
        of_horizon = measured[measured["horizon"] == horizon]
        runs = Counter(of_horizon.drop_duplicates(["dataset", "model"])["model"].str.removesuffix(".gguf"))
        cells = [", ".join(f"{count} of {model}" for model, count in runs.most_common())]
        for measure in names:
            own = of_horizon[of_horizon["measure"] == measure]["took_per_predicted"]
            cells.append(f"{own.median():.2f} ({own.min():.2f} to {own.max():.2f})" if len(own) else "-")
        rows.append([horizon, *cells])
    return rows


def trust_note() -> str:
    return (
        f"median and range over runs of {errors()['n'].min()} tasks and more, where a planner was run, too; 1.00 means "
        "that it took what was predicted. Dollars are at gpt-5-mini's prices, under Anthropic's rule at "
        "claude-sonnet-4-5's. Planners have prompts of their own, shorter than the loop's: a cache holds less of them"
    )


def text(found: Plannable) -> str:
    """All tables as plain text."""
    blocks = []
    for architecture in found.architectures():
        calls = found.calls[found.calls["architecture"] == architecture]
        tasks = found.tasks[(found.tasks["architecture"] == architecture) & (found.tasks["horizon"] == "loop")]
        head = f"{architecture}: {counted(tasks['example_id'].nunique(), 'task')}, "
        head += f"{counted(len(tasks), 'run')} of them, {counted(len(calls), 'tool call')}"
        blocks.append("\n".join([head, "", *text_table(values_table(calls)), *_chance(calls)]))
        blocks.append("\n".join(text_table(calls_table(calls))))
        if measured := found.measured.get(architecture):
            blocks.append("\n".join(["What a planner took of the same tasks:", *measured]))
        else:
            blocks.append("\n".join([*text_table(horizons_table(found, architecture)), AHEAD]))
            blocks.append("\n".join(filter(None, (verdict(found, architecture, name) for name in found.prices))))
    rare = [OF_RARE] if any(RARE in block for block in blocks) else []
    if not found.measured.keys() >= set(found.architectures()):
        blocks.append("\n".join([*text_table(trust_table(found.prices)), trust_note()]))
    return "\n\n".join([*blocks, "\n".join([*rare, *notes(found)])])


def notes(found: Plannable) -> list[str]:
    """What the figures take for granted, where prices come from, and what is left out."""
    is_estimate = not found.measured.keys() >= set(found.architectures())
    seconds = SECONDS if found.tasks["latency_s"].notna().all() else ""
    said = [ASSUMPTIONS, seconds, found.pricing] if is_estimate else []
    return [*filter(None, said), *(f"left out: {reason}: {count:,}" for reason, count in found.left_out.items())]


def saved_by_task(found: Plannable, architecture: str) -> pd.DataFrame:
    """The part of its model calls that each task saves, all its trials together: a row a task, a column a horizon."""
    own = found.tasks[found.tasks["architecture"] == architecture]
    calls = own.groupby(["example_id", "horizon"])["model_calls"].sum().unstack("horizon")
    return pd.DataFrame({horizon: 1 - calls[horizon] / calls["loop"] for horizon in HORIZONS[1:]})


def _shown(interval: Interval) -> str:
    if np.isnan(interval.estimate):
        return "-"
    if interval.n < FEWEST_TASKS or (interval.low, interval.high) == (0, 1):  # which says nothing
        return f"{interval.estimate:.1%}"
    return f"{interval.estimate:.1%} [{interval.low:.1%}, {interval.high:.1%}]{RARE if interval.rare else ''}"


def _change(saved: float) -> str:
    """What falls away, as a change: `-5.3%`; a zero has no sign."""
    shown = f"{-saved:+.1%}"
    return "0.0%" if shown in ("+0.0%", "-0.0%") else shown


def values_table(calls: pd.DataFrame) -> list[list[str]]:
    """A row for each kind of value: their number and share."""
    rows = [["values of arguments", "number", "share [95% CI]"]]
    for kind in KINDS:
        rows.append([kind, f"{calls[kind].sum():,}", _shown(share(calls[kind], calls["values"], calls["example_id"]))])
    for name, column in (("(one of several items)", "chosen"), ("(out of a longer text)", "in_longer_text")):
        if calls[column].any():
            cell = _shown(share(calls[column], calls["values"], calls["example_id"]))
            rows.append([f"copied {name}", f"{calls[column].sum():,}", cell])
    return rows


def _chance(calls: pd.DataFrame) -> Iterator[str]:
    guessed, by_chance = calls["guessed"].sum(), calls["by_chance"].sum()
    if guessed:
        share_ = f"{by_chance / guessed:.0%} of the {guessed:,} values that aren't constant"
        others = calls["values"].sum() - calls["constant"].sum() - guessed
        rest = f"; the other {others:,} have no other task to be looked for in" if others else ""
        yield f"by chance: {share_} also stand in what was said or found in another task{rest}"


def calls_table(calls: pd.DataFrame) -> list[list[str]]:
    """A row for each of the conditions under which a call can be planned."""
    one = np.ones(len(calls))
    rows = [["tool calls", "number", "share [95% CI]"]]

    def add(name: str, chosen: Sequence[bool] | pd.Series) -> None:
        mask = np.asarray(chosen, dtype=float)
        rows.append([name, f"{int(mask.sum()):,}", _shown(share(mask, one, calls["example_id"]))])

    add("no value is derived", calls["values_plannable"])
    for choice in CHOICES[1:]:
        if (calls["choice"] == choice).any():
            add(
                f"chosen {choice}" if choice != "branch" else "chosen otherwise in another trial",
                calls["choice"] == choice,
            )
    add("plannable: no derived value, and no result that made the agent choose it", calls["plannable"])
    return rows


def horizons_table(found: Plannable, architecture: str) -> list[list[str]]:
    """A row for each horizon: what a task takes, and the part of the loop's amount that falls away."""
    own = found.tasks[found.tasks["architecture"] == architecture]
    rows_ = savings(found, architecture).to_dict("records")
    saved = {(row["horizon"], row["measure"]): row for row in rows_}
    names = {"model_calls": "model calls", "input_tokens": "tokens in", "latency_s": "seconds of models"}
    names |= {f"usd:{name}": f"$ / 1,000 tasks, {title}" for name, title in found.prices.items()}
    measures = [name for name in names if (HORIZONS[-1], name) in saved]
    rows = [["a task takes", "tool calls ahead of their turn", *(names[name] for name in measures)]]
    for horizon in HORIZONS:
        part = own[own["horizon"] == horizon]
        covered = _shown(share(part["planned"], part["tool_calls"], part["example_id"])) if horizon != "loop" else "-"
        cells = [horizon, covered]
        for measure in measures:
            if horizon == "loop":
                values, tasks = part[measure].to_numpy(float), part["example_id"].to_numpy(str)
                cells.append(_amount(measure, mean_over_questions(values, tasks)))
            else:
                each = saved[horizon, measure]
                bounds = f" [{_change(each['high'])}, {_change(each['low'])}]{RARE if each['rare'] else ''}"
                cells.append(_change(each["saved"]) + ("" if each["n"] < FEWEST_TASKS else bounds))
        rows.append(cells)
    return rows


def _amount(measure: str, value: float) -> str:
    if measure.startswith("usd:"):
        return f"{1000 * value:,.3f}"
    return f"{value:,.0f}" if measure == "input_tokens" else f"{value:.2f}"
