"""What routing between two architectures would buy on the questions of a finished run.

    report = rewoo_bench.route("results/local/a")
    report.ways[0].name, report.ways[0].exact_match      # "always rewoo", Interval(0.24, …, n=100)
    report.verdict                                       # one sentence

Every way of choosing is a system like another one: its rows are those of the parent that it takes, so nothing is run
again. Differences and ratios are paired by question, and the trials of a question are one observation. The intervals
of a learned router are for the routers of the folds as they were fitted; that the folds share questions isn't in them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from rewoo_bench.analysis.pairs import ALPHA, column
from rewoo_bench.analysis.routing import (
    OUTCOME_COLUMNS,
    Integers,
    Outcomes,
    Way,
    WayKind,
    across_trials,
    best_by_question,
    by_type,
    fit_router,
    out_of_fold,
    read_outcomes,
    way_of,
)
from rewoo_bench.analysis.stats.paired import Interval
from rewoo_bench.analysis.stats.tests import holm
from rewoo_bench.config.named import find_named, known_names, read_architecture
from rewoo_bench.config.router import RouterSettings, RoutingRule, rule_for
from rewoo_bench.config.specs import validated
from rewoo_bench.errors import DataError, SpecError, UsageError, unknown
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.system.files import replaced
from rewoo_bench.text.escaping import markdown_table, plain_line, plain_markdown, text_table, with_finite_numbers
from rewoo_bench.text.words import counted

RoutingFormat = Literal["terminal", "markdown", "json"]
LARGEST_LOSS, LARGEST_SHARE = 0.02, 0.1  # of exact match, and of the parent's exact match: 2 points of 7 are no detail
_NOTES = (
    "out of fold: each question is routed by a model that was fitted on the other folds",
    "biased upward: it chooses by the outcome that it is scored on; no router can be held to it",
    "p is exact McNemar's for each line alone; the first sentence adjusts them for the number of policies (Holm)",
)


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """The ways of choosing, each against both parents, and the finding in a sentence."""

    parents: tuple[str, str]
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    questions: int
    rows: int
    left_out: int
    """Pairs of rows that the infrastructure failed, or nobody scored, for one of the two."""
    decided: int
    """Questions with different exact match of the two."""
    oracle: bool
    ways: tuple[Way, ...]
    missing: tuple[str, ...]
    """Ways that can't be told here, and why."""
    verdict: str

    def __str__(self) -> str:
        return render_routing(self, "terminal")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; what isn't known, or is without a bound, is None."""
        known: dict[str, Any] = with_finite_numbers(asdict(self))
        return known


def render_routing(report: RoutingReport, form: RoutingFormat) -> str:
    """The report in one of the formats, without a newline at its end."""
    if form == "json":
        return json.dumps(report.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    as_markdown = form == "markdown"
    line: Callable[[str], str] = plain_markdown if as_markdown else plain_line
    table: Callable[[list[list[str]]], list[str]] = markdown_table if as_markdown else text_table
    trials = f", {report.rows:,} rows with their trials" if report.rows > report.questions else ""
    why = "because one failed or has no score"
    left_out = f"; {counted(report.left_out, 'pair')} of rows left out, {why}" if report.left_out else ""
    title = (
        f"{', '.join(report.datasets)}; {', '.join(report.models)}: {counted(report.questions, 'question')}{trials}, "
        f"{report.decided} with another exact match of the two{left_out}; means per question [95% interval]"
    )
    means = [["choice", "n", f"to {report.parents[1]}", "EM", "F1", "tokens", "$ / 1000", "latency s"]]
    differences = [["choice, against", "n", "EM", "p", "F1", "tokens, ratio", "cost, ratio", "latency, ratio"]]
    for way in report.ways:
        means.append(
            [
                way.name,
                f"{way.exact_match.n:,}",
                f"{way.share:.0%}",
                _interval(way.exact_match, ".3f"),
                _interval(way.f1, ".3f"),
                _interval(way.total_tokens, ",.0f"),
                _interval(way.cost_usd, ".3f", 1000),
                _interval(way.latency_s, ".2f"),
            ]
        )
        for against in way.against:
            if way.name != f"always {against.parent}":
                differences.append(
                    [
                        f"{way.name} - {against.parent}",
                        f"{against.exact_match.n:,}",
                        _interval(against.exact_match, "+.3f"),
                        "-" if way.kind == "biased bound" else "<0.001" if against.p < 0.001 else f"{against.p:.3f}",
                        _interval(against.f1, "+.3f"),
                        _interval(against.total_tokens, ".3f"),
                        _interval(against.cost_usd, ".3f"),
                        _interval(against.latency_s, ".3f"),
                    ]
                )
    notes = [*_NOTES, *(f"left out: {reason}" for reason in report.missing)]
    shown = "\n".join(f"- {line(note)}" if as_markdown else line(note) for note in notes)
    tables = ["\n".join(table(cells)) for cells in (means, differences)]
    return "\n\n".join([line(report.verdict), line(title), *tables, shown])


def _interval(value: Interval | None, form: str, times: float = 1.0) -> str:
    if value is None or math.isnan(value.estimate):
        return "-"
    shown = [format(times * each, form) for each in (value.estimate, value.low, value.high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _verdict(outcomes: Outcomes, ways: Sequence[Way]) -> str:
    """The finding in one sentence: whether a policy beats the better of the two parents.

    Always taking the better parent needs no router, so that is what a policy has to beat. It buys accuracy where its
    exact match is higher (exact McNemar, Holm over the policies, p below 0.05), and tokens where it takes fewer (the
    95% interval of the ratio is below 1) and a loss of exact match is ruled out: one of more than 2 points, or of more
    than a tenth of the parent's own exact match where that is less. The bounds are no policies, and aren't asked. Of
    many runs some will show a saving by chance: the sentence is for one.
    """
    if outcomes.oracle:
        return "An oracle answered: accuracy means nothing here, so these rows can't say what routing buys."
    of = f"the better parent, {outcomes.parents[outcomes.better]!r}"
    policies = [(way.name, way.against[outcomes.better]) for way in ways if way.kind == "policy"]
    adjusted = holm([against.p for _, against in policies])
    gains = [
        (name, against.exact_match)
        for (name, against), p in zip(policies, adjusted, strict=True)
        if p < ALPHA and against.exact_match.estimate > 0
    ]
    if gains:
        name, accuracy = max(gains, key=lambda gain: gain[1].estimate)
        return f"Routing buys accuracy here: {name!r} is right more often than {of}: {_points(accuracy)}."
    loss = min(LARGEST_LOSS, LARGEST_SHARE * float(outcomes.measures["exact_match"][outcomes.better].mean()))
    savings = [
        (name, against.total_tokens, against.exact_match)
        for name, against in policies
        if against.total_tokens and against.total_tokens.high < 1 and against.exact_match.low > -loss
    ]
    if savings:
        name, ratio, accuracy = min(savings, key=lambda saving: saving[1].estimate)
        return (
            f"Routing saves tokens here: {name!r} takes {ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] "
            f"of the tokens of {of}, and a loss of {100 * loss:.1f} points is ruled out: {_points(accuracy)}."
        )
    shown = "; ".join(f"{name}: {_points(against.exact_match)}" for name, against in policies)
    return (
        f"Routing buys nothing that these {counted(outcomes.questions, 'question')} show: no policy is right more "
        f"often than {of}, or as often for fewer tokens ({shown or 'no policy could be tried'})."
    )


def _points(accuracy: Interval) -> str:
    return f"EM {accuracy.estimate:+.3f} [{accuracy.low:+.3f}, {accuracy.high:+.3f}], n = {accuracy.n}"


def examine(
    outcomes: Outcomes,
    rows: pd.DataFrame,
    *,
    rules: Sequence[RoutingRule],
    texts: Mapping[str, str],
    threshold: float,
    manifests: Manifests,
) -> RoutingReport:
    """The report on `outcomes`; `rows` are the run's, for those of a router that asks a model."""
    parents, ways, missing = outcomes.parents, list[Way](), list[str]()

    def add(name: str, kind: WayKind, choice: Integers) -> None:
        ways.append(way_of(name, kind, float(choice.mean()), outcomes.taken(choice), outcomes))

    for place, name in enumerate(parents):
        add(f"always {name}", "parent", np.full(outcomes.rows, place, dtype=np.int64))
    if any(rule.choose not in parents for rule in rules):
        missing.append(f"rule: the rules choose other architectures than {' and '.join(parents)}")
    else:
        fitting = [rule_for(tuple(rules), text) for text in outcomes.texts]
        choice = [0 if rule is None else parents.index(rules[rule].choose) for rule in fitting]
        add("rule", "policy", np.array(choice, dtype=np.int64)[outcomes.question])
    try:
        add("learned, out of fold", "policy", out_of_fold(outcomes, threshold)[outcomes.question])
    except DataError as error:
        missing.append(f"learned: {error}")

    # routers of the run that ask a model which of the parents to take: their own rows, with the tokens of that call
    settings = {each.name: each.settings or {} for of in manifests.values() for each in of.architectures}
    there = [str(name) for name in rows["architecture"].unique()]
    asking = [name for name in there if settings.get(name, {}).get("policy") == "model"]
    routers = [name for name in asking if set(settings[name].get("parents", ())) == set(parents)]
    for name in routers:
        same, routed = read_outcomes(rows, parents, texts, others=(name,))
        own = routed[name]
        share = float((own["routed_to"].astype(str) == parents[1]).mean())
        taken = {measure: column(own, measure) for measure in OUTCOME_COLUMNS}
        ways.append(way_of(f"model ({name})", "policy", share, taken, same))
    if not routers:
        arch = ",".join((*parents, "'router?policy=model'"))
        missing.append(f"model: the run has no rows of a router that asks a model; run --arch {arch}")

    if (of_types := by_type(outcomes)) is None:
        missing.append("best parent of each type: the questions have one type")
    else:
        add("best parent of each type, across folds", "bound", of_types)
    if (of_trials := across_trials(outcomes)) is None:
        missing.append("best parent of each question, across trials: needs a run with --trials 2 or more")
    else:
        add("best parent of each question, across trials", "bound", of_trials)
    add("best of both by question, biased upward", "biased bound", best_by_question(outcomes))
    return RoutingReport(
        parents=parents, datasets=outcomes.datasets, models=outcomes.models, questions=outcomes.questions,
        rows=outcomes.rows, left_out=outcomes.left_out, decided=int((outcomes.gain != 0).sum()), oracle=outcomes.oracle,
        ways=tuple(ways), missing=tuple(missing), verdict=_verdict(outcomes, ways),
    )  # fmt: skip


def route_runs(
    runs: Sequence[str | Path],
    parents: tuple[str, str] | None,
    router: str,
    texts: Mapping[str, str],
    threshold: float,
    out: Path | None,
) -> RoutingReport:
    """The report on runs, and the file of the learned router. Raises `UsageError`, `SpecError` and `DataError`."""
    if not runs:
        raise DataError("no run given")
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold: expected a number from 0 to 1, got {threshold!r}")
    named = find_named("architectures", router)
    if named is None or named.folder is None:
        known = unknown("architecture", router, known_names("architectures"))
        raise SpecError(f"--router: {known}; or a folder's path")
    spec = read_architecture(named)
    if spec.runner != "router":
        raise SpecError(f"--router: {router!r} is no router: its runner is {spec.runner!r}")
    settings = validated(RouterSettings, spec.settings, f"--router: {router!r}: [settings]")
    chosen = parents or settings.parents
    if isinstance(chosen, str) or len(chosen) != 2 or chosen[0] == chosen[1]:
        raise UsageError(f"parents: expected two different architectures, got {chosen!r}")
    rows = load(*runs)
    outcomes, _ = read_outcomes(rows, (chosen[0], chosen[1]), texts)
    report = examine(outcomes, rows, rules=settings.rules, texts=texts, threshold=threshold, manifests=manifests(*runs))
    if out is not None:
        written = fit_router(outcomes, threshold).written().encode()
        try:
            with replaced(out) as file:
                file.write(written)
        except OSError as error:
            raise UsageError(f"--out: can't write {str(out)!r}: {error.strerror or error}") from None
    return report
