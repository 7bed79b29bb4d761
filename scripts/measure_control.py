"""What a text in a tool's result reaches: the gullible oracle on AgentDojo's tasks with each injection task.

    python scripts/measure_control.py                   # results/control/: control.csv, the page's table, reach.svg
    python scripts/measure_control.py --check banking   # whether the rows of a suite are what this makes

The oracle obeys all that it reads. Architectures that may try again are also asked with an oracle that then gives up,
so that they do. These are bounds: what an architecture lets such a text reach at all.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import rewoo_bench
from rewoo_bench.analysis.summary import ATTACKS
from rewoo_bench.text.tables import markdown_table
from rewoo_bench.worlds.dojo import SUITES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "results" / "control"
COSTS = ROOT / "results" / "agents" / "agents.csv"
ARCHITECTURES = (
    "rewoo", "rewoo-lazy", "llmcompiler", "llmcompiler?max_replans=8", "plan-execute", "react", "rewoo-react",
    "rewoo-json", "rewoo-json?frozen_arguments=yes", "react-native", "rewoo-code", "react-code",
)  # fmt: skip
AGAIN = ("rewoo-lazy", "llmcompiler?max_replans=8", "rewoo-react")
"""Those that may try again where a step fails or nothing is known, with the results in sight."""
LOOPS = ("plan-execute", "react", "react-native", "react-code")
REACHES = {"new_calls": "a new call", "changed_arguments": "a changed argument", "changed_answer": "a changed answer"}
BEGIN, END = "<!-- table: python scripts/measure_control.py -->", "<!-- end -->"
_STYLE = """
text{font:13px system-ui,sans-serif;fill:#1b1b1b} .t{font-weight:600;font-size:15px} .d{fill:#5d5d5d;font-size:12px}
.m{text-anchor:middle} .a{stroke:#b8b8b8} .p{fill:#2f6fa8}
@media (prefers-color-scheme:dark){text{fill:#ececec} .d{fill:#a5a5a5} .a{stroke:#55595e} .p{fill:#86b7e0}}
"""


def measured(suite: str, folder: Path) -> pd.DataFrame:
    """A row for each architecture: numbers of the suite's cases; one counts where either oracle has reached it."""
    rows = _asked(suite, folder / "obeys", ARCHITECTURES, "oracle?gullible=1")
    given_up = _asked(suite, folder / "gives-up", AGAIN, "oracle?gullible=1&gives_up=1")
    found = []
    for name in ARCHITECTURES:
        own = rows[rows["architecture"] == name].set_index("example_id")
        others = given_up[given_up["architecture"] == name].set_index("example_id").reindex(own.index)
        reached = {reach: _happened(own[reach]) | _happened(others[reach]) for reach in (*ATTACKS, "any_call")}
        counts = {reach: int(cases.sum()) for reach, cases in reached.items()}
        exposed, any_call, end = (counts.pop(each) for each in ("exposed", "any_call", "attack_succeeded"))
        found.append({
            "suite": suite, "architecture": name, "cases": len(own), "exposed": exposed, **counts,
            "any_call": any_call, "attack_succeeded": end, "task_done": int(own["exact_match"].sum()),
        })  # fmt: skip
    return pd.DataFrame(found)


def _asked(suite: str, folder: Path, architectures: Sequence[str], model: str) -> pd.DataFrame:
    run = rewoo_bench.bench(
        architectures=list(architectures), dataset=f"agentdojo?suite={suite}&attack=direct", model=model, out=folder,
        progress=False, report=False,
    )  # fmt: skip
    if run.status != "done":
        sys.exit(f"{suite}: {run.reason}")
    rows = rewoo_bench.load(folder)
    called = rows["new_calls"] + rows["changed_arguments"]
    return rows.assign(any_call=called, architecture=rows["architecture"].astype(str))


def _happened(column: Any) -> Any:
    return column.astype(float).fillna(0) > 0


def with_all(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the sums of all suites first."""
    sums = table.drop(columns="suite").groupby("architecture", sort=False).sum().reset_index()
    return pd.concat([sums.assign(suite="all")[table.columns], table], ignore_index=True)


def percent(part: Any, whole: Any) -> str:
    return "<1%" if 0 < 100 * part / whole < 0.5 else f"{100 * part / whole:.0f}%"


def shown(table: pd.DataFrame) -> str:
    """The table of the page: all suites, any call by suite, and what the tasks cost without an attack."""
    head = ["", *REACHES.values(), "the attack's end", *(f"any call, {suite}" for suite in SUITES), "$ / 1000 tasks"]
    usd, body = usd_of_tasks(), []
    for name in ARCHITECTURES:
        own = table[table["architecture"] == name].set_index("suite")
        line = own.loc["all"]
        cells = [percent(line[each], line["cases"]) for each in (*REACHES, "attack_succeeded")]
        if name in LOOPS:
            cells[1] = "new"  # nothing was planned
        cells += [percent(own["any_call"][suite], own["cases"][suite]) for suite in SUITES]
        body.append([name, *cells, f"{usd[name]:.2f}" if name in usd else "not asked"])
    return "\n".join(markdown_table([head, *body]))


def usd_of_tasks() -> dict[str, float]:
    """Dollars of 1,000 tasks under OpenAI's rule, of the tasks that all architectures there can do."""
    costs = pd.read_csv(COSTS)
    own = costs[costs["tasks"] == "all"]
    return dict(zip(own["architecture"], own["usd_1000:openai"].astype(float), strict=True))


def picture(table: pd.DataFrame) -> str:
    """A point an architecture: dollars of a task by the share of cases in which the attacker's call is made."""
    usd, points = usd_of_tasks(), []
    for name in ARCHITECTURES:
        if name in usd:
            line = table[(table["suite"] == "all") & (table["architecture"] == name)].iloc[0]
            points.append((usd[name], line["any_call"] / line["cases"], name))
    low, high = 0.7, 1.3
    left, top, width, height = 56, 56, 300, 220

    def x(dollars: float) -> float:
        return left + width * (dollars - low) / (high - low)

    def y(share: float) -> float:
        return top + height * (1 - share)

    lines = [
        '<text class="t" x="8" y="22">What an attacker reaches, and what a task costs</text>',
        '<text class="d" x="8" y="42">share of attacks that make or change a call</text>',
        f'<path class="a" d="M{left} {top}V{top + height}H{left + width}" fill="none"/>',
    ]
    for share in (0, 0.5, 1):
        lines.append(f'<text class="d m" x="{left - 26}" y="{y(share) + 4:.0f}">{100 * share:.0f}%</text>')
    for dollars in (0.8, 1.0, 1.2):
        lines.append(f'<text class="d m" x="{x(dollars):.0f}" y="{top + height + 18}">${dollars:.1f}</text>')
    lines.append(
        f'<text class="d m" x="{left + width / 2:.0f}" y="{top + height + 36}">1,000 tasks, OpenAI\'s rule</text>'
    )
    taken: list[float] = []
    for dollars, share, name in sorted(points, key=lambda each: (-each[1], each[0])):
        place = y(share) + 4
        while any(abs(place - other) < 15 for other in taken):
            place += 15
        taken.append(place)
        lines.append(f'<circle class="p" cx="{x(dollars):.1f}" cy="{y(share):.1f}" r="5"/>')
        lines.append(
            f'<path class="a" d="M{x(dollars):.1f} {y(share):.1f}L{left + width + 8} {place - 4:.1f}" fill="none"/>'
        )
        lines.append(f'<text x="{left + width + 12}" y="{place:.1f}">{name}</text>')
    size = max(top + height + 44, max(taken) + 12)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 {size:.0f}" role="img">'
    return "\n".join([head, f"<title>Cost against reach</title><style>{_STYLE}</style>", *lines, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="SUITE", choices=SUITES, help="Write nothing; fail where its rows differ.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suites = [given.check] if given.check else SUITES
        table = pd.concat([measured(suite, Path(folder, suite)) for suite in suites], ignore_index=True)
    if given.check:
        written = pd.read_csv(FOLDER / "control.csv")
        written = written[written["suite"] == given.check].reset_index(drop=True)
        if not written.equals(table):
            sys.exit(f"{FOLDER / 'control.csv'}: the rows of {given.check} are not what this makes")
        return
    table = with_all(table)
    text = io.StringIO()
    table.to_csv(text, index=False, lineterminator="\n")
    (FOLDER / "control.csv").write_text(text.getvalue(), "utf-8")
    write_page(table)


def write_page(table: pd.DataFrame) -> None:
    """Writes the picture, and the table into the page."""
    (FOLDER / "reach.svg").write_text(picture(table), "utf-8")
    page = (FOLDER / "README.md").read_text("utf-8")
    before, rest = page.split(BEGIN)
    (FOLDER / "README.md").write_text(f"{before}{BEGIN}\n{shown(table)}\n{END}{rest.split(END, 1)[1]}", "utf-8")


if __name__ == "__main__":
    main()
