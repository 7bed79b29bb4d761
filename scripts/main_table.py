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
from collections.abc import Sequence
from pathlib import Path

from rewoo_bench import compare, load
from rewoo_bench.comparison import Comparison, cached_input_priced
from rewoo_bench.results import manifests
from rewoo_bench.summary import Summary

ROOT = Path(__file__).parents[1]
RUNS = {"HotpotQA": "hotpotqa-qwen-1.5b-eight", "TriviaQA": "triviaqa-qwen-1.5b"}
_PLACE = re.compile(r"(<!-- main table: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


def table(results: Path) -> str:
    """The table as Markdown, and a line on what ReAct takes beside ReWOO."""
    there = {name: results / run for name, run in RUNS.items() if (results / run).is_dir()}
    rows = {name: load(run) for name, run in there.items()}
    found = {name: compare(its, manifests=manifests(there[name]), intersect=True) for name, its in rows.items()}
    priced = {name: compare(cached_input_priced(its), intersect=True) for name, its in rows.items()}
    summaries = {name: {s.summary.architecture: s.summary for s in c.systems} for name, c in found.items()}
    heads = [f"{name}: exact match [95% CI] | tokens | calls" for name in found]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'---:|' * 3 * len(found)}"]
    for architecture in dict.fromkeys(name for its in summaries.values() for name in its):
        cells = [_cells(its.get(architecture)) for its in summaries.values()]
        lines.append(f"| {architecture} | {' | '.join(cells)} |")
    n = ", ".join(f"{c.systems[0].questions} questions of {name}" for name, c in found.items())
    ratios = [
        f"On {name} ReAct took {_ratio(c)} times ReWOO's tokens, {_ratio(priced[name])} with cached input at a tenth."
        for name, c in found.items()
    ]
    return "\n".join([*lines, "", f"{n}. {' '.join(ratios)}"])


def _cells(summary: Summary | None) -> str:
    if summary is None:
        return " | | "
    em = summary.exact_match
    return f"{em.mean:.2f} [{em.low:.2f}, {em.high:.2f}] | {summary.total_tokens:,.0f} | {summary.llm_calls:.2f}"


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
