"""Figures of runs, drawn from their parquet files and run.json.

    from rewoo_bench.report.plots.data import read
    from rewoo_bench.report.plots.draw import draw, save_figures
    pictures = draw(read(["results/local/my-run"]), only=["ratio", "parts"])
    files = list(save_figures(pictures, Path("figures")))

Each figure is a function in its own file, from `PlotData` to `Picture`; `FIGURES` names them. A figure without data
raises `NothingToDraw`. The same rows give the same bytes on one machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rewoo_bench.analysis.pairs import way_round
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots.conditions import failure, latency
from rewoo_bench.report.plots.data import PlotData
from rewoo_bench.report.plots.ratios import paper, pareto, ratio, reach
from rewoo_bench.report.plots.steps import parts, steps
from rewoo_bench.report.plots.style import Picture, styled
from rewoo_bench.system.files import replaced
from rewoo_bench.text.argument_checks import check_known

PICTURE_FORMATS = ("png", "svg")
# Metadata that would differ between two drawings of the same rows.
PICTURE_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


FIGURES: dict[str, Callable[[PlotData, tuple[str, str]], Picture]] = {
    "ratio": ratio,
    "steps": steps,
    "parts": parts,
    "pareto": pareto,
    "latency": latency,
    "reach": reach,
    "failure": failure,
    "paper": paper,
}


def draw(
    data: PlotData,
    *,
    only: Sequence[str] = (),
    pair: tuple[str, str] = ("react", "rewoo"),
    on_skip: Callable[[str, str], object] = lambda name, reason: None,
) -> Iterator[tuple[str, Picture]]:
    """The figures (those in `only`, or all) with their names, one for each data set and model.

    `pair` are the architectures that `ratio` compares, the loop by the plan. `on_skip` is called with the name of a
    figure that can't be drawn and the reason. Raises `UsageError` for an unknown name.
    """
    check_known("figure", only, FIGURES)
    pair = way_round(*reversed(pair))[::-1]
    for name in only or FIGURES:
        parts = list(data.split(faults=name == "failure", by_dataset=name != "paper"))
        models = len({part.model for part in parts}) > 1
        datasets = name != "paper" and len({part.dataset for part in parts}) > 1
        for part in parts:  # `ratio`, or `ratio-hotpotqa-small` where there are several
            own_name = "-".join([name, *[slug(part.dataset)] * datasets, *[slug(part.model)] * models])
            with styled():
                try:
                    yield own_name, FIGURES[name](part.counted(), pair)
                except NothingToDraw as reason:
                    on_skip(own_name, str(reason))


def slug(text: str) -> str:
    """A name as part of a file name: `local/smollm2-135m` -> `local-smollm2-135m`."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def save_figures(
    pictures: Iterable[tuple[str, Picture]], folder: Path, formats: Sequence[str] = PICTURE_FORMATS
) -> Iterator[Path]:
    """Writes figures by name, and their captions into captions.md, a section each; yields the files.

    Without a figure, nothing is written.
    """
    captions, path = {}, folder / "captions.md"
    for name, picture in pictures:
        folder.mkdir(parents=True, exist_ok=True)
        for form in formats:
            file = folder / f"{name}.{form}"
            with styled(), replaced(file, follows=False) as opened:
                picture.figure.savefig(opened, format=form, metadata=PICTURE_METADATA[form])
            yield file
        captions[name] = picture.markdown
    if captions:
        written = [f"## {name}\n\n{captions[name]}" for name in sorted(captions)]
        with replaced(path, follows=False) as opened:
            opened.write(("\n\n".join(["# Figures", *written]) + "\n").encode())
        yield path
