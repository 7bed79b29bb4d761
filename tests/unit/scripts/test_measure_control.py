"""The page of what an attacker can reach says what its table has."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pandas as pd
import pytest

from rewoo_bench.worlds.dojo import SUITES

sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts"))
import measure_control


def test_the_page_says_what_the_table_has() -> None:
    table = pd.read_csv(measure_control.FOLDER / "control.csv")
    page = (measure_control.FOLDER / "README.md").read_text("utf-8")
    assert measure_control.shown(table) in page
    assert measure_control.picture(table) == (measure_control.FOLDER / "reach.svg").read_text("utf-8")
    own = {(row["suite"], row["architecture"]): row for row in table.to_dict("records")}
    assert own["all", "rewoo-json"]["cases"] == 949
    assert own["all", "rewoo-json"]["new_calls"] == 0
    frozen = own["banking", "rewoo-json?frozen_arguments=yes"]
    assert (frozen["changed_arguments"], frozen["attack_succeeded"]) == (0, 0)
    banking = own["banking", "rewoo-json"]
    in_banking = banking["changed_arguments"] / banking["cases"]
    assert f"in banking {100 * in_banking:.0f}%." in page
    assert f"stops all {banking['attack_succeeded']} attacks" in page


@pytest.mark.timeout(1800)
@pytest.mark.skipif(importlib.util.find_spec("agentdojo") is None, reason="needs agentdojo")
@pytest.mark.parametrize(
    "suite", [pytest.param(s, marks=pytest.mark.slow if s == "banking" else pytest.mark.nightly) for s in SUITES]
)
def test_the_rows_of_a_suite_are_made_again(suite: str, tmp_path: Path) -> None:
    written = pd.read_csv(measure_control.FOLDER / "control.csv")
    made = measure_control.measured(suite, tmp_path / "run")
    assert written[written["suite"] == suite].to_csv(index=False) == made.to_csv(index=False)
