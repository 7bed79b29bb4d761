"""The page of a study for a browser: its text, then each run with its means and a way to its questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from markdown_it import MarkdownIt

from rewoo_bench.report.write import BUNDLE


def site(title: str, page: str, runs: Sequence[tuple[str, str, Sequence[str]]], with_questions: Collection[str]) -> str:
    """An HTML page. `page` is Markdown, `runs` have a folder's name, a title and the lines of a table in Markdown."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    style = (BUNDLE / "report.css").read_text(encoding="utf-8")
    sections = "".join(
        f'<details id="{escape(name)}"><summary>{escape(shown)}</summary>\n'
        f"{markdown.render(chr(10).join(table))}<p>{_links(name, with_questions)}</p></details>\n"
        for name, shown, table in runs
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{style}
main img{{max-width:100%}} main table{{display:block;overflow-x:auto}} details{{margin:.4rem 0}}</style>
</head>
<body>
<main>
{markdown.render(page)}
<h2>Every run</h2>
{sections}</main>
</body>
</html>
"""


def _links(name: str, with_questions: Collection[str]) -> str:
    run = f"runs/{escape(name)}"
    questions = f'<a href="{run}/report.html">every question side by side</a>' if name in with_questions else ""
    return " · ".join(
        filter(None, [questions, f'<a href="{run}/run.json">settings</a>', f"tables: <code>{run}</code>"])
    )
