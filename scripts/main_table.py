"""The table of the README, from what is published in results/.

python scripts/main_table.py            # writes it between the README's two marks
python scripts/main_table.py --check    # exit code 1 where the README has another
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rewoo_bench.analysis.law import Design, Estimate, estimate
from rewoo_bench.analysis.verdict import two_digits
from rewoo_bench.study.declaration import read_study
from rewoo_bench.study.outcomes import read_results
from rewoo_bench.text.tables import markdown_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
_MARKS = re.compile(r"(<!-- main table: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)
SHOWN = ("rewoo-json", "rewoo-code", "react-native")
LONG, SHORT = 1_500, 20
"""Tokens of a result."""


def cells() -> list[list[str]]:
    """What is compared, of a loop, a plan and a plan as a program; costs are multiples of the plan's."""
    study = read_results(read_study(RESULTS / "study" / "study.toml"), RESULTS / "study" / "runs")
    measured = study.figures["tokens/hotpotqa/qwen"].estimate
    agents = _rows("agents/agents.csv", tasks="all")
    attacks = _rows("control/control.csv", suite="all")
    done = [_percent(agents[name], "done", "n") for name in SHOWN]
    new = [_percent(attacks[name], "new_calls", "cases") for name in SHOWN]
    costs = {
        "dollars, plan = 1: 4 calls in sequence, long results to read, prompt cache": estimate(
            "openai", depth=4, page=LONG
        ),
        "… without a cache": estimate("none", depth=4, page=LONG),
        "… short results that go on unread, cache or not": estimate("openai", depth=4, page=SHORT, reads=False),
    }
    return [
        ["", "plan, rewoo-json", "program, rewoo-code?max_exemplars=0", "loop, react-native"],
        *([words, "1", _times(found, "code"), _times(found, "loop")] for words, found in costs.items()),
        ["tokens, plan = 1: the paper's prompts, HotpotQA, small model", "1", "not asked", two_digits(measured)],
        ["tasks of AgentDojo that the design can do", *done],
        ["attacks in a result that add a call, if obeyed", *new],
    ]


def _times(found: Estimate, design: Design) -> str:
    return two_digits(found.costs[design].usd / found.costs["plan"].usd)


def _rows(file: str, **where: str) -> dict[str, dict[str, str]]:
    """The rows of a published table by architecture."""
    with (RESULTS / file).open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    return {row["architecture"]: row for row in rows if all(row[name] == value for name, value in where.items())}


def _percent(row: dict[str, str], part: str, whole: str) -> str:
    return f"{100 * int(row[part]) / int(row[whole]):.0f}%"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    options = parser.parse_args(arguments)
    before = options.readme.read_text(encoding="utf-8")
    if (count := len(_MARKS.findall(before))) != 1:
        parser.error(f"{options.readme} has {count} places for the table, not one")
    table = "\n".join(markdown_table(cells()))
    after = _MARKS.sub(lambda marks: f"{marks[1]}{table}\n{marks[2]}", before)
    if options.check:
        return int(before != after)
    options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
