"""The table on the README's first screen, made from a committed run.

    python scripts/main_table.py            # writes it between the README's two marks
    python scripts/main_table.py --check    # exit code 1 where the README has another

A row an architecture: exact match with its 95% interval, tokens and model calls per question. Below it, the token
ratio of ReAct to ReWOO, with cached input at its full price and at a tenth of it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rewoo_bench import compare, load
from rewoo_bench.analysis.compare import cached_input_priced
from rewoo_bench.analysis.comparison_render import Comparison
from rewoo_bench.analysis.summary import Summary
from rewoo_bench.runs.folder import manifests

ROOT = Path(__file__).parents[1]
RUN = "hotpotqa-qwen-1.5b-100"
ARCHITECTURES = ("rewoo", "react", "direct", "cot")
_MARKS = re.compile(r"(<!-- main table: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


def table(run: Path) -> str:
    """The table as Markdown, and a line with the token ratio."""
    rows = load(run)
    comparison = compare(rows, manifests=manifests(run), intersect=True)
    summaries = {system.summary.architecture: system.summary for system in comparison.systems}
    lines = ["| | exact match [95% CI] | tokens | model calls |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {_cells(summaries[name])} |" for name in ARCHITECTURES]
    full, priced = (_ratio(compare(its, intersect=True)) for its in (rows, cached_input_priced(rows)))
    name = f"[{run.name}](results/models/{run.name})"
    what = f"{summaries['rewoo'].total} HotpotQA questions, Qwen2.5-Coder-1.5B on a CPU (run {name})."
    ratio = f"ReAct took {full} times ReWOO's tokens; {priced} times with cached input at a tenth of its price."
    return "\n".join([*lines, "", f"{what} {ratio}"])


def _cells(summary: Summary) -> str:
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
    made = table(ROOT / "results" / "models" / RUN)
    after, count = _MARKS.subn(lambda marks: f"{marks[1]}{made}\n{marks[2]}", before)
    if count != 1:
        parser.error(f"{options.readme} has {count} places for the table, not one")
    if options.check:
        return int(before != after)
    options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
