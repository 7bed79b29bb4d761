"""What could have been planned, as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rewoo_bench.analysis.plannable.attacks import NOTE as OF_ATTACKS
from rewoo_bench.analysis.plannable.attacks import attacks_table, sentence
from rewoo_bench.analysis.plannable.planned import WAYS
from rewoo_bench.analysis.plannable.run import Plannable
from rewoo_bench.analysis.plannable.steps import CHOICES, KINDS
from rewoo_bench.analysis.prices import SHOWN
from rewoo_bench.analysis.stats.paired import A_RARE_EVENT, RARE, Interval, ratio_of_means
from rewoo_bench.runs.rows import mean_over_questions
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.words import counted

ASSUMPTIONS = (
    "an estimate by the law of plan and loop (results/law.md), no measurement. It takes for granted that a planner "
    "foresees which calls are needed, that plans have no faults, and that a value which stands in an earlier text "
    "comes from there. A result that only decided which call comes next counts as read where an error, an empty "
    "result or another trial shows it"
)
OF_WAYS = (
    "× stands before a multiple of the loop's amount",
    "a plan is JSON without exemplars; it is made anew where an error, an empty result or another trial shows that a "
    "result decided the next call",
    "the solver of a lean plan sees no result that a step has read; a program decides by itself which call comes next",
)
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


def against_loop(found: Plannable, architecture: str) -> pd.DataFrame:
    """A row for each way to plan and measure: its amount by the loop's, with its 95% interval over tasks."""
    own = found.tasks[found.tasks["architecture"] == architecture]
    of = {way: own[own["way"] == way].reset_index(drop=True) for way in ("loop", *WAYS)}
    loop, tasks = of["loop"], of["loop"]["example_id"].to_numpy()
    measures = ["model_calls", "sequential_calls", "input_tokens", "output_tokens"]
    measures += [f"usd:{name}" for name in found.prices]
    rows = []
    for way in WAYS:
        for measure in measures:
            before, after = loop[measure].to_numpy(float), of[way][measure].to_numpy(float)
            if np.isnan(before + after).any() or not before.any():
                continue
            ratio = ratio_of_means(before, after, clusters=tasks)
            means = {"loop": mean_over_questions(before, tasks), "planned": mean_over_questions(after, tasks)}
            rows.append(
                {
                    **{"architecture": architecture, "way": way, "measure": measure, **means},
                    **{"ratio": ratio.estimate, "low": ratio.low, "high": ratio.high, "n": ratio.n, "rare": ratio.rare},
                }
            )
    return pd.DataFrame(rows)


def as_rows(found: Plannable) -> pd.DataFrame:
    """The same of all loops, for files; `took_…`: what planners took of such an estimate, where both were measured."""
    every = pd.concat([against_loop(found, name) for name in found.architectures()], ignore_index=True)
    took = errors().groupby(["way", "measure"])["took_per_predicted"].agg(["median", "min", "max"]).add_prefix("took_")
    every = every.join(took, on=["way", "measure"])
    return every.assign(way=every["way"].map({way: name.removeprefix("a ") for way, name in WAYS.items()}))


def reading(found: Plannable, architecture: str) -> str:
    """How many results a model had to read before a later call could be written."""
    calls = found.calls[found.calls["architecture"] == architecture]
    read = share(calls["is_read"], np.ones(len(calls)), calls["example_id"])
    passed = share(calls["is_passed_on"], np.ones(len(calls)), calls["example_id"])
    return (
        f"{architecture}: {read.estimate:.0%} of the results had to be read by a model for a later call, and "
        f"{passed.estimate:.0%} can be passed on as they are. No later call takes anything out of the others."
    )


def verdicts(found: Plannable, architecture: str) -> list[str]:
    """The sentences that a reader came for, one for each price; none without dollars."""
    rows = {(row["way"], row["measure"]): row for row in against_loop(found, architecture).to_dict("records")}
    said = []
    for price, title in found.prices.items():
        own = {way: rows[way, f"usd:{price}"] for way in WAYS if (way, f"usd:{price}") in rows}
        if not own:
            continue
        rule, model = title.rsplit(", ", 1)
        where = "without a cache" if rule == SHOWN["none"] else f"under {rule}"
        plan, program = (f"{own[way]['ratio']:.2f}" for way in ("plan", "code"))
        n = own["plan"]["n"]
        few = f"{counted(n, 'task')} {'is' if n == 1 else 'are'} too few to tell more."
        said.append(
            f"{architecture}: by the law of plan and loop, a plan would cost {plan} times what the loop costs, and a "
            f"program {program} times, {where} at {model}'s prices. {few if n < FEWEST_TASKS else _shows(own)}"
        )
    return said


def _shows(own: Mapping[Any, Mapping[Any, Any]]) -> str:
    """What the estimate shows with the error that was measured where planners were run."""
    took = errors()
    took = took[took["measure"].str.startswith("usd:")]
    off = {way: took[took["way"] == way]["took_per_predicted"] for way in WAYS}
    cheaper = [WAYS[way] for way in WAYS if own[way]["high"] * max(1, off[way].max()) < 1]
    dearer = [WAYS[way] for way in WAYS if own[way]["low"] * min(1, off[way].min()) > 1]
    said = [f"{' and '.join(names)} {than} the loop" for names, than in
            ((cheaper, "cheaper than"), (dearer, "dearer than")) if names]  # fmt: skip
    error = f"{took['took_per_predicted'].min():.2f} to {took['took_per_predicted'].max():.2f} times such an estimate"
    shown = " and ".join(said) or "no difference"
    return (
        f"Where planners were run they took {error}; with such an error and this interval the estimate shows {shown}."
    )


def errors() -> pd.DataFrame:
    """What planners took of what is predicted of them, where both were measured (scripts/measure_plannable.py).

    A row for each data set, model, way to plan and measure; `took_per_predicted` is 1 for a right prediction.
    """
    return pd.read_csv(Path(__file__).with_name("predicted.csv"))


def errors_table() -> list[list[str]]:
    """Of each way to plan the runs, and the median and the range of what planners took by what was predicted."""
    measured = errors()
    names = {"model_calls": "model calls", "total_tokens": "tokens"}
    names |= {f"usd:{name}": f"$, {title}" for name, title in SHOWN.items()}
    rows = [["measured / estimated", "runs", *names.values()]]
    for (way, model), own in measured.groupby(["way", "model"], sort=False):
        cells = [dict[Any, str](WAYS)[way], f"{own['dataset'].nunique()} of {str(model).removesuffix('.gguf')}"]
        for measure in names:
            took = own[own["measure"] == measure]["took_per_predicted"]
            cells.append(f"{took.median():.2f} ({took.min():.2f} to {took.max():.2f})")
        rows.append(cells)
    return rows


def errors_note() -> str:
    return (
        f"median and range over runs of {errors()['n'].min()} tasks and more; 1.00 means that the planner took what "
        "the law gives. Dollars are at gpt-5-mini's prices, under Anthropic's rule at claude-sonnet-4-5's"
    )


def text(found: Plannable) -> str:
    """All tables as plain text."""
    blocks = []
    if len(found.attacks):
        blocks += [sentence(found.attacks), "\n".join([*text_table(attacks_table(found.attacks)), OF_ATTACKS])]
    for architecture in found.architectures():
        calls = found.calls[found.calls["architecture"] == architecture]
        tasks = found.tasks[(found.tasks["architecture"] == architecture) & (found.tasks["way"] == "loop")]
        head = f"{architecture}: {counted(tasks['example_id'].nunique(), 'task')}, "
        head += f"{counted(len(tasks), 'run')}, {counted(len(calls), 'tool call')}"
        if measured := found.measured.get(architecture):
            said = ["A planner of the run answered the same tasks:", *measured]
        else:
            said = verdicts(found, architecture)
        blocks.append("\n".join([head, "", reading(found, architecture), *said]))
        if not measured:
            blocks.append("\n".join([*text_table(ways_table(found, architecture)), *OF_WAYS]))
        blocks += ["\n".join(text_table(table)) for table in (values_table(calls), calls_table(calls))]
    rare = [OF_RARE] if any(RARE in block for block in blocks) else []
    return "\n\n".join([*blocks, "\n".join([*rare, *notes(found)])])


def notes(found: Plannable) -> list[str]:
    """What the figures take for granted, where prices come from, and what is left out."""
    is_estimate = not found.measured.keys() >= set(found.architectures())
    said = [ASSUMPTIONS, found.pricing] if is_estimate else []
    return [*filter(None, said), *(f"left out: {reason}: {count:,}" for reason, count in found.left_out.items())]


def _shown(interval: Interval) -> str:
    if np.isnan(interval.estimate):
        return "-"
    if interval.n < FEWEST_TASKS or (interval.low, interval.high) == (0, 1):  # which says nothing
        return f"{interval.estimate:.1%}"
    return f"{interval.estimate:.1%} [{interval.low:.1%}, {interval.high:.1%}]{RARE if interval.rare else ''}"


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


def calls_table(calls: pd.DataFrame) -> list[list[str]]:
    """A row for each of the conditions under which a call can be planned."""
    masks = {"no value is derived": calls["values_plannable"]}
    for choice in CHOICES[1:]:
        name = "chosen otherwise in another trial" if choice == "branch" else f"chosen {choice}"
        masks |= {name: calls["choice"] == choice} if (calls["choice"] == choice).any() else {}
    masks["plannable: no derived value, and no result that made the agent choose it"] = calls["plannable"]
    rows = [["tool calls", "number", "share [95% CI]"]]
    for name, mask in masks.items():
        rows.append([name, f"{mask.sum():,}", _shown(share(mask, np.ones(len(calls)), calls["example_id"]))])
    return rows


def ways_table(found: Plannable, architecture: str) -> list[list[str]]:
    """What a task takes in the loop, and each way to plan by the loop."""
    rows = {(row["way"], row["measure"]): row for row in against_loop(found, architecture).to_dict("records")}
    names = {"model_calls": "model calls", "sequential_calls": "in sequence", "input_tokens": "tokens in"}
    names |= {"output_tokens": "tokens out"}
    names |= {f"usd:{price}": f"$ / 1,000 tasks, {title}" for price, title in found.prices.items()}
    measures = [name for name in names if ("plan", name) in rows]
    loop = ["the loop", *(_amount(measure, rows["plan", measure]["loop"]) for measure in measures)]
    table = [["a task takes", *(names[name] for name in measures)], loop]
    for way, name in WAYS.items():
        own = (rows[way, measure] for measure in measures)
        table.append([name, *(_ratio(each) for each in own)])
    return table


def _ratio(row: Mapping[Any, Any]) -> str:
    bounds = f" [{row['low']:.2f}, {row['high']:.2f}]{RARE if row['rare'] else ''}"
    return f"× {row['ratio']:.2f}{'' if row['n'] < FEWEST_TASKS else bounds}"


def _amount(measure: str, value: float) -> str:
    if measure.startswith("usd:"):
        return f"{1000 * value:,.3f}"
    return f"{value:,.0f}" if measure.endswith("_tokens") else f"{value:.2f}"
