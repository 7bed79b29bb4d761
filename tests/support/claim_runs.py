"""Made-up run folders to test claims on, a small file of claims, and its golden output.

python tests/support/claim_runs.py     # writes tests/golden/claims anew
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from comparison_rows import system

from rewoo_bench.analysis.claims import Finding, check, gather, read_claims
from rewoo_bench.analysis.claims.check import ClaimsFormat, render_claims
from rewoo_bench.analysis.claims.run_groups import BY_FORMAT
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.manifest import manifest_of, write_manifest

GOLDEN = Path(__file__).parents[1] / "golden" / "claims"
ENDINGS: dict[ClaimsFormat, str] = {"terminal": "txt", "markdown": "md"}
SMALL = """
[sources]
"somebody | 2023" = "Somebody and others 2023"

[[claim]]
id = "tokens"
says = "ReAct takes 2.5 times the tokens of ReWOO"
source = ["somebody | 2023, Table 1: 5 / 2", "nobody 2024"]
number = 2.5
measure = { name = "ratio", column = "total_tokens", of = "react", to = "rewoo" }
on = { data = ["hotpotqa"] }
rule = { relative = 0.2 }
note = "a fifth of `total_tokens` to either side"

[[claim]]
id = "better"
says = "ReWOO is right more often than ReAct, by 4 points"
source = "somebody 2023, Table 1"
number = 0.04
measure = { name = "difference", column = "exact_match", of = "rewoo", minus = "react" }
on = { data = ["hotpotqa"] }
rule = { above = 0 }

[[claim]]
id = "failing"
says = "ReAct takes more tokens where all tools fail"
source = "somebody 2023, Table 2"
measure = { name = "change", column = "total_tokens", of = "react" }
on = { failing = true }
rule = { above = 0 }
"""


def claims_file(folder: Path, text: str = SMALL) -> Path:
    path = folder / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return path


def one_claim(rule: str, measure: str = "", on: str = "", **keys: Any) -> str:
    """A claims.toml of one claim; the measure is ReAct's tokens over ReWOO's where none is given."""
    measure = measure or 'name = "ratio", column = "total_tokens", of = "react", to = "rewoo"'
    lines = ["[[claim]]", 'id = "it"', 'says = "so"', 'source = "there"']
    lines += [f"{key} = {value}" for key, value in keys.items()]
    return "\n".join([*lines, f"measure = {{ {measure} }}", f"rule = {{ {rule} }}", f"on = {{ {on} }}"])


def run_folder(
    folder: Path,
    *systems: list[dict[str, Any]],
    calls: Sequence[dict[str, Any]] = (),
    data: str = "hotpotqa",
    ids: str = "1d",
    status: str = "done",
    generator: str | None = None,
    concurrency: int = 8,
    exemplars: dict[str, int] | None = None,
    **options: Any,
) -> Path:
    """A run of these rows; `options` are those of its run.json."""
    folder.mkdir()
    run = f"20261122-093000-a-{folder.name}"
    rows = [{**row, "run_id": run, "dataset": data, "planner_model": row["model"], "solver_model": row["model"]}
            for rows in systems for row in rows]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS), folder / "questions.parquet")
    if calls:
        pq.write_table(pa.Table.from_pylist(list(calls), schema=CALLS), folder / "calls.parquet")
    names = dict.fromkeys(row["architecture"] for row in rows)
    form = next((name for name in BY_FORMAT if name == data.partition("?")[0]), "sample")
    made = {
        "run_id": run,
        "status": status,
        "options": {"temperature": 0.0, **options},
        "dataset": {"name": data, "format": form, "seed": 0, "source": {"generator": generator}, "ids_hash": ids},
        "architectures": [{"name": name, "exemplars": exemplars or {}} for name in names],
        "models": {"default": {"name": rows[0]["model"]}} if rows else {},
        "concurrency": concurrency,
        "corpus": None,
    }
    write_manifest(folder, manifest_of(made))
    return folder


def found(text: str, folder: Path, *runs: Path) -> list[Finding]:
    """What a claims.toml of this text makes of the runs."""
    return check(read_claims(claims_file(folder, text)), gather(*runs))


def small(folder: Path) -> list[Finding]:
    """Three claims on a model of a few questions and on an oracle."""
    right, wrong = "1101100111", "1100100101"
    runs = [  # a model's, an oracle's, a small model's, and the model's with failing tools, which somebody stopped
        run_folder(folder / "0001", system(matches=right), system("react", wrong, 2600)),
        run_folder(
            folder / "0002", system(matches=right, model="oracle"), system("react", right, 1700, model="oracle")
        ),
        run_folder(
            folder / "0004", system(matches=right, model="tiny-135m"), system("react", wrong, 900, model="tiny-135m")
        ),
        run_folder(folder / "0003", system("react", "0" * 10, 3300), tool_failure_rate=1.0, status="stopped"),
    ]
    return found(SMALL, folder, *runs)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        findings = small(Path(work))
    for form, ending in ENDINGS.items():
        (GOLDEN / f"small.{ending}").write_text(render_claims(findings, form) + "\n", encoding="utf-8")
