"""What routing between two architectures would buy on the questions of a finished run.

    report = examine(rows, ("rewoo", "react"), rules=rules)
    report.ways[0].name, report.ways[0].exact_match      # "always rewoo", Interval(0.24, …, n=100)
    report.verdict                                       # one sentence

Every way of choosing is a system like another one: its rows are those of the parent that it takes, so nothing is run
again. Differences and ratios are paired by question, and the trials of a question are one observation. The intervals
of a learned router are for the routers of the folds as they were fitted; that the folds share questions isn't in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rewoo_bench.config.router_settings import Rule, rule_for
from rewoo_bench.errors import DataError
from rewoo_bench.routing.bounds import across_trials, best_by_question, by_type
from rewoo_bench.routing.learned import out_of_fold
from rewoo_bench.routing.outcomes import MEASURES, Floats, Outcomes, Whole, measured, read_outcomes
from rewoo_bench.routing.render import RoutingReport
from rewoo_bench.routing.verdict import verdict_of
from rewoo_bench.routing.ways import Columns, Kind, Way, way_of

if TYPE_CHECKING:
    import pandas as pd

    from rewoo_bench.runs.manifest import Manifests


def examine(
    outcomes: Outcomes,
    rows: pd.DataFrame,
    *,
    rules: Sequence[Rule],
    texts: Mapping[str, str],
    threshold: float = 0.5,
    manifests: Manifests | None = None,
) -> RoutingReport:
    """The report on `outcomes`; `rows` are the run's, for those of a router that asks a model."""
    missing: list[str] = []
    ways = [_chosen(outcomes, f"always {name}", "parent", _all(outcomes, i)) for i, name in enumerate(outcomes.parents)]
    if any(rule.choose not in outcomes.parents for rule in rules):
        missing.append(f"rule: the rules choose other architectures than {' and '.join(outcomes.parents)}")
    else:
        ways.append(_chosen(outcomes, "rule", "policy", by_rules(outcomes, rules)))
    try:
        learned = out_of_fold(outcomes, threshold)[outcomes.question]
        ways.append(_chosen(outcomes, "learned, out of fold", "policy", learned))
    except DataError as error:
        missing.append(f"learned: {error}")
    routers = _model_routers(rows, outcomes.parents, manifests or {})
    ways += [_of_router(rows, outcomes.parents, texts, name) for name in routers]
    if not routers:
        arch = ",".join((*outcomes.parents, "'router?policy=model'"))
        missing.append(f"model: the run has no rows of a router that asks a model; run --arch {arch}")
    ways += _bounds(outcomes, missing)
    return RoutingReport(
        parents=outcomes.parents, datasets=outcomes.datasets, models=outcomes.models, questions=outcomes.questions,
        rows=outcomes.rows, left_out=outcomes.left_out, decided=int((outcomes.gain != 0).sum()), oracle=outcomes.oracle,
        ways=tuple(ways), missing=tuple(missing), verdict=verdict_of(outcomes, ways),
    )  # fmt: skip


def by_rules(outcomes: Outcomes, rules: Sequence[Rule]) -> Whole:
    """The parent that the rules choose for each row; the first where none fits."""
    places = [rule_for(tuple(rules), text) for text in outcomes.texts]
    names = [outcomes.parents[0] if place is None else rules[place].choose for place in places]
    return np.array([outcomes.parents.index(name) for name in names], dtype=np.int64)[outcomes.question]


def _bounds(outcomes: Outcomes, missing: list[str]) -> list[Way]:
    found = []
    kind = by_type(outcomes)
    if kind is None:
        missing.append("best parent of each type: the questions have one type")
    else:
        found.append(_chosen(outcomes, "best parent of each type, across folds", "bound", kind))
    trials = across_trials(outcomes)
    if trials is None:
        missing.append("best parent of each question, across trials: needs a run with --trials 2 or more")
    else:
        found.append(_chosen(outcomes, "best parent of each question, across trials", "bound", trials))
    return [
        *found,
        _chosen(outcomes, "best of both by question, biased upward", "biased bound", best_by_question(outcomes)),
    ]


def _chosen(outcomes: Outcomes, name: str, kind: Kind, choice: Whole) -> Way:
    return way_of(name, kind, float(choice.mean()), outcomes.taken(choice), _columns(outcomes))


def _columns(outcomes: Outcomes) -> Columns:
    return Columns(outcomes.parents, outcomes.measures, outcomes.question, outcomes.oracle)


def _all(outcomes: Outcomes, parent: int) -> Whole:
    return np.full(outcomes.rows, parent, dtype=np.int64)


def _model_routers(rows: pd.DataFrame, parents: tuple[str, str], manifests: Manifests) -> list[str]:
    """Names of the routers of the run that ask a model which of the parents to take."""
    settings = {entry.name: entry.settings or {} for manifest in manifests.values() for entry in manifest.architectures}
    there = [str(name) for name in rows["architecture"].unique()]
    return [
        name
        for name in there
        if settings.get(name, {}).get("policy") == "model" and set(settings[name].get("parents", ())) == set(parents)
    ]


def _of_router(rows: pd.DataFrame, parents: tuple[str, str], texts: Mapping[str, str], name: str) -> Way:
    """A router that ran: its own rows, with the tokens and the time of its own call."""
    outcomes, routed = read_outcomes(rows, parents, texts, others=(name,))
    own = routed[name]
    taken: dict[str, Floats] = {measure: measured(own, measure) for measure in MEASURES}
    share = float((own["routed_to"].astype(str) == parents[1]).mean())
    return way_of(f"model ({name})", "policy", share, taken, _columns(outcomes))
