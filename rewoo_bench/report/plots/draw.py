"""Figures of runs, drawn from their parquet files and run.json.

    from rewoo_bench.report.plots.draw import draw, read, save
    for name, picture in draw(read(["results/local/my-run"]), only=["ratio", "parts"]):
        save(name, picture, Path("figures"), ["png", "svg"])

Each figure is a function in its own file, from `PlotData` to `Picture`; `FIGURES` names them. A figure without data
raises `NothingToDraw`. The same rows give the same bytes on one machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.errors import NothingToDraw, UsageError, unknown
from rewoo_bench.report.plots.cache import break_even_map, cache, cache_map
from rewoo_bench.report.plots.conditions import failure, latency, tools
from rewoo_bench.report.plots.data import PlotData, plot_data_of, read
from rewoo_bench.report.plots.ratios import paper, pareto, ratio
from rewoo_bench.report.plots.steps import parts, steps
from rewoo_bench.report.plots.style import Picture, styled

__all__ = [
    "FIGURES",
    "Picture",
    "PlotData",
    "break_even_map",
    "draw",
    "plot_data_of",
    "read",
    "save",
    "save_all",
    "slug",
    "write_captions",
]

PICTURE_FORMATS = ("png", "svg")
# Metadata that would differ between two drawings of the same rows.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, slots=True)
class Drawing:
    """The function of a figure, and the rows that it takes."""

    draw: Callable[[PlotData, tuple[str, str]], Picture]
    faults: bool = False
    """Whether it includes runs with failing tools."""
    by_dataset: bool = True
    """Whether it is drawn for each data set and model, or for each model."""
    unasked: bool = True
    """Whether it is drawn where no figure is named."""


FIGURES = {
    "ratio": Drawing(ratio),
    "steps": Drawing(steps),
    "parts": Drawing(parts),
    "pareto": Drawing(pareto),
    "latency": Drawing(latency),
    "failure": Drawing(failure, faults=True),
    "tools": Drawing(tools),
    "paper": Drawing(paper, by_dataset=False),
    "cache": Drawing(cache, unasked=False),
    "cache-map": Drawing(cache_map, unasked=False),
}


def draw(
    data: PlotData,
    *,
    only: Sequence[str] = (),
    pair: tuple[str, str] = ("react", "rewoo"),
    on_skip: Callable[[str, str], None] | None = None,
) -> Iterator[tuple[str, Picture]]:
    """The figures (those in `only`, or all that need not be named) with their names, one for each data set and model.

    `pair` are the architectures that `ratio`, `cache` and `cache-map` compare and that `steps` draws formulas for.
    `on_skip` is called with the name of a figure that can't be drawn and the reason. Without it, a figure in `only`
    that can't be drawn at all raises `NothingToDraw`. Raises `UsageError` for an unknown name.
    """
    for name in only:
        if name not in FIGURES:
            raise UsageError(unknown("figure", name, FIGURES))
    for name in only or [name for name, drawing in FIGURES.items() if drawing.unasked]:
        reasons: dict[str, str] = {}
        parts = _parts(name, FIGURES[name], data)
        for own_name, part in parts:
            with styled():
                try:
                    yield own_name, FIGURES[name].draw(part.counted(), pair)
                except NothingToDraw as reason:
                    reasons[own_name] = str(reason)
                    if on_skip:
                        on_skip(own_name, str(reason))
        if on_skip is None and name in only and len(reasons) == len(parts):
            raise NothingToDraw("; ".join(f"{own_name}: {text}" for own_name, text in reasons.items()))


def _parts(name: str, drawing: Drawing, data: PlotData) -> list[tuple[str, PlotData]]:
    """The parts that a figure is drawn of, with names: `ratio`, or `ratio-hotpotqa-small` where there are several."""
    found = list((data if drawing.faults else data.without_faults()).split(by_dataset=drawing.by_dataset))
    models = len({part.model for part in found}) > 1
    datasets = drawing.by_dataset and len({part.dataset for part in found}) > 1
    return [("-".join([name, *[slug(part.dataset)] * datasets, *[slug(part.model)] * models]), part) for part in found]


def slug(text: str) -> str:
    """A name as part of a file name: `local/smollm2-135m` -> `local-smollm2-135m`."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def save(name: str, picture: Picture, folder: Path, formats: Sequence[str] = PICTURE_FORMATS) -> list[Path]:
    """Writes the figure in each format; returns the files. Raises `UsageError` where the folder can't be written to."""
    files = [folder / f"{name}.{form}" for form in formats]
    with styled(), _writing(folder):
        for path, form in zip(files, formats, strict=True):
            picture.figure.savefig(path, format=form, metadata=_METADATA[form])
    return files


def save_all(
    pictures: Iterable[tuple[str, Picture]], folder: Path, formats: Sequence[str] = PICTURE_FORMATS
) -> Iterator[Path]:
    """Writes figures by name, and then their captions; yields the files. Without a figure, it writes nothing."""
    captions = {}
    for name, picture in pictures:
        yield from save(name, picture, folder, formats)
        captions[name] = picture.markdown
    if captions:
        yield write_captions(folder, captions)


def write_captions(folder: Path, captions: dict[str, str]) -> Path:
    """captions.md, a section per figure; sections of earlier figures stay while their files exist."""
    path = folder / "captions.md"
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    sections = dict(re.findall(r"^## (\S+)\n\n(.+?)\n*(?=^## |\Z)", before, flags=re.MULTILINE | re.DOTALL))
    texts = {name: text for name, text in sections.items() if any(folder.glob(f"{name}.???"))} | captions
    written = [f"## {name}\n\n{texts[name]}" for name in sorted(texts)]
    with _writing(folder):
        path.write_text("\n\n".join(["# Figures", *written]) + "\n", "utf-8")
    return path


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UsageError(f"can't write figures to {str(folder)!r}: {error.strerror}; give another --out") from None
