"""How often the gate on a live model is wrong: pairs of runs of one and the same system, and of a dearer one.

    python scripts/simulate_gate.py RUN [RUN ...]   # of your runs, a line an architecture
    python scripts/simulate_gate.py                 # the committed runs and the oracle's: results/gate.csv and gate.md
    python scripts/simulate_gate.py --page          # gate.md again, from gate.csv
    python scripts/simulate_gate.py --details       # the lines of gate.csv as a table

From the rows of real runs, for each architecture: n questions are drawn with replacement, the same
for both runs of a pair, and each run draws for each question one of the totals that were measured
for it. Where a question was measured T times (trials, or several runs of the same questions), the
totals are spread about the question's mean by sqrt(T / (T - 1)), or T draws would have less spread
than the model has. Where every question was measured once, nothing is known of the spread between
runs, and each run draws its own questions: the worst case, as if pairing explained nothing.

The second run of a pair is taken as it is (A/A), with every total 10% higher, or with a mean that is 10%
higher by its dearest tenth of questions alone. All go through the gate's own rule, at its own level, with all
architectures of the runs in one gate. A pair is caught, passes with the words "can't tell", or passes in
silence; a dearer system that passes in silence is the fault of a gate.

The oracle's runs are deterministic, so they are compared exactly and as whole run folders: a run again, a ReWOO that
cuts every plan after its first step, and a run with half of its questions failed. Each seed draws other questions.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.tests import smallest_growth
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.evaluation.api import bench
from rewoo_bench.gate.check import ComparisonTerms, check_run
from rewoo_bench.gate.count_checks import LIVE_MARGIN, ratio_beyond
from rewoo_bench.gate.verdict import FALSE_ALARMS
from rewoo_bench.runs.folder import load

Totals = NDArray[np.float64]
INCREASE = 1.10
ROOT = Path(__file__).parents[1]
RESULTS, MODELS = ROOT / "results", ROOT / "tests" / "golden" / "models"
REPORT, DETAILS = RESULTS / "gate.md", RESULTS / "gate.csv"
# A run with two trials, two runs of the same questions, and one with many questions that ended at the step limit.
COMMITTED = (
    (RESULTS / "gate-live",),
    (MODELS / "hotpotqa-smollm2-135m", MODELS / "hotpotqa-smollm2-135m-300"),
    (MODELS / "triviaqa-qwen-1.5b", MODELS / "triviaqa-qwen-1.5b-100"),
    (MODELS / "hotpotqa-qwen-1.5b-eight",),
)
ANY = "any of them"


def measured(runs: Sequence[str | Path]) -> dict[str, Totals]:
    """Total tokens by architecture, a row a question and a column a measurement, for questions that never failed."""
    rows = load(*runs)
    rows["total_tokens"] = rows["total_tokens"].astype("float64").where(rows["exact_match"].notna())
    rows["time"] = rows.groupby(["architecture", "example_id"]).cumcount()
    tables = {
        str(name): group.pivot_table(index="example_id", columns="time", values="total_tokens", dropna=False)
        for name, group in rows.groupby("architecture", sort=False)
    }
    return {name: table.dropna().to_numpy(dtype=float) for name, table in tables.items()}


def spread(totals: Totals) -> Totals:
    """The totals about each question's mean, with the spread that their number takes from them."""
    times = totals.shape[1]
    if times == 1:
        return totals
    means = totals.mean(axis=1, keepdims=True)
    widened: Totals = np.maximum(means + (totals - means) * np.sqrt(times / (times - 1)), 1)
    return widened


def draw(totals: Totals, n: int, random: np.random.Generator) -> tuple[Totals, Totals]:
    """Two runs of one system over n questions."""
    questions, times = totals.shape
    first = random.integers(questions, size=n)
    second = first if times > 1 else random.integers(questions, size=n)
    return totals[first, random.integers(times, size=n)], totals[second, random.integers(times, size=n)]


def same(totals: Totals) -> Totals:
    return totals


def dearer(totals: Totals) -> Totals:
    return totals * INCREASE


def dearer_tail(totals: Totals) -> Totals:
    """A mean that is 10% higher by the dearest tenth of the questions alone."""
    tail = totals >= np.quantile(totals, 0.9)
    return np.where(tail, totals + (INCREASE - 1) * totals.sum() / tail.sum(), totals)


CHANGES: dict[str, Callable[[Totals], Totals]] = {
    "the same system": same,
    "+10% everywhere": dearer,
    "+10% by the dearest tenth": dearer_tail,
}


@dataclass(frozen=True)
class Outcomes:
    """Shares of the pairs of one architecture, and of those of all architectures in which any failed."""

    caught: dict[str, float]
    cant_tell: dict[str, float]
    any_failed: float


def simulate(
    tables: Mapping[str, Totals], n: int, pairs: int, change: Callable[[Totals], Totals], seed: int = 0
) -> Outcomes:
    """What the gate says of `pairs` pairs of runs of n questions, the second of a system that was changed."""
    random = np.random.default_rng(seed)
    widened = {name: spread(totals) for name, totals in tables.items()}
    failed = {name: np.zeros(pairs, dtype=bool) for name in tables}
    undecided = {name: np.zeros(pairs, dtype=bool) for name in tables}
    for pair in range(pairs):
        for name, totals in widened.items():
            before, now = draw(totals, n, random)
            now, ids = change(now), np.arange(n)
            ratio = ratio_beyond(before, now, ids, LIVE_MARGIN, len(tables))
            failed[name][pair] = ratio is not None and ratio.low > 1
            smallest = smallest_growth(before, now, ids, error=FALSE_ALARMS / len(tables))
            undecided[name][pair] = not failed[name][pair] and smallest > LIVE_MARGIN
    return Outcomes(
        {name: float(each.mean()) for name, each in failed.items()},
        {name: float(each.mean()) for name, each in undecided.items()},
        float(np.max(list(failed.values()), axis=0).mean()),
    )


def cells(runs: str, tables: Mapping[str, Totals], sizes: Sequence[int], pairs: int) -> Iterator[dict[str, Any]]:
    """A line for each size, change and architecture: the shares that are caught and undecided, and pass in silence."""
    for n in sizes:
        for change, made in CHANGES.items():
            outcomes = simulate(tables, n, pairs, made)
            for name, totals in tables.items():
                caught, undecided = outcomes.caught[name], outcomes.cant_tell[name]
                yield {
                    **{"runs": runs, "n": n, "second run": change, "architecture": name},
                    **{"questions": totals.shape[0], "measurements": totals.shape[1], "caught": round(caught, 4)},
                    **{
                        "can't tell": round(undecided, 4),
                        "passes in silence": max(0.0, round(1 - caught - undecided, 4)),
                    },
                }
            if made is same:
                line = {"runs": runs, "n": n, "second run": change, "architecture": ANY}
                yield {**line, "caught": round(outcomes.any_failed, 4)}


def as_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines of gate.csv as Markdown."""
    names = ("runs", "n", "second run", "architecture", "measured", *SHARES)
    made = [names, ["---", "---:", "---", "---", "---", "---:", "---:", "---:"]]
    for line in lines:
        is_one = line["architecture"] != ANY
        measured = f"{line['questions']} x {line['measurements']}" if is_one else ""
        shares = [f"{float(line[name]):.1%}" if line.get(name) not in (None, "") else "" for name in SHARES]
        made.append([line["runs"], str(line["n"]), line["second run"], line["architecture"], measured, *shares])
    return "\n".join(f"| {' | '.join(line)} |" for line in made)


SHARES = ("caught", "can't tell", "passes in silence")


def summary(lines: Sequence[Mapping[str, Any]]) -> str:
    """A line for each size and change: the mean over architectures and runs, and the least and the most."""
    made = ["| n | second run | caught | can't tell | passes in silence |", "|---:|---|---:|---:|---:|"]
    own = [line for line in lines if line["architecture"] != ANY]
    for n, change in dict.fromkeys((line["n"], line["second run"]) for line in own):
        some = [line for line in own if (line["n"], line["second run"]) == (n, change)]
        shares = [np.array([float(line[name]) for line in some]) for name in SHARES]
        shown = [f"{each.mean():.1%} ({each.min():.1%}–{each.max():.1%})" for each in shares]
        made.append(f"| {n} | {change} | {' | '.join(shown)} |")
    return "\n".join(made)


ORACLE = "oracle"
SEEDS, QUESTIONS = 20, 30


def oracle_runs(folder: Path, seeds: int = SEEDS, questions: int = QUESTIONS) -> Iterator[dict[str, Any]]:
    """How many of the seeds' pairs of oracle runs fail the gate, by change and architecture: lines of gate.csv."""
    for architecture in ("rewoo", "react"):
        changes = {"the same again": _again, "half of the questions failed": _half_failed}
        if architecture == "rewoo":
            changes["one step of every plan only"] = _one_step
        before = [_run(architecture, folder / f"{architecture}-{seed}", seed, questions) for seed in range(seeds)]
        for name, change in changes.items():
            caught = 0
            for seed, run in enumerate(before):
                now = change(architecture, run, folder / f"{name}-{architecture}-{seed}", seed, questions)
                terms = ComparisonTerms(accept_prompts=True)
                caught += bool(check_run(now, baseline=run, terms=terms, allow_incomplete=True).failures)
            yield {
                **{"runs": ORACLE, "n": questions, "second run": name, "architecture": architecture},
                **{"questions": questions, "measurements": 1, "pairs": seeds, "caught": caught / seeds},
            }


def _run(architecture: str, out: Path, seed: int, questions: int) -> Path:
    return bench(architecture, out=out, questions=questions, seed=seed).folder


def _again(architecture: str, _: Path, out: Path, seed: int, questions: int) -> Path:
    return _run(architecture, out, seed, questions)


def _one_step(architecture: str, _: Path, out: Path, seed: int, questions: int) -> Path:
    """The architecture with every plan cut after its first step."""
    folder = out.with_name(f"{out.name} architecture")
    shutil.copytree(bundled_folder("architectures") / architecture, folder / architecture)
    path = folder / architecture / "architecture.toml"
    text = path.read_text(encoding="utf-8").replace("max_steps = 8", 'max_steps = 1\ntoo_long = "truncate"')
    path.write_text(text, encoding="utf-8")
    return _run(str(path.parent), out, seed, questions)


def _half_failed(_: str, run: Path, out: Path, seed: int, questions: int) -> Path:
    """The run with every second question failed by the infrastructure before its first call."""
    shutil.copytree(run, out)
    rows = pq.read_table(out / "questions.parquet")
    failed: dict[str, Any] = {
        "prediction": None,
        "exact_match": None,
        "f1": None,
        "stop_reason": "error",
        "error": "down",
    }
    failed |= dict.fromkeys(("total_tokens", "input_tokens", "output_tokens", "llm_calls", "tool_calls"), 0)
    lines = [{**line, **(failed if place % 2 else {})} for place, line in enumerate(rows.to_pylist())]
    pq.write_table(pa.Table.from_pylist(lines, schema=rows.schema), out / "questions.parquet")
    return out


def page(lines: Sequence[Mapping[str, Any]]) -> str:
    """results/gate.md."""
    live = [line for line in lines if line["runs"] != ORACLE]
    alarms = [float(line["caught"]) for line in live if line["architecture"] == ANY]
    silent = [line for line in live if line["second run"] != "the same system" and float(line[SHARES[2]] or 0) > 0]
    most = max(silent, key=lambda line: float(line[SHARES[2]]), default=None)
    worst = f"{float(most[SHARES[2]]):.1%} ({most['architecture']}, n = {most['n']})" if most else "none"
    oracle = [
        f"| {line['second run']} | {line['architecture']} | {line['pairs']} "
        f"| {float(line['caught']) * int(line['pairs']):.0f} |"
        for line in lines
        if line["runs"] == ORACLE
    ]
    systems = len({(line["runs"], line["architecture"]) for line in live if line["architecture"] != ANY})
    return PAGE.format(
        pairs=live[0]["pairs"],
        systems=systems,
        summary=summary(live),
        level=FALSE_ALARMS,
        alarms=f"{np.mean(alarms):.1%} ({min(alarms):.1%}–{max(alarms):.1%})",
        sets=len(COMMITTED),
        silent=worst,
        oracle="\n".join(oracle),
        **{"seeds": SEEDS, "questions": QUESTIONS},
    )


PAGE = """# What the gate catches

Made by `python scripts/simulate_gate.py`; its docstring says how. Every architecture's rates are in
[gate.csv](gate.csv) (`--details` prints them as a table).

## A live model

Pairs of runs of n questions are drawn from the measured totals of {systems} systems, each an architecture of a
committed run. The second run of a pair is of the same system, or of one that takes 10% more tokens. {pairs} pairs a
system and line; a cell is the mean of the systems (the least to the most). Caught: the gate fails. Can't tell: it
passes, and says that it couldn't have caught 5%. Of the same system "caught" is a false alarm, and silence is right.

{summary}

- **False alarms.** The rule aims at {level:.1%} of the runs. Of the pairs of the same system {alarms} have an
  architecture that fails ({sets} sets of runs, each n).
- **A dearer system that passes in silence**, which is the fault of a gate: at most {silent}.

## Deterministic runs (oracle)

Each of {seeds} seeds draws {questions} questions of `sample`. Both runs of a pair are of the same questions.

| second run | architecture | pairs | caught |
|---|---|---:|---:|
{oracle}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--page", action="store_true", help="write results/gate.md from results/gate.csv")
    parser.add_argument("--details", action="store_true", help="print results/gate.csv as a table")
    parser.add_argument("--pairs", type=int, default=300, help="pairs of runs of each row")
    parser.add_argument("-n", type=int, nargs="+", default=[30, 50, 100], help="questions of a run")
    options = parser.parse_args(arguments)
    if options.runs:
        print(as_table([*cells(options.runs[0].name, measured(options.runs), options.n, options.pairs)]))
        return
    if not options.page and not options.details:
        _write_details(options.n, options.pairs)
    with DETAILS.open(encoding="utf-8", newline="") as file:
        lines = [*csv.DictReader(file)]
    if options.details:
        print(as_table([line for line in lines if line["runs"] != ORACLE]))
    else:
        REPORT.write_text(page(lines), encoding="utf-8")


def _write_details(sizes: Sequence[int], pairs: int) -> None:
    """Simulates everything, into results/gate.csv."""
    with DETAILS.open("w", encoding="utf-8", newline="") as file, TemporaryDirectory() as folder:
        names = ("runs", "n", "second run", "architecture", "questions", "measurements", "pairs", *SHARES)
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for runs in COMMITTED:
            lines = cells(" ".join(run.name for run in runs), measured(runs), sizes, pairs)
            writer.writerows({**line, "pairs": pairs} for line in lines)
        writer.writerows(oracle_runs(Path(folder)))


if __name__ == "__main__":
    main()
