"""Which of these architectures for my questions: runs -> a recommendation, in words and as data.

    advice = advise(load("results/local/a"), manifests=manifests("results/local/a"), terms=Terms(max_cost=0.004))
    advice.parts[0].decision.recommended        # "rewoo", or None where nothing is
    print(advice)                               # sentences and a small table

    run_sets.py -> decision.py -> sentences.py

Everything is paired by question and has an interval and its number of questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rewoo_bench.analysis.advice.decision import Decision, Terms, candidates, contrasted, decide
from rewoo_bench.analysis.advice.run_sets import RunSet, more_questions, run_sets
from rewoo_bench.analysis.advice.sentences import Part, sentences, table
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.text.escaping import with_finite_numbers


@dataclass(frozen=True, slots=True)
class Advice:
    """A part for each set of architectures that may be compared; printed, it is sentences and a table each."""

    parts: tuple[Part, ...]
    not_compared: tuple[str, ...]
    """Why some runs aren't compared with others; a sentence each."""

    def __str__(self) -> str:
        blocks = ["\n\n".join([part.title, "\n".join(sentences(part)), "\n".join(table(part))]) for part in self.parts]
        lines = [f"Not compared: {reason}." for reason in self.not_compared]
        return "\n\n".join([*blocks, *(["\n".join(lines)] if lines else [])])

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; what isn't known, or is without bound, is None."""
        parts = [_part(part) for part in self.parts]
        known: dict[str, Any] = with_finite_numbers({"parts": parts, "not_compared": list(self.not_compared)})
        return known

    def as_json(self) -> str:
        """The same as text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def advise(
    rows: pd.DataFrame,
    *,
    manifests: Manifests | None = None,
    terms: Terms | None = None,
    intersect: bool = False,
    folders: Mapping[str, Path] | None = None,
) -> Advice:
    """A recommendation for each set of comparable architectures. `folders` are the runs' folders by run id.

    Raises `UsageError` where no two architectures can be compared, or a limit is of something that wasn't measured.
    """
    terms = terms or Terms()
    sets, reasons = run_sets(rows, manifests or {}, intersect=intersect)
    lonely = [runs for runs in sets if len(runs.rows) < 2]
    compared = [runs for runs in sets if len(runs.rows) > 1]
    if not compared:
        why = reasons or [f"{lonely[0].pieces[0].name} has one architecture, {next(iter(lonely[0].rows))!r}"]
        raise UsageError(f"nothing to compare: {'; '.join(why)}")
    reasons += [
        f"{runs.pieces[0].name} has one architecture, {next(iter(runs.rows))!r}, and nothing to compare it with"
        for runs in lonely
        if not any(reason.startswith(f"{runs.pieces[0].name} ") for reason in reasons)
    ]
    return Advice(tuple(_advised(runs, terms, folders or {}) for runs in compared), tuple(reasons))


def _advised(runs: RunSet, terms: Terms, folders: Mapping[str, Path]) -> Part:
    if runs.oracle:
        return Part(runs, terms, tuple(candidates(runs, Terms(margin=terms.margin))), {}, Decision("oracle"), None)
    found = candidates(runs, terms)
    within = [each.architecture for each in found if each.state == "within"]
    priced = found[0].priced
    contrasts = contrasted(runs, within, terms.margin, priced=priced)
    decision = decide(found, contrasts, terms.margin)
    needed = None
    if decision.questions is not None:
        names = dict.fromkeys([*decision.contenders, *decision.open])
        needed = more_questions(runs, list(names), decision.questions, folders)
    if decision.recommended and len(within) < len(found):  # those outside are compared with it, too, but not tested
        measured = [each.architecture for each in found if each.state != "not measured"]
        every = contrasted(runs, measured, terms.margin, priced=priced)
        contrasts = {**{pair: each for pair, each in every.items() if decision.recommended in pair}, **contrasts}
    return Part(runs, terms, tuple(found), contrasts, decision, needed)


def _part(part: Part) -> dict[str, Any]:
    runs, decision = part.runs, part.decision
    return {
        "dataset": runs.dataset,
        "model": runs.model,
        "runs": [piece.run_id for piece in runs.pieces],
        "kind": decision.kind,
        "recommended": decision.recommended,
        "sentences": sentences(part),
        "terms": asdict(part.terms),
        "contenders": list(decision.contenders),
        "not_worse_p_holm": dict(decision.not_worse),
        "could_change": list(decision.open),
        "more_questions": asdict(part.more) if part.more else None,
        "architectures": [
            {**asdict(each), "state": each.state, "cost_unit": "usd" if each.priced else "tokens"}
            for each in part.candidates
        ],
        "pairs": [
            {**asdict(each), "tested": {each.one, each.other} <= set(part.within)} for each in part.contrasts.values()
        ],
        "warnings": [*runs.warnings, *runs.waits],
    }
