"""How far `plannable` is to be trusted: what it predicts from a loop's traces, against what a planner took.

    python scripts/measure_plannable.py --dataset sample --dataset 'chain?hops=4' --run RUN

Asks the oracle the questions of each `--dataset`, and reads each `--run`, of a model.

For each run with a loop and its planning twin: the ratio of planner to loop that the loop's traces predict, and the
measured one, of model calls, tokens and dollars under each rule.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import rewoo_bench
from rewoo_bench import analysis
from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.analysis.stats.paired import ratio_of_means

LOOP = "react-native"
TWINS = {"rewoo-json": "plan", "rewoo-json?solver_evidence=unread": "plan-unread", "rewoo-code?max_exemplars=0": "code"}
KEY = ["example_id", "trial"]
TABLE = Path(analysis.__file__).parent / "plannable" / "predicted.csv"


def cells_of(run: Path) -> list[dict[str, object]]:
    """A row for each pair of twins and measure of a run."""
    rows = rewoo_bench.load(run)
    names = list(SHOWN)
    for name, found in zip(names, priced_rows([run], rows, [[name] for name in names]), strict=True):
        rows[f"usd:{name}"] = found.usd
    predicted = plannable(run, names).tasks
    cells = []
    of_loop = predicted[predicted["architecture"] == LOOP]
    for planner, way in TWINS.items():
        if planner not in set(rows["architecture"].astype(str)):
            continue
        wide = {each: of_loop[of_loop["way"] == each].set_index(KEY) for each in ("loop", way)}
        own = rows[rows["architecture"].astype(str) == planner].set_index(KEY)
        shared = wide["loop"].index.intersection(own.index)
        tasks = shared.get_level_values(0).to_numpy()
        for measure in ("model_calls", "total_tokens", *(f"usd:{name}" for name in names)):
            base, plan = (amounts(wide[each].loc[shared], measure) for each in ("loop", way))
            took = amounts(own.loc[shared], measure)
            says, was = (ratio_of_means(base, each, clusters=tasks) for each in (plan, took))
            both = ratio_of_means(plan, took, clusters=tasks)
            cells.append({
                "dataset": str(rows["dataset"].iloc[0]), "model": Path(str(rows["model"].iloc[0])).name, "way": way,
                "measure": measure, "n": says.n,
                "predicted": says.estimate, "predicted_low": says.low, "predicted_high": says.high,
                "measured": was.estimate, "measured_low": was.low, "measured_high": was.high,
                "took_per_predicted": both.estimate, "low": both.low, "high": both.high,
            })  # fmt: skip
    return cells


def amounts(rows: pd.DataFrame, measure: str) -> np.ndarray:
    if measure == "total_tokens":
        return (rows["input_tokens"] + rows["output_tokens"]).to_numpy(float)
    if measure == "model_calls" and measure not in rows:
        return rows["llm_calls"].to_numpy(float)
    return rows[measure].to_numpy(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TABLE, help="The table.")
    parser.add_argument("--run", type=Path, action="append", default=[], help="A finished run to read; repeatable.")
    parser.add_argument("--dataset", action="append", default=[], help="A data set to ask the oracle; repeatable.")
    parser.add_argument("-n", type=int, default=50, help="Questions of each.")
    given = parser.parse_args()
    cells = [cell for run in given.run for cell in cells_of(run)]
    names = [LOOP, *TWINS]
    with tempfile.TemporaryDirectory() as folder:
        for number, dataset in enumerate(given.dataset):
            out = Path(folder, str(number))
            rewoo_bench.bench(architectures=names, dataset=dataset, questions=given.n, model="oracle", out=out,
                              max_steps=40, progress=False, report=False)  # fmt: skip
            cells += cells_of(out)
    table = pd.DataFrame(cells)
    table.round(4).to_csv(given.out, index=False)
    print(table.drop(columns=["predicted_low", "predicted_high", "measured_low", "measured_high"]).round(3).to_string())


if __name__ == "__main__":
    main()
