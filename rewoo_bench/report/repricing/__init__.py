"""A finished run under other price sheets: what each architecture would have cost, with intervals (README.md).

    repriced = reprice("results/local/mine", prices=["openai", "anthropic-5m"])
    print(repriced)                 # a table for each model: tokens, cached share, dollars with intervals
    repriced.lines[0].usd_per_1000  # Interval(estimate=0.41, low=0.38, high=0.44, n=100)
    repriced.questions()            # a row for each question, architecture and model

Intervals are those of `compare`: 95%, the trials of a question are one observation, and ratios are paired.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.cost_laws import break_even
from rewoo_bench.analysis.prices import (
    SHARED_UNKNOWN,
    SHOWN,
    TOKENS_UNKNOWN,
    Calls,
    example_note,
    own_models,
    own_tariffs,
    priced,
    read_calls,
)
from rewoo_bench.analysis.stats.paired import OF_RARE, RARE, Interval, brackets, mean_of, ratio_of_means
from rewoo_bench.analysis.summary import cells_of, number_text
from rewoo_bench.config.names import model_label
from rewoo_bench.config.price_sheets import (
    RULES,
    Tariff,
    bundled_sheets,
    by_role,
    named_tariff,
    read_sheet,
    sheet_and_model,
    split_by_role,
    tariffs,
)
from rewoo_bench.errors import DataError, NothingToDraw, UsageError, unknown
from rewoo_bench.report.reading import HasFolder
from rewoo_bench.runs.comparability import unfinished
from rewoo_bench.runs.folder import load, manifests, named_manifests
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import failed, left_out, oracle_rows, read_columns
from rewoo_bench.text.argument_checks import as_path, check_names, check_switches
from rewoo_bench.text.escaping import (
    csv_text,
    markdown_table,
    plain_line,
    plain_markdown,
    text_table,
    with_finite_numbers,
)

PriceTableFormat = Literal["terminal", "markdown", "csv", "json"]
_COLUMNS = ["run_id", "architecture", "example_id", "trial", "question_type", "hops", "tool_calls"]
_AMOUNTS = ("input", "output", "cache_read", "cache_write", "batch_input", "batch_output")
_CLOCKS_DIFFER_S = 2e-5


@dataclass(frozen=True, slots=True)
class RepricedArchitecture:
    """What an architecture would have cost with a model. Means are per question, intervals are 95%."""

    sheet: str
    model: str
    architecture: str
    total: int
    failed: int
    """Rows that failed, or were answered without a metered model call: they are in no mean (runs/rows.py)."""
    input_tokens: Interval
    cached_share: Interval
    """Of the input tokens."""
    cache_write_tokens: Interval
    output_tokens: Interval
    rounds: float
    most_rounds: int
    usd_per_1000: Interval
    ratio: Interval | None
    """Dollars of this architecture per dollar of the baseline, paired by question; None for the baseline."""


@dataclass(frozen=True)
class Repriced:
    """A repriced run; printed, it is tables."""

    folder: Path
    baseline: str
    lines: tuple[RepricedArchitecture, ...]
    tariffs: tuple[Tariff, ...]
    notes: tuple[str, ...]
    batch: bool
    rows: pd.DataFrame
    """Some columns of the run's rows, whether each is left out of the means (`failed`), and its `rounds`: the longest
    chain of calls, which are as many batches, one after the other."""
    calls: Calls
    recorded: bool
    """Whether cached tokens are those that the provider reported."""
    by_role: Mapping[Tariff, Mapping[str, Tariff]]
    """For each of `tariffs` the prices of the planner and of the solver that have a model of their own, by role."""

    def __str__(self) -> str:
        return render_prices(self, "terminal")

    def questions(self, tariff: Tariff | None = None) -> pd.DataFrame:
        """A row for each question, trial, architecture and model (or only those of one `tariff`)."""
        sizes, parts = self.calls.columns, []
        for each in (tariff,) if tariff else self.tariffs:
            costs = priced(self.calls, self.by_role[each], batch=self.batch, recorded=self.recorded)
            parts.append(
                self.rows.assign(
                    sheet=each.sheet,
                    priced_model=each.model,
                    input_tokens=self.calls.of_rows(sizes["input_tokens"] + sizes["lost_input_tokens"]),
                    cached_input_tokens=self.calls.of_rows(costs.cached),
                    cache_write_tokens=self.calls.of_rows(costs.written),
                    output_tokens=self.calls.of_rows(sizes["output_tokens"] + sizes["lost_output_tokens"]),
                    repriced_usd=self.calls.of_rows(costs.usd),
                )
            )
        return pd.concat(parts, ignore_index=True)

    def to_frame(self) -> pd.DataFrame:
        """A row for each model and architecture, bounds in columns `…_low` and `…_high`."""
        rows = []
        for line in self.lines:
            row: dict[str, Any] = {}
            for name, value in with_finite_numbers(asdict(line)).items():  # a bound that isn't known is an empty cell
                if isinstance(value, dict):
                    row |= {name: value["estimate"], f"{name}_low": value["low"], f"{name}_high": value["high"]}
                else:
                    row[name] = value
            rows.append({**row, "n": line.usd_per_1000.n})
        return pd.DataFrame(rows)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; prices are in dollars per million tokens."""
        sheets = []
        for tariff in self.tariffs:
            amounts = {name: getattr(tariff, name) for name in _AMOUNTS}
            shown = {name: None if usd is None else round(usd * 1e6, 9) for name, usd in amounts.items()}
            rule = None if tariff.rule is None else tariff.rule.model_dump(mode="json")
            sheets.append({
                "sheet": tariff.sheet, "model": tariff.model, "unit": "USD per million tokens", **shown, "cache": rule,
                "source": tariff.source, "as_of": str(tariff.as_of), "notes": list(tariff.notes),
            })  # fmt: skip
        lines = [with_finite_numbers(asdict(line)) for line in self.lines]
        notes = list(self.notes)
        return {"baseline": self.baseline, "batch": self.batch, "notes": notes, "sheets": sheets, "lines": lines}

    def draw(
        self, folder: str | Path, *, formats: Sequence[str] = ("png", "svg"), others: Sequence[str] = ()
    ) -> list[Path]:
        """Draws the break-even maps, one for each model and each architecture against the baseline, into a folder.

        `others` are the architectures to draw; all by default.
        Returns the files. Raises `NothingToDraw` where there is nothing in any map, and `UsageError`.
        """
        # matplotlib, half a second that tables needn't wait for
        from rewoo_bench.report.plots.draw import Picture, break_even_map, read, save_figures, slug

        target, reasons, pictures = as_path("folder", folder), [], dict[str, Picture]()
        facts, models = read([self.folder]).facts(), Counter(tariff.model for tariff in self.tariffs)
        for tariff in self.tariffs:
            if not tariff.input or self.batch:
                reasons.append(f"{tariff.model}: needs a price of input, without --batch")
                continue
            if len(set(self.by_role[tariff].values())) > 1:
                reasons.append(f"{tariff.model}: the planner or solver has a model of its own, at other prices")
                continue
            rule = "what the provider reported" if self.recorded else tariff.cache_rule
            written = 1.0 if tariff.cache_write is None else tariff.cache_write / tariff.input
            price = tariff.cache_read / tariff.input if tariff.rule else None
            questions = self.questions(tariff)
            at = tariff.model if models[tariff.model] == 1 else f"{tariff.sheet}-{tariff.model}"
            try:
                for other in dict.fromkeys(questions["architecture"].astype(str)):
                    if other == self.baseline or (others and other not in others):
                        continue
                    pair = (self.baseline, other)
                    found = break_even(questions, pair, output=tariff.output / tariff.input, written=written)
                    name = f"break-even-{slug(at)}-{slug(other)}"
                    pictures[name] = break_even_map(found, price=price, priced=tariff.model, rule=rule, facts=facts)
            except DataError as reason:
                reasons.append(f"{tariff.model}: {reason}")
        if not pictures:
            raise NothingToDraw(f"no map could be drawn: {'; '.join(reasons) or 'the run has one architecture'}")
        return list(save_figures(pictures.items(), target, formats))


def reprice(
    run: str | Path | HasFolder,
    *,
    prices: str | Path | Sequence[str | Path] = (),
    models: Sequence[str] = (),
    baseline: str | None = None,
    batch: bool = False,
    recorded_cache: bool = False,
) -> Repriced:
    """What a finished run would have cost under other prices, from what its prompts share (calls.parquet).

    `run` is its folder, or what `bench` and `evaluate(..., out=...)` return. `prices` are short names (`openai`,
    `anthropic-1h`), SHEET:MODEL, or whole sheets (`rewoo-bench reprice --list`, or TOML files); with `models` they are
    sheets, and those are some of their models. By default they are those of the run's own models, with the cache and
    without it, where sheets have all of them, else those of `SHOWN`; what can't be counted is left out of these. A
    planner or solver with a model of its own has the sheet's prices of that model, where there are any, by default
    also those of another provider's sheet, or those that `planner:SHEET:MODEL` names among `prices`. Ratios are to the
    `baseline`, the run's first architecture by default.
    `batch` takes the prices of the provider's batch interface, without a cache, and `recorded_cache` the cached tokens
    that the provider reported.

    Raises `UsageError` where an argument or a sheet is wrong, and `DataError` where the run lacks what it takes.
    """
    check_names(models=models)
    check_switches(batch=batch, recorded_cache=recorded_cache)
    if batch and recorded_cache:
        raise UsageError("--batch with --recorded-cache: a batch has no cached tokens; give one of the two")
    folder = run if isinstance(run, str | Path) else getattr(run, "folder", None)
    folder = as_path("run", folder, "the folder of a run")
    rows = load(folder)
    if not len(rows):
        raise DataError(f"{str(folder)!r} has no rows")
    own = own_models(read_columns(rows, ["model", "planner_model", "solver_model"]))
    names, given = split_by_role([*map(str, [prices] if isinstance(prices, str | Path) else prices)], own)
    sheets = {name: sheet_and_model(name) for name in names}
    if (models or given) and not names:
        raise UsageError("no price given: --prices NAME")
    chosen: list[Tariff] = []
    notes: list[str] = []
    if models:
        if one := next((name for name, (_, model) in sheets.items() if model), None):
            raise UsageError(f"--prices {one} names its model: leave it out there, or leave out --model")
        chosen = tariffs([sheet for sheet, _ in sheets.values()], models)
    elif names:
        for name, (sheet, model) in sheets.items():
            chosen += [named_tariff(name)] if model or name in RULES else tariffs([sheet])
    else:
        chosen, notes = _default_prices(rows, manifests(folder), has_cache=not (batch or recorded_cache))
    architectures = [str(name) for name in rows["architecture"].unique()]
    if baseline is not None and baseline not in architectures:
        raise UsageError(unknown("baseline", baseline, architectures))
    calls = read_calls(folder, rows)
    if np.isnan(calls.of_rows(calls.columns["input_tokens"] + calls.columns["output_tokens"])[~failed(rows)]).any():
        raise DataError(f"{str(folder)!r}: {TOKENS_UNKNOWN}")
    chosen = _told_apart(chosen)
    charged = {tariff: by_role(tariff, own, given, own=not names) for tariff in chosen}
    if not (names or batch or recorded_cache):
        charged = {tariff: roles for tariff, roles in charged.items() if _are_known(calls, rows, roles)}
        if len(charged) < len(chosen):
            notes.append(f"no price with a cache: {SHARED_UNKNOWN} (--recorded-cache counts what was reported)")
        chosen = [*charged]
    if recorded_cache and calls.unrecorded.all():
        raise DataError(f"{str(folder)!r}: no cached tokens were recorded; leave out --recorded-cache")
    repriced = Repriced(
        folder=folder,
        baseline=baseline or architectures[0],
        lines=(),
        tariffs=tuple(chosen),
        notes=(
            *unfinished(named_manifests(folder)),
            *notes,
            *_notes(calls, rows, charged, own, batch=batch, recorded=recorded_cache),
        ),
        batch=batch,
        rows=rows[_COLUMNS].assign(failed=left_out(rows), rounds=_rounds(calls)),
        calls=calls,
        recorded=recorded_cache,
        by_role=charged,
    )
    return replace(repriced, lines=tuple(line for tariff in chosen for line in _lines(repriced, tariff, rows)))


def _told_apart(prices: Sequence[Tariff]) -> list[Tariff]:
    """Each price once; those of two files of the same name have the whole name of their file as their sheet's."""
    found = list(dict.fromkeys(prices))
    times = Counter((tariff.sheet, tariff.model) for tariff in found)
    return [
        replace(tariff, sheet=str(tariff.path)) if times[tariff.sheet, tariff.model] > 1 else tariff for tariff in found
    ]


def _default_prices(rows: pd.DataFrame, runs: Manifests, *, has_cache: bool) -> tuple[list[Tariff], list[str]]:
    """The prices of the models of some rows, and without the cache; where sheets lack one, examples and a note."""
    models = [str(name) for name in rows["model"].unique()]
    known = own_tariffs(models, runs)
    if unlisted := [model for model in models if model not in known]:
        return [named_tariff(name) for name in SHOWN], [example_note(unlisted, "reprice")]
    own = list(dict.fromkeys(known.values()))
    return [*own, *(tariff.without_cache() for tariff in own if has_cache and tariff.rule)], []


def _are_known(calls: Calls, rows: pd.DataFrame, tariffs: Mapping[str, Tariff]) -> bool:
    """Whether the dollars of all rows that haven't failed are known."""
    return not np.isnan(calls.of_rows(priced(calls, tariffs).usd)[~failed(rows)]).any()


def _rounds(calls: Calls) -> NDArray[np.int64]:
    """Of each row the longest chain of calls, each begun when the one before had ended.

    A call whose time wasn't recorded is taken to have begun so, as in a conversation.
    """
    rounds, until = np.zeros(calls.rows, dtype=np.int64), np.full(calls.rows, -np.inf)
    start = calls.columns["started_at"]
    end = start + np.nan_to_num(calls.columns["latency_s"])
    for place in np.argsort(end, kind="stable"):
        row = calls.row[place]
        if np.isnan(start[place]):
            rounds[row] += 1
        elif start[place] >= until[row] - _CLOCKS_DIFFER_S:
            rounds[row] += 1
            until[row] = end[place]
    return rounds


def _lines(repriced: Repriced, tariff: Tariff, rows: pd.DataFrame) -> Iterator[RepricedArchitecture]:
    priced_rows = repriced.questions(tariff)
    if priced_rows["repriced_usd"][~failed(rows)].isna().any():
        raise DataError(
            f"{str(repriced.folder)!r}: {SHARED_UNKNOWN}; --recorded-cache takes what was reported, and --prices none "
            "has no cache"
        )
    names = priced_rows["architecture"].astype(str).to_numpy(dtype=object)
    questions = np.unique(rows["example_id"].to_numpy(dtype=object), return_inverse=True)[1]
    counted = priced_rows.assign(question=questions)[~priced_rows["failed"]]
    of = {name: counted[names[counted.index] == name] for name in dict.fromkeys(names)}

    def mean(own: pd.DataFrame, column: str, times: int = 1) -> Interval:
        return mean_of(times * own[column].to_numpy(float), clusters=own["question"])

    for name, own in of.items():
        total = int((names == name).sum())
        cached = ratio_of_means(own["input_tokens"], own["cached_input_tokens"], clusters=own["question"])
        both = of[repriced.baseline].merge(own, on=["question", "trial"], suffixes=("_a", "_b"))
        ratio = ratio_of_means(both["repriced_usd_a"], both["repriced_usd_b"], clusters=both["question"])
        yield RepricedArchitecture(
            sheet=tariff.sheet,
            model=tariff.model,
            architecture=name,
            total=total,
            failed=total - len(own),
            input_tokens=mean(own, "input_tokens"),
            cached_share=replace(cached, high=min(cached.high, 1.0)) if np.isfinite(cached.high) else cached,
            cache_write_tokens=mean(own, "cache_write_tokens"),
            output_tokens=mean(own, "output_tokens"),
            rounds=float(own["rounds"].mean()),
            most_rounds=int(own["rounds"].to_numpy().max(initial=0)),
            usd_per_1000=mean(own, "repriced_usd", 1000),
            ratio=None if name == repriced.baseline else ratio,
        )


def _notes(
    calls: Calls,
    rows: pd.DataFrame,
    charged: Mapping[Tariff, Mapping[str, Tariff]],
    own: Mapping[str, str],
    *,
    batch: bool,
    recorded: bool,
) -> Iterator[str]:
    """What the dollars take for granted, and which prices the `own` model of a role has."""
    if batch:
        yield (
            "--batch: each round of model calls is one batch of all questions, at the batch price and without a cache; "
            "a question needs as many batches, one after the other, as the column `rounds` says"
        )
        if np.isnan(calls.columns["started_at"]).any():
            yield "calls whose times weren't recorded are taken to be made one after the other, each in a round"
    elif recorded:
        yield "cached tokens are those that the provider reported, whatever the sheet's cache is (--recorded-cache)"
        if unrecorded := int(calls.unrecorded.sum()):
            yield (
                f"of {unrecorded:,} of {len(calls.row):,} calls no cached tokens were recorded: they count as without "
                "any"
            )
    elif any(tariff.rule for roles in charged.values() for tariff in roles.values()):
        yield "each architecture, trial and model of a role has a cache of its own, and a hit is certain"
        if bool(oracle_rows(rows).any()):
            yield (
                "an oracle answers at once: its calls are closer to each other than a model's, so more of them are "
                "cached"
            )
    for role, model in own.items():
        listed, missing = [], []
        for tariff, roles in charged.items():
            at = roles[role]
            if at is tariff and tariff.model not in (model, model.partition("/")[2]):
                missing.append(tariff.sheet)
            else:
                listed.append(f"{at.model}'s prices of the sheet {at.sheet}")
        if listed:
            yield f"the {role}'s model {model} is counted at {' and '.join(dict.fromkeys(listed))}"
        if missing:
            sheets = " or ".join(dict.fromkeys(missing))
            yield (
                f"the {role}'s model {model} isn't in the sheet {sheets}, and is counted as the other calls are: "
                f"--prices {role}:SHEET:MODEL"
            )


def sheet_list() -> str:
    """The bundled sheets as a table: a line for each model."""
    cells = [["sheet", "model", "in", "out", "cached in", "cache write", "batch in", "batch out", "cache", "as of"]]
    for name, path in bundled_sheets().items():
        sheet = read_sheet(path)
        for model, prices in sheet.models.items():
            kind = sheet.cache[prices.cache].kind if prices.cache else "-"
            shown = [number_text(getattr(prices, name), "g") for name in _AMOUNTS]
            cells.append([name, model, *shown, kind, str(sheet.as_of)])
    sources = dict.fromkeys(f"{name}: {tariffs([name])[0].source}" for name in bundled_sheets())
    return "\n".join(["Prices in USD per million tokens.", "", *text_table(cells), "", "Sources:", *sources])


def render_prices(repriced: Repriced, form: PriceTableFormat) -> str:
    """The result as text, without a newline at its end."""
    if form == "json":
        return json.dumps(repriced.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        return csv_text(repriced.to_frame())

    def listed(notes: Sequence[str]) -> str:
        if is_markdown:
            return "\n>\n".join(f"> {plain_markdown(note)}" for note in notes)
        return "\n".join(map(plain_line, notes))

    is_markdown, blocks = form == "markdown", []
    for tariff in repriced.tariffs:
        lines = [line for line in repriced.lines if (line.sheet, line.model) == (tariff.sheet, tariff.model)]
        roles = {role: other.model for role, other in repriced.by_role[tariff].items() if role}
        heading = f"{tariff.sheet}, {model_label(tariff.model, **roles)}: {tariff.source}; as of {tariff.as_of}"
        if repriced.batch:
            heading += "; at its batch prices, without a cache"
        elif repriced.recorded:
            heading += f"; cached tokens as the provider reported them, at ${tariff.cache_read * 1e6:g} a million"
        elif tariff.rule:
            heading += f"; under {tariff.cache_rule}"
        heading = f"**{plain_markdown(heading)}**" if is_markdown else plain_line(heading)
        table = (markdown_table if is_markdown else text_table)(_cells(lines, repriced))
        blocks.append("\n".join([heading, "", *table]))
        unused = tariff.notes_of_rule if repriced.batch or repriced.recorded else ()
        if said := [f"{tariff.model}: {each}" for each in tariff.notes if each not in unused]:
            blocks.append(listed(said))
    notes = ["n: questions; means per question; 95% intervals; ratio: dollars per dollar of " + repriced.baseline]
    shown = [each for line in repriced.lines for each in (line.cached_share, line.usd_per_1000, line.ratio)]
    if any(each and each.rare for each in shown):
        notes.append(OF_RARE)
    if not repriced.recorded and any(line.cached_share.estimate > 0 for line in repriced.lines):
        notes.append(
            "which tokens are cached is worked out from what each prompt shares with earlier ones (calls.parquet, "
            "columns shared_…): characters of the common prefix, scaled by the call's own input tokens"
        )
    if lost := sum(line.failed for line in repriced.lines) // len(repriced.tariffs):
        notes.append(f"{lost:,} rows that failed, or have no metered model call, are in no mean")
    return "\n\n".join([*blocks, listed([*notes, *repriced.notes])])


def _cells(lines: Sequence[RepricedArchitecture], repriced: Repriced) -> list[list[str]]:
    """The table of a model: a head, and a row for each architecture."""

    def interval(value: Interval, form: str) -> str:
        if math.isnan(value.estimate):
            return "-"
        between = brackets(value.low, value.high, lambda bound: format(bound, form))
        return f"{value.estimate:{form}} {between}{RARE if value.rare else ''}"

    table = []
    for line in lines:
        dollars = line.usd_per_1000.estimate
        digits = ",.2f" if not 0 < dollars < 10 else ".3f" if dollars >= 0.1 else ".3g"  # three or more
        row = {
            "architecture": line.architecture,
            "n": f"{line.usd_per_1000.n:,}",
            "failed": f"{line.failed:,}",
            "tokens in": number_text(line.input_tokens.estimate, ",.0f"),
            "cached [95% CI]": interval(line.cached_share, ".1%"),
            "written": number_text(line.cache_write_tokens.estimate, ",.0f"),
            "out": number_text(line.output_tokens.estimate, ",.0f"),
            "rounds (most)": f"{number_text(line.rounds, '.2f')} ({line.most_rounds})",
            "$ / 1000 [95% CI]": interval(line.usd_per_1000, digits),
            "ratio [95% CI]": "1" if line.ratio is None else interval(line.ratio, ".2f"),
        }
        if not any(each.cache_write_tokens.estimate > 0 for each in lines):
            del row["written"]
        if not repriced.batch:
            del row["rounds (most)"]
        table.append(row)
    return cells_of(table)
