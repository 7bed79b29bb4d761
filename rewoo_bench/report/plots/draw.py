"""Figures of runs, drawn from their parquet files and run.json.

    from rewoo_bench.report.plots.draw import draw, read, save_figures
    pictures = draw(read(["results/local/my-run"]), only=["ratio", "parts"])
    files = list(save_figures(pictures, Path("figures")))

Each figure is a function in its own file, from `PlotData` to `Picture`; `FIGURES` names them. A figure without data
raises `NothingToDraw`. The same rows give the same bytes on one machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.analysis.pairs import way_round
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots.conditions import failure, latency
from rewoo_bench.report.plots.data import PlotData, plot_data_of, read
from rewoo_bench.report.plots.ratios import paper, pareto, ratio
from rewoo_bench.report.plots.reach import reach
from rewoo_bench.report.plots.steps import parts, steps
from rewoo_bench.report.plots.style import Picture, styled
from rewoo_bench.system.files import replaced
from rewoo_bench.text.argument_checks import check_known

__all__ = [
    "FIGURES",
    "Picture",
    "PlotData",
    "draw",
    "plot_data_of",
    "read",
    "save_figures",
    "slug",
]

PICTURE_FORMATS = ("png", "svg")
# Metadata that would differ between two drawings of the same rows.
PICTURE_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, slots=True)
class Drawing:
    """The function of a figure, and the rows that it takes."""

    draw: Callable[[PlotData, tuple[str, str]], Picture]
    faults: bool = False
    """Whether it includes runs with failing tools."""
    by_dataset: bool = True
    """Whether it is drawn for each data set and model, or for each model."""


FIGURES = {
    "ratio": Drawing(ratio),
    "steps": Drawing(steps),
    "parts": Drawing(parts),
    "pareto": Drawing(pareto),
    "latency": Drawing(latency),
    "reach": Drawing(reach),
    "failure": Drawing(failure, faults=True),
    "paper": Drawing(paper, by_dataset=False),
}


def draw(
    data: PlotData,
    *,
    only: Sequence[str] = (),
    pair: tuple[str, str] = ("react", "rewoo"),
    on_skip: Callable[[str, str], None] | None = None,
) -> Iterator[tuple[str, Picture]]:
    """The figures (those in `only`, or all) with their names, one for each data set and model.

    `pair` are the architectures that `ratio` compares, the loop by the plan. `on_skip` is called with the name of a
    figure that can't be drawn and the reason. Without it, a figure in `only` that can't be drawn at all raises
    `NothingToDraw`. Raises `UsageError` for an unknown name.
    """
    check_known("figure", only, FIGURES)
    pair = way_round(*reversed(pair))[::-1]
    for name in only or FIGURES:
        reasons: dict[str, str] = {}
        drawing = FIGURES[name]
        parts = list(data.split(faults=drawing.faults, by_dataset=drawing.by_dataset))
        models = len({part.model for part in parts}) > 1
        datasets = drawing.by_dataset and len({part.dataset for part in parts}) > 1
        for part in parts:  # `ratio`, or `ratio-hotpotqa-small` where there are several
            own_name = "-".join([name, *[slug(part.dataset)] * datasets, *[slug(part.model)] * models])
            with styled():
                try:
                    yield own_name, drawing.draw(part.counted(), pair)
                except NothingToDraw as reason:
                    reasons[own_name] = str(reason)
                    if on_skip:
                        on_skip(own_name, str(reason))
        if on_skip is None and name in only and len(reasons) == len(parts):
            raise NothingToDraw("; ".join(f"{own_name}: {text}" for own_name, text in reasons.items()))


def slug(text: str) -> str:
    """A name as part of a file name: `local/smollm2-135m` -> `local-smollm2-135m`."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def save_figures(
    pictures: Iterable[tuple[str, Picture]], folder: Path, formats: Sequence[str] = PICTURE_FORMATS
) -> Iterator[Path]:
    """Writes figures by name, and their captions into captions.md, a section each; yields the files.

    Sections of earlier figures stay while their files exist. Without a figure, nothing is written.
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
        before = path.read_text(encoding="utf-8") if path.is_file() and not path.is_symlink() else ""
        sections = dict(re.findall(r"^## (\S+)\n\n(.+?)\n*(?=^## |\Z)", before, flags=re.MULTILINE | re.DOTALL))
        texts = {name: text for name, text in sections.items() if any(folder.glob(f"{name}.???"))} | captions
        written = [f"## {name}\n\n{texts[name]}" for name in sorted(texts)]
        with replaced(path, follows=False) as opened:
            opened.write(("\n\n".join(["# Figures", *written]) + "\n").encode())
        yield path
