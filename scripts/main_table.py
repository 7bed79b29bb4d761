"""The first screen of the README: the study's template `first-screen.md`, filled in from its published runs.

python scripts/main_table.py            # writes it between the README's two marks
python scripts/main_table.py --check    # exit code 1 where the README has another
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rewoo_bench.study.declaration import read_study
from rewoo_bench.study.outcomes import read_results
from rewoo_bench.study.publish import filled

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "results" / "study"
_MARKS = re.compile(r"(<!-- main table: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


@cache
def first_screen() -> str:
    template = STUDY / "first-screen.md"
    results = read_results(read_study(STUDY / "study.toml"), STUDY / "runs")
    return filled(results, STUDY / "runs", template.read_text(encoding="utf-8"), template)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    options = parser.parse_args(arguments)
    before = options.readme.read_text(encoding="utf-8")
    if (count := len(_MARKS.findall(before))) != 1:
        parser.error(f"{options.readme} has {count} places for the table, not one")
    after = _MARKS.sub(lambda marks: f"{marks[1]}{first_screen()}{marks[2]}", before)
    if options.check:
        return int(before != after)
    options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
