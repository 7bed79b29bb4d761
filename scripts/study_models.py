"""Tables, figures and verdicts of the study in results/models, made from the numbers that lie there.

    python scripts/study_models.py

Each folder in results/models is a published run (`rewoo-bench publish`); this reads them all, asks no
model, and writes tables.md, claims.md, figures and their captions. The same runs give the same tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewoo_bench import compare, load
from rewoo_bench.claims.check import check
from rewoo_bench.claims.evidence import gather
from rewoo_bench.claims.render import render
from rewoo_bench.claims.spec import read_claims
from rewoo_bench.comparison_render import render as render_comparison
from rewoo_bench.plots import draw, read, save, write_captions
from rewoo_bench.results import MANIFEST, manifests

if TYPE_CHECKING:
    import pandas as pd

RESULTS = Path(__file__).parents[1] / "results" / "models"
FIGURES = ("ratio", "pareto", "parts", "paper")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    folder = parser.parse_args(arguments).results
    runs = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    sections = []
    for run in runs:
        comparison = compare(load(run), manifests=manifests(run))
        shown = render_comparison(comparison, "markdown").rstrip()
        sections.append(f"## {run.name}\n\n{shown}\n\n{endings(load(run))}")
    (folder / "tables.md").write_text("\n\n".join(sections).rstrip() + "\n", encoding="utf-8")
    findings = check(read_claims(), gather(*runs))
    (folder / "claims.md").write_text(render(findings, "markdown").rstrip() + "\n", encoding="utf-8")
    captions = {}
    for run in runs:
        for figure, picture in draw(read([run]), only=FIGURES, on_skip=lambda *_: None):
            name = f"{run.name}-{figure}"
            save(name, picture, folder, ["png"])
            captions[name] = f"**{picture.title}.** {picture.caption}"
    write_captions(folder, captions)
    print(f"{folder}: {len(runs)} runs, {len(captions)} figures")


def endings(rows: pd.DataFrame) -> str:
    """How the questions of each architecture ended, and how its plans went, as a Markdown table."""
    lines = [
        "**how they ended: questions**",
        "",
        "| system | n | answered | step limit | invalid plan | error | sound plan at first | new plans a question |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for architecture, its in rows.groupby("architecture", sort=False, observed=True):
        ended = its["stop_reason"].value_counts()
        counts = [int(ended.get(reason, 0)) for reason in ("answered", "step_limit", "invalid_plan", "error")]
        plans = ["", ""]
        if its["planner_tokens"].sum():
            plans = [f"{its['replans'].mean():.2f}"]
            # plan-execute plans anew after each step, by design
            sound = (its["replans"] == 0) & (its["stop_reason"] != "invalid_plan")
            plans.insert(0, "" if architecture == "plan-execute" else f"{int(sound.sum())}")
        lines.append(f"| {architecture} | {len(its)} | {' | '.join(map(str, [*counts, *plans]))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
