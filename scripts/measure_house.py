"""Counts that say how large the project is for whoever keeps it.

    python scripts/measure_house.py words    # words of hand-written Markdown, by file, the longest first

A word is what `wc -w` counts, code blocks included. Left out is what a script writes: whole files, parts between
`<!-- NAME: SCRIPT -->` and `<!-- end -->`, blocks below `<!-- example: NAME -->`, and the tables of two pages whose
sentences a person wrote.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
GENERATED = re.compile(r"results/models/[^/]+\.md|results/oracle/(tables|captions)\.md|tests/golden/.*")
GENERATED_TABLES = ("results/coverage.md", "results/gate.md")
_PART = re.compile(r"<!-- example: \w+ -->\n```.*?```|<!-- [\w ]+: .*?<!-- end -->", re.DOTALL)
_ROW = re.compile(r"^\|.*$", re.MULTILINE)


def hand_written(page: str, text: str) -> str:
    """The part of a page that no script writes."""
    if GENERATED.fullmatch(page):
        return ""
    text = _PART.sub("", text)
    return _ROW.sub("", text) if page in GENERATED_TABLES else text


def words(root: Path = ROOT) -> dict[str, int]:
    """Words of hand-written Markdown, by page."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True).stdout
    counted = {page: len(hand_written(page, (root / page).read_text("utf-8")).split()) for page in listed.split()}
    return {page: count for page, count in counted.items() if count}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words"])
    parser.parse_args(arguments)
    counted = words()
    for page, count in sorted(counted.items(), key=lambda each: -each[1]):
        print(f"{count:7,} {page}")
    print(f"{sum(counted.values()):7,} in {len(counted)} files")


if __name__ == "__main__":
    main()
