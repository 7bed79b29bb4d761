"""The table on the README's first screen, made from the numbers in results/models.

    python scripts/main_table.py            # writes it between the README's two marks
    python scripts/main_table.py --check    # says whether it is there as the numbers have it; exit code 1 if not

A row an architecture, three columns a data set: exact match and its 95% interval, tokens a question,
model calls a question. Below, what ReAct takes beside ReWOO, with cached input at its full price
and at a tenth of it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rewoo_bench import compare, load
from rewoo_bench.analysis.compare import cached_input_priced
from rewoo_bench.analysis.comparison_render import Comparison
from rewoo_bench.analysis.summary import Summary
from rewoo_bench.runs.folder import manifests

ROOT = Path(__file__).parents[1]
# The runs of a data set: each tells of the architectures that those before it don't have.
RUNS = {
    "HotpotQA": ("hotpotqa-qwen-1.5b-100", "hotpotqa-qwen-1.5b-eight"),
    "TriviaQA": ("triviaqa-qwen-1.5b-100",),
}
_PLACE = re.compile(r"(<!-- main table: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


def table(results: Path) -> str:
    """The table as Markdown, and a line on what ReAct takes beside ReWOO."""
    there = {name: [results / run for run in runs if (results / run).is_dir()] for name, runs in RUNS.items()}
    there = {name: runs for name, runs in there.items() if runs}
    summaries = {name: _summaries(runs) for name, runs in there.items()}
    heads = [f"{name}: exact match [95% CI] | tokens | calls" for name in there]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * 3 * len(there)}"]
    for architecture in dict.fromkeys(name for its in summaries.values() for name in its):
        cells = [_cells(its.get(architecture)) for its in summaries.values()]
        lines.append(f"| {architecture} | {' | '.join(cells)} |")
    asked = ", ".join(f"{_asked(its)} of {name}" for name, its in summaries.items())
    ratios = [f"On {name} ReAct took {_ratios(runs[0])} with cached input at a tenth." for name, runs in there.items()]
    return "\n".join([*lines, "", f"{asked}. {' '.join(ratios)}"])


def _summaries(runs: Sequence[Path]) -> dict[str, Summary]:
    """By architecture, each from the first run that has it, over the questions that all of that run have."""
    found: dict[str, Summary] = {}
    for run in runs:
        systems = compare(load(run), manifests=manifests(run), intersect=True).systems
        found = {system.summary.architecture: system.summary for system in systems} | found
    return found


def _asked(summaries: Mapping[str, Summary]) -> str:
    """`100 questions (68 for rewoo-json, plan-execute)`"""
    counts: dict[int, list[str]] = {}
    for architecture, summary in summaries.items():
        counts.setdefault(summary.total, []).append(architecture)
    most, *fewer = sorted(counts, reverse=True)
    others = "; ".join(f"{count} for {', '.join(counts[count])}" for count in fewer)
    return f"{most} questions{f' ({others})' if others else ''}"


def _cells(summary: Summary | None) -> str:
    if summary is None:
        return " | | "
    em = summary.exact_match
    return f"{em.mean:.2f} [{em.low:.2f}, {em.high:.2f}] | {summary.total_tokens:,.0f} | {summary.llm_calls:.2f}"


def _ratios(run: Path) -> str:
    """What ReAct takes beside ReWOO, and with cached input at a tenth of its price."""
    rows = load(run)
    full, priced = (_ratio(compare(its, intersect=True)) for its in (rows, cached_input_priced(rows)))
    return f"{full} times ReWOO's tokens, {priced}"


def _ratio(comparison: Comparison) -> str:
    (pair,) = [pair for pair in comparison.pairs if (pair.a, pair.b) == ("rewoo", "react")]
    ratio = pair["total_tokens"].interval
    return f"{ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    options = parser.parse_args(arguments)
    before = options.readme.read_text(encoding="utf-8")
    made = table(ROOT / "results" / "models")
    after, places = _PLACE.subn(lambda place: f"{place[1]}{made}\n{place[2]}", before)
    if places != 1:
        parser.error(f"{options.readme} has {places} places for the table, not one")
    if options.check:
        return int(before != after)
    options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
