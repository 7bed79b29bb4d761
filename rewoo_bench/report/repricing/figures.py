"""The break-even maps of a repriced run: one for each model and each architecture against the baseline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rewoo_bench.analysis.cost_laws import break_even
from rewoo_bench.config.price_sheets import Tariff
from rewoo_bench.errors import DataError, NothingToDraw
from rewoo_bench.report.plots.cache import break_even_map
from rewoo_bench.report.plots.data import read
from rewoo_bench.report.plots.draw import FORMATS, save, write_captions
from rewoo_bench.report.plots.style import Picture
from rewoo_bench.report.repricing.estimates import RepricedData


def draw_maps(repriced: RepricedData, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draws the maps into a folder; returns the files. Raises `NothingToDraw` where there is nothing in any."""
    files, captions, reasons = [], {}, []
    for tariff in repriced.tariffs:
        if not tariff.input or repriced.batch:
            reasons.append(f"{tariff.model}: needs a price of input and of a cache, without --batch")
            continue
        if len(set(repriced.by_role[tariff].values())) > 1:
            reasons.append(f"{tariff.model}: the planner or solver has a model of its own, at other prices")
            continue
        try:
            for name, picture in _maps(repriced, tariff):
                files += save(name, picture, folder, formats)
                captions[name] = picture.markdown
        except DataError as reason:
            reasons.append(f"{tariff.model}: {reason}")
    if not captions:
        raise NothingToDraw(f"no map could be drawn: {'; '.join(reasons) or 'the run has one architecture'}")
    return [*files, write_captions(folder, captions)]


def _maps(repriced: RepricedData, tariff: Tariff) -> Iterator[tuple[str, Picture]]:
    questions = repriced.questions(tariff)
    data = read([repriced.folder])
    rule = "what the provider reported" if repriced.recorded else tariff.cache_rule
    written = 1.0 if tariff.cache_write is None else tariff.cache_write / tariff.input
    others = [name for name in dict.fromkeys(questions["architecture"].astype(str)) if name != repriced.baseline]
    for other in others:
        pair = (repriced.baseline, other)
        found = break_even(questions, pair, output=tariff.output / tariff.input, written=written)
        price = tariff.cache_read / tariff.input if tariff.rule else None
        picture = break_even_map(found, price=price, priced=tariff.model, rule=rule, facts=data.facts())
        yield f"break-even-{_slug(tariff.model)}-{_slug(other)}", picture


def _slug(text: str) -> str:
    """A name as part of a file name."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")
