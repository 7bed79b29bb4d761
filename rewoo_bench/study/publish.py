"""A study's runs -> its page, tables and figures.

    publish_study(study, Path("results/local/study"), Path("results/study"))

The page is `page.md` beside the study's file with its places filled in, and `page-NAME.md` makes NAME.md. Without
page.md it has all tables and figures; so where a model of the file was asked nothing, or another one in its place: the
words of page.md are of it.

    {{main-hotpotqa-qwen/rewoo/exact_match}}    a figure with its interval; figures.csv has all names
    {{about NAME}}                              the same in two digits, for a sentence
    {{n NAME}}, {{verdict NAME}}                its number of questions; what an outcome came to
    {{reached NAME}}                            how many of an outcome's declared questions were asked: `44 of 375`
    {{says main-hotpotqa-qwen}}                 what a run comes to, in the sentences of `rewoo-bench compare`
    {{range map,pages openai}}                  the ends of the ratios of some cells under a price, whatever stands
                                                before each prompt; react / rewoo, or others: {{range map none A / B}}
    {{asking 50 main}}                          what so many questions of some cells take
    {{model NAME}}                              the model that has this name in the study
    {{law openai depth=4 page=1500}}            the loop's dollars by the plan's at a price, by the law of plan and loop
    {{tie openai page=1500}}                    look-ups in sequence from which on its plan is cheaper
    {{models}}, {{pictures}}                    all that were asked; the figures that there is data for
    {{table main}}                              a table: outcomes, main, all, ratios, trials, prices, claims,
                                                decided (of the claims), reached
    {{table means trials}}                      the means of some cells
    {{table ratios steps,form}}                 ratios of two architectures of some cells, beside the main run's

A place that can't be filled says so while runs are missing. The same runs give the same files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_it import MarkdownIt

from rewoo_bench.analysis.compare import compare_run
from rewoo_bench.analysis.law import Estimate, estimate
from rewoo_bench.analysis.prices import EXAMPLE, pricing_of
from rewoo_bench.analysis.verdict import two_digits
from rewoo_bench.config.names import LOCAL, file_name
from rewoo_bench.config.price_sheets import NO_CACHE, named_tariff
from rewoo_bench.errors import SpecError, UsageError
from rewoo_bench.report.plots.draw import save_figures
from rewoo_bench.report.write import BUNDLE, write_page
from rewoo_bench.runs.folder import load_table, manifests
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.publish import publish
from rewoo_bench.runs.rows import Rows, estimated
from rewoo_bench.study import tables
from rewoo_bench.study.declaration import Study
from rewoo_bench.study.drawings import drawings, drawn
from rewoo_bench.study.outcomes import (
    CONTEXTS,
    ORACLES,
    PAIR,
    StudyResults,
    loops_and_plans,
    main_cells,
    read_results,
    with_context,
)
from rewoo_bench.study.rounds import asked_of
from rewoo_bench.system.files import replaced
from rewoo_bench.text.tables import csv_text, markdown_table
from rewoo_bench.text.words import counted

PAGE = "page.md"
NOT_KNOWN = "(not known)"
"""What stands in a place that can't be filled while runs of the study are missing."""
NO_ROWS = "No run has these figures yet."
_ASKED = ("llm_calls", "total_tokens")
_MADE = "<!-- made by rewoo-bench study publish -->"
_PLACE = re.compile(r"\{\{([^{}]+)\}\}")
_DEFAULT = """# {{title}}

{{question}}

Asked: {{models}}.

{{table outcomes}}

{{table all}}

{{pictures}}

{{table ratios}}

{{table trials}}

{{table prices}}

{{table claims}}

{{table reached}}

Intervals are of 95%. `?`: widened, since few questions make the spread and a rare event may be missing; such an outcome
is undecided. Dollars are what the counted tokens would cost at the named prices and cache rules. All figures are in
[figures.csv](figures.csv).
"""


def publish_study(study: Study, folder: Path, out: Path, *, with_runs: bool = True) -> list[Path]:
    """Writes README.md, index.html, tables, figures, and copies of the runs without texts; returns the files.

    Cells with `report` also get a page with every question and its texts.

    Raises `SpecError` for a place of the page that names nothing, and `DataError` without any run.
    """
    results = read_results(study, folder)
    copies = [out / "runs" / each.cell.name for each in results.cells] if with_runs else []
    _check_replaceable(study, out, folder, copies)
    page = page_of(results, folder)
    written: list[Path] = []
    reports = [each.cell.name for each in results.cells if each.cell.report and with_runs]
    texts = {
        "README.md": page,
        "index.html": _site(results, page, reports),
        "figures.csv": f"{csv_text(tables.figures_table(results))}\n",
        "outcomes.csv": f"{csv_text(tables.outcomes_table(results))}\n",
        **further_pages(results, folder),
    }
    for name, text in texts.items():
        out.mkdir(parents=True, exist_ok=True)  # a study of which nothing can be drawn has no folder yet
        with replaced(out / name, follows=False) as file:
            file.write(text.encode())
        written.append(out / name)
    written += save_figures(drawings(results), out, ["png"])
    for copy in copies:
        for old in copy.iterdir() if (copy / MANIFEST).exists() else ():  # of an earlier publication
            old.unlink()
        publish(folder / copy.name, copy)
        written.append(copy)
        if copy.name in reports:
            with TemporaryDirectory() as work:
                publish(folder / copy.name, with_texts := Path(work, copy.name), texts=True)
                write_page([with_texts], copy / "report.html", figures=False)
    return written


def _title(results: StudyResults) -> str:
    return results.study.spec.study.title or results.study.file.stem


def _check_replaceable(study: Study, out: Path, folder: Path, copies: Sequence[Path]) -> None:
    """Raises `UsageError` where anything but an earlier publication, or one of more questions, would be replaced."""
    page = out / "README.md"
    if page.is_file() and _MADE not in page.read_text(encoding="utf-8", errors="replace"):
        raise UsageError(f"{str(page)!r} isn't the page of a study: give another folder with --to")
    for copy in copies:
        if (copy / MANIFEST).exists() and read_manifest(copy).published is None:
            raise UsageError(f"{str(copy)!r} is a run, and no published copy of one: give another folder with --to")
        if copy.resolve() == (folder / copy.name).resolve():
            raise UsageError(f"{str(copy)!r} is a run that is read: give another folder with --to, or --without-runs")
    for name in (cell.name for cell in study.cells):
        before, now = asked_of(out / "runs" / name), asked_of(folder / name)
        if before > now:
            said = f"{str(out)!r} has {counted(before, 'question')} of {name}, and {str(folder)!r} has {now:,}"
            raise UsageError(f"{said}: give another folder with --to, or delete that one")


def page_of(results: StudyResults, folder: Path) -> str:
    """The page of a study. Raises `SpecError` for a place that names nothing."""
    path = results.study.file.with_name(PAGE)
    others = _replaced_models(results)
    if path.is_file() and not others:
        page = filled(results, folder, path.read_text(encoding="utf-8"), path)
    else:  # nobody asked for a table that has no rows
        page = filled(results, folder, _DEFAULT, path).replace(f"{NO_ROWS}\n\n", "")
        if path.is_file():
            page += f"\n{PAGE} isn't used: its words are of the models that the file has for {', '.join(others)}.\n"
    if runs := [each.cell.name for each in results.cells if not each.is_oracle and estimated(each.rows)]:
        page += f"\nTokens are estimated, in part or all, in {', '.join(runs)}: their usage wasn't reported.\n"
    return f"{_MADE}\n\n{page.rstrip()}\n"


def further_pages(results: StudyResults, folder: Path) -> dict[str, str]:
    """The pages of `page-NAME.md` by their file names. Raises `SpecError` for a place that names nothing."""
    templates = sorted(results.study.file.parent.glob("page-*.md")) if not _replaced_models(results) else []
    texts = (filled(results, folder, path.read_text(encoding="utf-8"), path) for path in templates)
    names = (path.name.removeprefix("page-") for path in templates)
    return {name: f"{_MADE}\n\n{text.rstrip()}\n" for name, text in zip(names, texts, strict=True)}


def _replaced_models(results: StudyResults) -> list[str]:
    """The models of the file in whose place another was asked, or none."""
    declared = results.study.declared_models.items()
    return [name for name, model in declared if _asked_as(results, name) != _shown(model)]


def _asked_as(results: StudyResults, name: str) -> str:
    """The model that has a name in the study, as its runs asked it; empty where there are none."""
    asked = {str(each.manifest.options.get("model")) for each in results.cells if each.cell.model == name}
    return " and ".join(map(_shown, sorted(asked)))


def _models(results: StudyResults) -> str:
    """All that were asked, for the reader of a page without words."""
    shown = []
    for name in dict.fromkeys(each.cell.model for each in results.cells):
        asked = _asked_as(results, name)
        is_oracle = any(each.is_oracle for each in results.cells if each.cell.model == name)
        which = "" if asked == name else f", which is `{asked}`"
        shown.append(f"`{name}`{which}{f' ({ORACLES})' if is_oracle else ''}")
    return "; ".join(shown)


def _shown(model: str) -> str:
    """`qwen2.5-coder-1.5b` of `local//models/qwen2.5-coder-1.5b.gguf`."""
    return file_name(model).removeprefix(LOCAL).removesuffix(".gguf")


def filled(results: StudyResults, folder: Path, text: str, path: Path) -> str:
    """A text with its places filled in; `path` is where it stands. Raises `SpecError`."""
    about = results.study.spec.study
    runs = {each.name: folder / each.name for each in (result.cell for result in results.cells)}
    outcomes = {each.name: each for each in results.outcomes}
    pictures = "\n\n".join(f"![{each}]({each}.png)" for each in drawn(results)) or NO_ROWS
    kinds: Mapping[str, Callable[[str], str]] = {
        "title": lambda of: _title(results),
        "question": lambda of: about.question,
        "table": lambda of: _table(results, list(runs.values()), of),
        "verdict": lambda of: outcomes[of].verdict_shown,
        "reached": lambda of: tables.reached_n(outcomes[of]),
        "says": lambda of: _says(runs[of]),
        "about": lambda of: two_digits(results.figures[of].estimate),
        "n": lambda of: f"{results.figures[of].n:,}",
        "asking": lambda of: _asking(results, *of.partition(" ")[::2]),
        "range": lambda of: _range(results, *of.partition(" ")[::2]),
        "model": lambda of: _asked_as(results, of) or _shown(results.study.declared_models[of]),
        "law": lambda of: two_digits(_by_law(of).ratio),
        "tie": lambda of: two_digits(_by_law(of).tie or math.nan),
        "models": lambda of: _models(results),
        "pictures": lambda of: pictures,
    }

    def value(place: re.Match[str]) -> str:
        name = place.group(1).strip()
        if name in results.figures:
            return results.figures[name].text
        kind, _, of = name.partition(" ")
        with suppress(KeyError):
            if made := kinds[kind](of):
                return made
        if len(results.cells) < len(results.study.cells):
            return NOT_KNOWN
        near = get_close_matches(name, [*results.figures, *(f"verdict {each}" for each in outcomes)], n=3, cutoff=0.7)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "figures.csv has all names"
        raise SpecError(f"{path}: {{{{{name}}}}}: unknown figure; {hint}")

    return _PLACE.sub(value, text)


def _by_law(of: str) -> Estimate:
    """`openai depth=4 page=1500 reads=0`."""
    price, *shape = of.split()
    return estimate(price, **{name: json.loads(value) for name, _, value in (each.partition("=") for each in shape)})


def _table(results: StudyResults, runs: Sequence[Path], of: str) -> str:
    """A table as Markdown. Raises `KeyError` where there is none by this name."""
    _, _, cells = of.partition(" ")
    made: dict[str, Callable[[], list[list[str]]]] = {
        "outcomes": lambda: tables.outcomes(results),
        "main": lambda: tables.means(results, tables.of_cells(results, main_cells(results.study))),
        "all": lambda: tables.means(results, results.cells, (EXAMPLE,)),
        "ratios": lambda: tables.ratios(results, results.cells),
        "prices": lambda: tables.prices(results),
        "trials": lambda: tables.trials(results),
        "claims": lambda: tables.claims(runs),
        "decided": lambda: tables.claims(runs, "reproduced", "contradicted"),
        "reached": lambda: tables.reached(results),
    }
    if cells and {*cells.split(",")} <= {cell.cells for cell in results.study.cells}:
        chosen = tables.of_cells(results, cells)
        made[f"means {cells}"] = lambda: tables.means(results, chosen, (EXAMPLE,))
        made[f"ratios {cells}"] = lambda: tables.ratios(results, chosen)
    rows = made[of]()
    return "\n".join(markdown_table(rows)) if len(rows) > 1 else NO_ROWS


def _says(run: Path) -> str:
    """The sentences of a run: those of `run` and `compare`."""
    rows = Rows(load_table(run))
    compared = compare_run(rows, pricing_of([run], rows, manifests(run)))
    return " ".join(compared.verdicts if compared else ())


def _asking(results: StudyResults, questions: str, cells: str) -> str:
    """What so many questions of each of some runs take, by the means of those that they have."""
    names = [f"{each.cell.name}/{name}" for each in tables.of_cells(results, cells) for name in each.names]
    if not questions.isdecimal() or not names:
        return ""
    figures = [[results.figures.get(f"{name}/{what}") for name in names] for what in (*_ASKED, NO_CACHE)]
    known = [[each.estimate for each in own if each is not None] for own in figures]
    if any(len(own) < len(names) for own in known):  # of one question there is no interval
        return NOT_KNOWN
    calls, tokens, usd = (int(questions) * sum(own) for own in known)
    prices = f"{named_tariff(NO_CACHE).model}'s prices without a cache"
    return f"{calls:,.0f} model calls, {tokens / 1e6:.2f} million tokens and ${usd / 1000:.2f} at {prices}"


def _range(results: StudyResults, cells: str, price: str) -> str:
    """The least and the greatest ratio of dollars over the runs of some cells under a price: `0.75 to 1.33`."""
    price, _, given = price.partition(" ")
    values = []
    for each in tables.of_cells(results, cells):
        pair = given or " / ".join(next(iter(loops_and_plans(each.names)), PAIR))
        for context in (0, *CONTEXTS):
            figure = results.figures.get(f"{each.cell.name}/{pair}/{with_context(price, context)}")
            values += [figure.estimate] if figure is not None else []
    return f"{min(values):.2f} to {max(values):.2f}" if values else ""


# The page for a browser: its text, then each run with its means and a way to its questions.


def _site(results: StudyResults, page: str, with_questions: Collection[str]) -> str:
    """An HTML page; `page` is Markdown, and `with_questions` are the runs that have a page of their own."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    style = (BUNDLE / "report.css").read_text(encoding="utf-8")
    sections = ""
    for each in results.cells:
        name, shown = each.cell.name, f"{each.cell.cells}: {each.cell.title}, n = {each.n:,}"
        table = markdown.render("\n".join(markdown_table(tables.means(results, [each]))))
        sections += f'<details id="{escape(name)}"><summary>{escape(shown)}</summary>\n'
        sections += f"{table}<p>{_links(name, with_questions)}</p></details>\n"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self'; style-src 'unsafe-inline'">
<title>{escape(_title(results))}</title>
<style>{style}
main img{{max-width:100%}} main table{{display:block;overflow-x:auto}} details{{margin:.4rem 0}}</style>
</head>
<body>
<main>
{markdown.render(page.removeprefix(_MADE).lstrip())}
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
