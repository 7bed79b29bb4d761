"""Tables, figures and verdicts of the study in results/models, made from its runs.

    python scripts/study_models.py

Each folder in results/models is a published run (`rewoo-bench publish`), or a series: a folder of runs
that differ in one thing. This reads them all without a model, and writes tables.md, claims.md, figures and their
captions. The same runs give the same tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewoo_bench import load
from rewoo_bench.analysis.claims.check import Finding, check
from rewoo_bench.analysis.claims.claim_file import read_claims
from rewoo_bench.analysis.claims.render import render_claims
from rewoo_bench.analysis.claims.run_groups import RunGroup, gather
from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import render_comparison
from rewoo_bench.analysis.pairs import OUTCOME, PRICED, Pair, Pricing, bounds
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.analysis.stats.paired import Interval, ratio_of_means
from rewoo_bench.analysis.summary import LOOPS, Estimate, loops_text, summaries_of, valid_first_plans
from rewoo_bench.config.names import REPLAY, read_options
from rewoo_bench.report.plots.draw import draw, read, save_figures
from rewoo_bench.runners.architecture import TOOLS
from rewoo_bench.runs.folder import manifests
from rewoo_bench.runs.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    import pandas as pd

RESULTS = Path(__file__).parents[1] / "results" / "models"
FIGURES = ("ratio", "pareto", "parts", "paper")
SERIES_FIGURES = ("failure", "tools")
GUARD = "repeat_guard"
TWO_TESTS = (
    "Intervals of differences of exact match are Tango's score intervals, p values are of exact McNemar, which is more "
    "careful with few discordant questions: near the limit an interval may leave 0 out where p is above 0.05."
)
ORACLE = "oracle"  # the folder beside it, with an oracle's runs, for claims about costs


REGISTERED = (
    "The rules of these verdicts weren't registered before the runs: most were written before them, some were "
    "corrected afterwards ([claims.toml](../../rewoo_bench/analysis/claims/claims.toml))."
)
OLDER = (
    "Of the runs that decide, these were made before the "
    "[papers' forms](../../architectures/README.md#as-in-the-papers) became the defaults, by their run.json"
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--no-figures", action="store_true", help="tables and verdicts only")
    options = parser.parse_args(arguments)
    folder = options.results
    runs = runs_in(folder)
    series = {path: found for path in sorted(folder.iterdir()) if path not in runs and (found := runs_in(path))}
    every = [*runs, *(run for found in series.values() for run in found)]
    notes = f"{OUTCOME.capitalize()}. {TWO_TESTS}"
    sections = [f"## ReAct and ReWOO, all runs\n\n{overview(runs)}\n\n{notes}"] if runs else []
    sections += [f"## {run.name}\n\n{run_table(run)}" for run in runs]
    sections += [f"## {path.name}\n\n{series_table(found)}" for path, found in series.items()]
    (folder / "tables.md").write_text("\n\n".join(sections).rstrip() + "\n", encoding="utf-8")
    groups = gather(*every, *runs_in(folder.with_name(ORACLE)))
    findings = check(read_claims(), groups)
    verdicts = f"{claims_head(findings, groups)}\n\n{render_claims(findings, 'markdown').rstrip()}\n"
    (folder / "claims.md").write_text(verdicts, encoding="utf-8")
    if options.no_figures:
        return
    count = sum(figures(folder, run.name, [run], wanted) for run in runs if (wanted := wanted_of(run)))
    count += sum(figures(folder, path.name, found, SERIES_FIGURES) for path, found in series.items())
    print(f"{folder}: {len(every)} runs, {count} figures")


def claims_head(findings: Sequence[Finding], groups: Sequence[RunGroup]) -> str:
    """What a reader must know of all verdicts: when the rules were made, and which runs have an older form."""
    deciding = {run for finding in findings if finding.decided for run in finding.decided.runs}
    forms: dict[str, list[str]] = {}
    for own in (own for group in groups for own in group.architectures.values() if own.run in deciding):
        forms.setdefault(own.run, []).extend(own.unlike_paper)
    runs: dict[str, list[str]] = {}
    for run, form in forms.items():
        if form:
            runs.setdefault(", ".join(form), []).append(f"`{run}`")
    return "\n\n".join([REGISTERED, *(f"{OLDER} ({form}): {', '.join(names)}." for form, names in runs.items())])


def runs_in(folder: Path) -> list[Path]:
    """The runs right in a folder, by name."""
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))


def wanted_of(run: Path) -> Sequence[str]:
    """The figures for a run of this kind; none for a replay, which repeats its run."""
    if is_replay(run):
        return ()
    if changed := options_in(run):
        return ("tools",) if changed == {TOOLS} else ("parts",)
    return (*FIGURES, "steps") if read_manifest(run).dataset.name.startswith("chain") else FIGURES


def is_replay(run: Path) -> bool:
    """Whether it replays another run, for example to judge it."""
    return str(read_manifest(run).options["model"]).startswith(REPLAY)


def options_in(run: Path) -> set[str]:
    """The options in the names of its architectures: `max_exemplars`, `tools`."""
    options = [each.name.partition("?")[2] for each in read_manifest(run).architectures]
    return {option for behind in options if behind for option in read_options(behind)}


def figures(folder: Path, name: str, runs: Sequence[Path], wanted: Sequence[str]) -> int:
    """Saves the figures that the runs have data for; returns their number."""
    pictures = draw(read(runs), only=wanted, on_skip=lambda *_: None)
    named = ((f"{name}-{figure}", picture) for figure, picture in pictures)
    return sum(path.suffix == ".png" for path in save_figures(named, folder, ["png"]))


def overview(runs: Sequence[Path]) -> str:
    """ReAct and ReWOO, a row for each run with both, as a Markdown table."""
    both = ("rewoo", "react")
    there = [run for run in runs if not is_replay(run) and set(both) <= set(load(run)["architecture"])]
    return pairs_table(["run"], {(run.name,): (run, both) for run in there})


def run_table(run: Path) -> str:
    """All architectures compared on their shared questions: a run may have been stopped."""
    if options_in(run) == {GUARD}:
        return guard_table(run)
    if options_in(run) - {TOOLS}:
        return ablation_table(run)
    comparison = compare(load(run), manifests=manifests(run), intersect=True)
    models = read_manifest(run).models
    by_grammar = models.get("planner", models["default"]).get("constrain") == "grammar"
    return f"{render_comparison(comparison, 'markdown').rstrip()}\n\n{endings(load(run), by_grammar=by_grammar)}"


def endings(rows: pd.DataFrame, *, by_grammar: bool) -> str:
    """How the questions and plans of each architecture ended, as a Markdown table.

    `by_grammar` says that a grammar held the planner to the form of a plan.
    """
    valid = "valid first plan, as a grammar held it to one" if by_grammar else "valid first plan"
    lines = [
        "**how they ended: questions**",
        "",
        f"| system | n | answered | step limit | invalid plan | error | {valid} | new plans per question |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for architecture, its in rows.groupby("architecture", sort=False, observed=True):
        ended = its["stop_reason"].value_counts()
        counts = [int(ended.get(reason, 0)) for reason in ("answered", "step_limit", "invalid_plan", "error")]
        plans = ["", ""]
        if its["planner_tokens"].sum():
            plans = [f"{its['replans'].mean():.2f}"]
            # plan-execute plans anew after each step, by design
            sound = valid_first_plans(its).sum()
            plans.insert(0, "" if architecture == "plan-execute" else f"{int(sound)}")
        lines.append(f"| {architecture} | {len(its)} | {' | '.join(map(str, [*counts, *plans]))} |")
    return "\n".join(lines)


def series_table(runs: Sequence[Path]) -> str:
    """A row for each run and architecture, as a Markdown table, with its tokens as a multiple of ReWOO's."""
    lines = [
        "| run | system | n | EM | F1 | LLM calls | tool calls | tokens | x ReWOO's "
        f"| {LOOPS} | answered / failed / total |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for run in runs:
        rows = load(run)
        ratios = dict(token_ratios(rows))
        for one in summaries_of(rows):
            figures = [interval(one.exact_match), interval(one.f1), f"{one.llm_calls:.2f}", f"{one.tool_calls:.2f}"]
            figures += [f"{one.total_tokens:,.0f}", ratios.get(one.architecture, ""), loops_text(one)]
            ended = f"{one.answered} / {one.failed} / {one.total}"
            lines.append(f"| {run.name} | {one.architecture} | {one.total} | {' | '.join(figures)} | {ended} |")
    return "\n".join(lines)


def guard_table(run: Path) -> str:
    """The run's architectures, of which all but the first have a guard against loops, as a Markdown table."""
    comparison = compare(load(run), manifests=manifests(run), intersect=True)
    lines = [
        "| `repeat_guard` | n | EM | tokens | questions in loops | tokens in loops | x tokens of none | EM - none |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for system, pair in zip(comparison.systems, [None, *comparison.pairs], strict=True):
        one = system.summary
        behind = one.architecture.partition("?")[2]
        guard = read_options(behind)[GUARD] if behind else "none"
        shown = [f"{one.exact_match.n}", interval(one.exact_match), f"{one.total_tokens:,.0f}"]
        shown += [f"{one.loop_share:.1%}", f"{one.loop_token_share:.1%}"]
        if pair is not None:
            shown += [bounds(pair["total_tokens"].interval, 1.0), signed(pair["exact_match"].interval)]
        lines.append(f"| {guard} | {' | '.join(shown if pair else [*shown, '', ''])} |")
    return "\n".join(lines)


def ablation_table(run: Path) -> str:
    """Pairs of the run's architectures, in its order, as a Markdown table: ReWOO and an agent with the same change."""
    names = [each.name for each in read_manifest(run).architectures]
    pairs = list(zip(names[::2], names[1::2], strict=True))
    return pairs_table(["ReWOO", "against"], {pair: (run, pair) for pair in pairs})


def pairs_table(heads: Sequence[str], pairs: Mapping[tuple[str, ...], tuple[Path, tuple[str, str]]]) -> str:
    """A row per pair of a run's architectures (ReWOO first), after its first cells."""
    columns = ["n", "EM of ReWOO", "EM of the other", "other - ReWOO", "tokens", "tokens of the other"]
    columns += ["x ReWOO's", "where both answered (n)", f"the other {LOOPS}"]
    columns += [f"dollars x ReWOO's, {title}" for title in SHOWN.values()]
    lines = [f"| {' | '.join([*heads, *columns])} |", f"|{' --- |' * len(heads)}{' ---: |' * len(columns)}"]
    for cells, (run, (rewoo, agent)) in pairs.items():
        rows = load(run)
        shared = rows.groupby(["example_id", "trial"], observed=True)["architecture"].transform("nunique")
        rows = rows[(shared == rows["architecture"].nunique()) & rows["architecture"].isin([rewoo, agent])]
        priced = [Pricing(cost_usd=each.usd) for each in priced_rows([run], rows, [[name] for name in SHOWN])]
        plain, *dollars = (compare(rows, intersect=True, baseline=rewoo, pricing=price) for price in (None, *priced))
        one, other = (next(s.summary for s in plain.systems if s.summary.architecture == n) for n in (rewoo, agent))
        pair = plain.pairs[0]
        shown = [
            one.total,
            interval(one.exact_match),
            interval(other.exact_match),
            signed(pair["exact_match"].interval),
        ]
        shown += [f"{each.total_tokens:,.0f}" for each in (one, other)]
        shown += [bounds(pair["total_tokens"].interval, 1.0), where_both_answered(pair), loops_text(other)]
        found = [{figure.measure: figure for figure in each.pairs[0].figures}.get(PRICED) for each in dollars]
        shown += [bounds(effect.interval, 1.0) if effect else "unknown" for effect in found]
        lines.append(f"| {' | '.join(map(str, [*cells, *shown]))} |")
    return "\n".join(lines)


def where_both_answered(pair: Pair) -> str:
    """The token ratio, with its number of questions; empty where that is all of them, or none."""
    some = pair.both_answered
    return "" if some is None else f"{bounds(some, 1.0)} ({some.n:,})"


def signed(value: Interval) -> str:
    return f"{value.estimate:+.3f} [{value.low:+.3f}, {value.high:+.3f}]"


def interval(value: Estimate) -> str:
    return "" if value.mean is None else f"{value.mean:.3f} [{value.low or 0:.3f}, {value.high or 0:.3f}]"


def token_ratios(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Each architecture's tokens as a multiple of ReWOO's, paired by question, with the 95% interval."""
    tokens = rows.pivot_table(
        index=["example_id", "trial"], columns="architecture", values="total_tokens", observed=True
    )
    for name in tokens.columns.drop("rewoo", errors="ignore") if "rewoo" in tokens else ():
        pairs = tokens[["rewoo", name]].dropna().astype(float)
        if len(pairs) > 1:
            found = ratio_of_means(pairs["rewoo"], pairs[name])
            yield str(name), f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    main()
