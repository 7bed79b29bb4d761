"""Figures of runs, drawn from their parquet files, run.json in hand; never from a journal.

    from rewoo_bench.plots.draw import draw, read, save
    for name, picture in draw(read(["results/local/my-run"]), only=["ratio", "parts"]):
        save(name, picture, Path("figures"), ["png", "svg"])

Each figure is a function in a file of its own, from `Measured` to `Picture`; `FIGURES` names them. One
that the rows have no data for raises `NothingToDraw`. The same rows give the same bytes on one machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.errors import NothingToDraw, UsageError, unknown
from rewoo_bench.plots.conditions import failure, tools
from rewoo_bench.plots.data import Measured, read
from rewoo_bench.plots.latency import latency
from rewoo_bench.plots.paper import paper
from rewoo_bench.plots.pareto import pareto
from rewoo_bench.plots.picture import Options, Picture
from rewoo_bench.plots.prompt_parts import parts
from rewoo_bench.plots.ratio import ratio
from rewoo_bench.plots.steps import steps
from rewoo_bench.plots.style import styled

__all__ = ["FIGURES", "Measured", "Options", "Picture", "draw", "read", "save", "write_captions"]

CAPTIONS = "captions.md"
FORMATS = ("png", "svg")
# What would tell when and by what a file was made: it would differ from one run to the next.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a figure is made, and of which rows."""

    draw: Callable[[Measured, Options], Picture]
    faults: bool = False
    """Whether runs with failing tools belong in it."""
    by_dataset: bool = True
    """One for each data set and model, or for each model."""


FIGURES = {
    "ratio": Drawing(ratio),
    "steps": Drawing(steps),
    "parts": Drawing(parts),
    "pareto": Drawing(pareto),
    "latency": Drawing(latency),
    "failure": Drawing(failure, faults=True),
    "tools": Drawing(tools),
    "paper": Drawing(paper, by_dataset=False),
}


def draw(
    measured: Measured,
    *,
    only: Sequence[str] = (),
    options: Options | None = None,
    on_skip: Callable[[str, str], None] = lambda name, reason: None,
) -> Iterator[tuple[str, Picture]]:
    """The figures (those in `only`, or all) with their names, one for each data set and model.

    `on_skip` is told of those that aren't drawn, and why. Raises `UsageError` for a name there isn't.
    """
    for name in only:
        if name not in FIGURES:
            raise UsageError(unknown("figure", name, FIGURES))
    for name in only or FIGURES:
        for own_name, part in _parts(name, FIGURES[name], measured):
            with styled():
                try:
                    yield own_name, FIGURES[name].draw(_counted(part), options or Options())
                except NothingToDraw as reason:
                    on_skip(own_name, str(reason))


def _parts(name: str, drawing: Drawing, measured: Measured) -> list[tuple[str, Measured]]:
    """What a figure is drawn of, each with a name: `ratio`, or `ratio-hotpotqa-small` where there are several."""
    if not drawing.faults:
        measured = measured.without_faults()
    found = list(measured.split(by_dataset=drawing.by_dataset))
    if len(found) < 2:
        return [(name, part) for part in found]
    models = len({part.model for part in found}) > 1
    datasets = drawing.by_dataset and len({part.dataset for part in found}) > 1
    return [
        ("-".join([name, *[_slug(part.dataset)] * datasets, *[_slug(part.model)] * models]), part) for part in found
    ]


def _counted(part: Measured) -> Measured:
    """What of it can be drawn. Raises `NothingToDraw`."""
    counted = part.counted()
    if not len(counted.rows):
        raise NothingToDraw(
            f"needs questions that were answered; the infrastructure failed all {len(part.rows):,} rows"
        )
    return counted


def _slug(text: str) -> str:
    """A name as a part of a file's name: `local/smollm2-135m` -> `local-smollm2-135m`."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def save(name: str, picture: Picture, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Writes the figure in each format; returns the files. Raises `UsageError` where the folder can't be written to."""
    files = [folder / f"{name}.{form}" for form in formats]
    with styled(), _writing(folder):
        for path, form in zip(files, formats, strict=True):
            picture.figure.savefig(path, format=form, metadata=_METADATA[form])
    return files


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UsageError(f"can't write figures to {str(folder)!r}: {error.strerror}; give another --out") from None


def write_captions(folder: Path, captions: dict[str, str]) -> Path:
    """captions.md, a section a figure; those of figures that were drawn before and are still there stay."""
    path = folder / CAPTIONS
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = dict(re.findall(r"^## (\S+)\n\n(.+?)\n*(?=^## |\Z)", before, flags=re.MULTILINE | re.DOTALL))
    there = {name: text for name, text in found.items() if any(folder.glob(f"{name}.???"))}
    texts = {**there, **captions}
    sections = [f"## {name}\n\n{texts[name]}" for name in sorted(texts)]
    with _writing(folder):
        path.write_text("\n\n".join(["# Figures", *sections]) + "\n", "utf-8")
    return path
