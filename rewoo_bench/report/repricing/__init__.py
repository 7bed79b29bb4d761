"""Dollars of a finished run under other price sheets, worked out from its recorded calls (README.md).

print(rewoo_bench.reprice("results/local/mine", prices="openai", models=["gpt-4o-mini"]))
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rewoo_bench.analysis.pairs import OF_RARE, RARE
from rewoo_bench.config.names import model_label
from rewoo_bench.config.price_sheets import Tariff, read_sheet, shipped, tariffs
from rewoo_bench.report.reading import HasFolder
from rewoo_bench.report.repricing.estimates import Line, RepricedData, repriced_run
from rewoo_bench.text.argument_checks import as_path
from rewoo_bench.text.escaping import csv_cell, markdown, markdown_table, one_line, text_table
from rewoo_bench.text.words import brackets

if TYPE_CHECKING:
    import pandas as pd

    from rewoo_bench.analysis.stats.paired import Interval


# A repriced run as text: for a terminal, as Markdown, as CSV and as JSON; and the sheets that are there.


Format = Literal["terminal", "markdown", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
_METHOD = (
    "which tokens are cached is worked out from what each prompt shares with earlier ones (calls.parquet, columns "
    "shared_…): characters of the common prefix, scaled by the call's own input tokens"
)


class Repriced(RepricedData):
    """A repriced run; printed, it is tables."""

    def __str__(self) -> str:
        return render(self, "terminal")

    def to_frame(self) -> pd.DataFrame:
        """A row for each model and architecture, bounds in columns `…_low` and `…_high`."""
        import pandas as pd

        return pd.DataFrame([_flat(line) for line in self.lines])

    def draw(self, folder: str | Path, *, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
        """Draws the break-even maps into a folder; returns the files. Raises `NothingToDraw`, and `UsageError`."""
        from rewoo_bench.report.repricing.figures import draw_maps

        return draw_maps(self, as_path("folder", folder), formats)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "baseline": self.baseline,
            "batch": self.batch,
            "notes": list(self.notes),
            "sheets": [_facts(tariff) for tariff in self.tariffs],
            "lines": [_known(asdict(line)) for line in self.lines],
        }


def reprice(
    run: str | Path | HasFolder,
    *,
    prices: str | Path | Sequence[str | Path],
    models: Sequence[str] = (),
    baseline: str | None = None,
    batch: bool = False,
    recorded_cache: bool = False,
) -> Repriced:
    """What a finished run would have cost under other prices, from what its prompts share (calls.parquet).

    `run` is its folder, or what `bench` and `evaluate(..., out=...)` return. `prices` are short names (`openai`,
    `anthropic-1h`), SHEET:MODEL, or whole sheets (`rewoo-bench reprice --list`, or TOML files); with `models` they are
    sheets, and those are some of their models. A planner or
    solver with a model of its own has the sheet's prices of that model, where there are any, or those that
    `planner:SHEET:MODEL` names among `prices`. Ratios are to the `baseline`, the run's first
    architecture by default. `batch` takes the prices of the provider's batch interface, without a cache.
    `recorded_cache` takes the cached tokens that the provider
    reported.

    Raises `UsageError` where an argument or a sheet is wrong, and `DataError` where the run lacks what it takes.
    """
    folder = run if isinstance(run, str | Path) else getattr(run, "folder", None)
    made = repriced_run(
        folder, prices=prices, models=models, baseline=baseline, batch=batch, recorded_cache=recorded_cache
    )  # fmt: skip
    return Repriced(**vars(made))


def render(repriced: Repriced, form: Format) -> str:
    """The result in one of `FORMATS`, without a newline at its end."""
    if form == "json":
        return json.dumps(repriced.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        cells = repriced.to_frame().map(lambda cell: csv_cell(cell) if isinstance(cell, str) else cell)
        text: str = cells.to_csv(index=False, lineterminator="\n")
        return text.removesuffix("\n")
    if form == "markdown":
        return _text(repriced, markdown_table, lambda title: f"**{markdown(title)}**", lambda n: f"> {markdown(n)}\n>")
    return _text(repriced, text_table, one_line, one_line)


def sheet_list() -> str:
    """The shipped sheets as a table: a line for each model."""
    cells = [["sheet", "model", "in", "out", "cached in", "cache write", "batch in", "batch out", "cache", "as of"]]
    for name, path in shipped().items():
        sheet = read_sheet(path)
        for model, prices in sheet.models.items():
            amounts: list[float | None] = [prices.input, prices.output, prices.cache_read, prices.cache_write]
            amounts += [prices.batch_input, prices.batch_output]
            kind = sheet.cache[prices.cache].kind if prices.cache else "-"
            shown = ["-" if amount is None else f"{amount:g}" for amount in amounts]
            cells.append([name, model, *shown, kind, str(sheet.as_of)])
    sources = dict.fromkeys(f"{name}: {tariffs([name])[0].source}" for name in shipped())
    return "\n".join(["Prices in USD per million tokens.", "", *text_table(cells), "", "Sources:", *sources])


def _text(
    repriced: Repriced,
    table: Callable[[Sequence[Sequence[str]]], list[str]],
    title: Callable[[str], str],
    note: Callable[[str], str],
) -> str:
    blocks = []
    for tariff in repriced.tariffs:
        lines = [line for line in repriced.lines if (line.sheet, line.model) == (tariff.sheet, tariff.model)]
        roles = {role: other.model for role, other in repriced.by_role[tariff].items() if role}
        heading = f"{tariff.sheet}, {model_label(tariff.model, **roles)}: {tariff.source}; as of {tariff.as_of}"
        blocks.append("\n".join([title(heading + _applied(tariff, repriced)), "", *table(_cells(lines, repriced))]))
        unused = tariff.notes_of_rule if repriced.batch or repriced.recorded else ()
        if said := [each for each in tariff.notes if each not in unused]:
            blocks.append("\n".join(note(f"{tariff.model}: {each}") for each in said).removesuffix("\n>"))
    blocks.append("\n".join(note(each) for each in _notes(repriced)).removesuffix("\n>"))
    return "\n\n".join(blocks)


def _applied(tariff: Tariff, repriced: Repriced) -> str:
    """What the tokens that are cached follow from."""
    if repriced.batch:
        return "; at its batch prices, without a cache"
    if repriced.recorded:
        return f"; cached tokens as the provider reported them, at ${tariff.cache_read * 1e6:g} a million"
    return f"; under {tariff.cache_rule}" if tariff.rule else ""


def _notes(repriced: Repriced) -> Iterable[str]:
    yield "n: questions; means per question; 95% intervals; ratio: dollars per dollar of " + repriced.baseline
    shown = [each for line in repriced.lines for each in (line.cached_share, line.usd_per_1000, line.ratio)]
    if any(each and each.rare for each in shown):
        yield OF_RARE
    if not repriced.recorded and any(line.cached_share.estimate > 0 for line in repriced.lines):
        yield _METHOD
    if lost := sum(line.failed for line in repriced.lines) // len(repriced.tariffs):
        yield f"{lost:,} rows that the infrastructure failed are in no mean"
    yield from repriced.notes


def _cells(lines: Sequence[Line], repriced: Repriced) -> list[list[str]]:
    written = any(line.cache_write_tokens.estimate > 0 for line in lines)
    header = ["architecture", "n", "failed", "tokens in", "cached [95% CI]", *(["written"] if written else []), "out"]
    header += ["rounds (most)"] if repriced.batch else []
    header += ["$ / 1000 [95% CI]", "ratio [95% CI]"]
    return [header, *(_cell(line, repriced, written=written) for line in lines)]


def _cell(line: Line, repriced: Repriced, *, written: bool) -> list[str]:
    return [
        line.architecture,
        f"{line.usd_per_1000.n:,}",
        f"{line.failed:,}",
        _number(line.input_tokens.estimate, ",.0f"),
        _interval(line.cached_share, ".1%"),
        *([_number(line.cache_write_tokens.estimate, ",.0f")] if written else []),
        _number(line.output_tokens.estimate, ",.0f"),
        *([f"{_number(line.rounds, '.2f')} ({line.most_rounds})"] if repriced.batch else []),
        _interval(line.usd_per_1000, _dollars(line.usd_per_1000.estimate)),
        "1" if line.ratio is None else _interval(line.ratio, ".2f"),
    ]


def _dollars(amount: float) -> str:
    """A format with three digits or more."""
    return ",.2f" if not 0 < amount < 10 else ".3f" if amount >= 0.1 else ".3g"


def _interval(value: Interval, form: str) -> str:
    if math.isnan(value.estimate):
        return "-"
    between = brackets(value.low, value.high, lambda bound: format(bound, form))
    return f"{value.estimate:{form}} {between}{RARE if value.rare else ''}"


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def _flat(line: Line) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in asdict(line).items():
        if isinstance(value, dict):
            flat |= {name: value["estimate"], f"{name}_low": value["low"], f"{name}_high": value["high"]}
        else:
            flat[name] = value
    bounded: dict[str, Any] = _known(flat)  # a bound that isn't known is an empty cell
    return {**bounded, "n": line.usd_per_1000.n}


def _facts(tariff: Tariff) -> dict[str, Any]:
    """A model's prices in dollars per million tokens, with their source."""
    names = ("input", "output", "cache_read", "cache_write", "batch_input", "batch_output")
    amounts = {name: getattr(tariff, name) for name in names}
    shown = {name: None if amount is None else round(amount * 1e6, 9) for name, amount in amounts.items()}
    rule = None if tariff.rule is None else tariff.rule.model_dump(mode="json")
    return {
        "sheet": tariff.sheet, "model": tariff.model, "unit": "USD per million tokens", **shown, "cache": rule,
        "source": tariff.source, "as_of": str(tariff.as_of), "notes": list(tariff.notes),
    }  # fmt: skip


def _known(value: Any) -> Any:
    """The same without numbers that JSON lacks."""
    if isinstance(value, dict):
        return {name: _known(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
