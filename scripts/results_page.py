"""Writes results/index.html: the published runs on one page, each with its table, its comparisons and its figures.

python scripts/results_page.py            # writes the page
python scripts/results_page.py --check    # exit code 1 where the page isn't the one of the committed runs
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rewoo_bench.report.overview import claim_lines, overview
from rewoo_bench.report.write import BUNDLE
from rewoo_bench.runs.folder import QUESTIONS_FILE, load, manifests

ROOT = Path(__file__).parents[1]
PAGE = "index.html"
STUDY = "models"


def page(results: Path) -> str:
    """The page of the runs in `results/models`."""
    runs = [file.parent for file in sorted((results / STUDY).rglob(QUESTIONS_FILE))]
    style = (BUNDLE / "report.css").read_text(encoding="utf-8")
    names = [_name(results, run) for run in runs]
    contents = "".join(f'<li><a href="#{escape(name)}">{escape(name)}</a></li>' for name in names)
    oracle = [file.parent for file in sorted((results / "oracle").rglob(QUESTIONS_FILE))]
    sections = "".join([_claims([*runs, *oracle]), *(_section(results, run) for run in runs)])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rewoo_bench: published runs</title>
<style>{style}
section{{border-top:1px solid var(--line);margin-top:1.5rem}}</style>
</head>
<body>
<main>
<h1>Published runs</h1>
<p>Means for each architecture with 95% intervals, and paired comparisons with the first architecture. How to read the
tables: README.md in this folder. Each run's page with its questions: <code>rewoo-bench report FOLDER</code>.</p>
<nav aria-label="Contents"><ul><li><a href="#claims">Published claims</a></li>{contents}</ul></nav>
{sections}</main>
</body>
</html>
"""


def _claims(runs: Sequence[Path]) -> str:
    """A line for each claim that the runs can test; how it is measured and every run's figure unfold below it."""
    lines = []
    for claim in claim_lines(runs):
        ours = claim["measured"] and f", ours {claim['measured']}"
        claimed = claim["claimed"] and f": claimed {claim['claimed']}"
        facts = [claim["why"], claim["note"], *claim["cited"], *(", ".join(figure) for figure in claim["figures"])]
        lines.append(
            f"<details><summary>{escape(claim['about'])}: {escape(claim['says'])} "
            f"<small>({escape(claim['source'])})</small>{escape(claimed)}{escape(ours)}: "
            f"<strong>{escape(claim['verdict'])}</strong></summary>{_list('', list(filter(None, facts)))}</details>\n"
        )
    if not lines:
        return ""
    return f'<section id="claims">\n<h2>Published claims</h2>\n{"".join(lines)}</section>\n'


def _section(results: Path, run: Path) -> str:
    facts, name = overview(load(run), manifests(run), [run]), _name(results, run)
    described = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in facts["facts"] if value
    )
    return (
        f'<section id="{escape(name)}">\n<h2>{escape(name)}</h2>\n<p>{escape(facts["title"])}</p>\n'
        f'<dl class="facts">{described}</dl>\n{_table(facts["table"])}'
        f"{_list('sentences', [each['text'] for each in facts['sentences'] if each['text']])}"
        f"{_list('threats', [*facts['notes'], *facts['threats']])}"
        f'<div class="figures">{"".join(_figures(results, run, facts["title"]))}</div>\n</section>\n'
    )


def _name(results: Path, run: Path) -> str:
    return run.relative_to(results / STUDY).as_posix()


def _table(table: Mapping[str, Any] | None) -> str:
    if table is None:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table["head"])
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in values)}</tr>\n'
        for name, *values in table["rows"]
    )
    cells = f"<thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody>"
    return f'<div class="scroll"><table class="means">{cells}</table></div>\n'


def _list(kind: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>\n' if lines else ""


def _figures(results: Path, run: Path, title: str) -> Iterator[str]:
    """The pictures next to the run's folder whose names are the folder's and the kind of the figure."""
    for picture in sorted(run.parent.glob(f"{run.name}-*.png")):
        kind = picture.stem.removeprefix(f"{run.name}-")
        if "-" in kind:  # of a run with a longer name
            continue
        source = escape(picture.relative_to(results).as_posix())
        yield f'<figure><img loading="lazy" src="{source}" alt="{escape(kind)}: {escape(title)}"></figure>\n'


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed page, write nothing")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args(arguments)
    made, path = page(options.results), options.results / PAGE
    if options.check:
        current = path.is_file() and path.read_text(encoding="utf-8") == made
        print(f"{path}: {'as the runs are' if current else 'not as the runs are; run scripts/results_page.py'}")
        return 0 if current else 1
    path.write_text(made, encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
