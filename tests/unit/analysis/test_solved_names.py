"""Where a world's check is the score, tables say `solved` in the place of EM, and leave out F1, which is the same."""

from __future__ import annotations

import re

import pytest
from comparison_rows import A, frame, manifest, system

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import tables
from rewoo_bench.analysis.summary import summaries_of
from rewoo_bench.analysis.summary_tables import summary_table
from rewoo_bench.analysis.trials import trial_rows, trial_table
from rewoo_bench.runs.manifest import Manifest
from rewoo_bench.runs.rows import Rows

EM = re.compile(r"\bEM\b|exact match")
WORLD = {A: manifest(A, dataset__scoring="solved")}
OTHER = {A: manifest(A)}
MEANS_NOTHING = "* an oracle is told the answers: its accuracy means nothing"
CAN_DO = "* an oracle makes no mistake: what it solved, the architecture can do"
BOTH = frame(system(matches="110100" * 10), system("react", matches="111111" * 10))
ORACLES = frame(system(model="oracle"), system("react", model="oracle"))


@pytest.mark.parametrize(("manifests", "named", "other"), [(WORLD, "solved", "EM"), (OTHER, "EM", "solved")])
def test_the_tables_of_a_run_name_the_score(manifests: dict[str, Manifest], named: str, other: str) -> None:
    shown = summary_table(summaries_of(BOTH, manifests))
    head = next(line for line in shown.splitlines() if line.startswith("architecture"))
    assert re.findall(r"\b(EM|solved|F1)\b", head) == [named, *(["F1"] if named == "EM" else [])]
    rows = trial_rows(Rows(frame(system(), system(trial=1))))
    heads, *_ = trial_table("system", [("rewoo", row) for row in rows], checked=named == "solved")
    assert named in heads
    assert other not in heads


def test_a_comparison_has_no_word_of_exact_match_in_a_world() -> None:
    comparison = compare(BOTH, manifests=WORLD)
    means, *_ = (table.cells[0] for table in tables(comparison))
    (differences,) = (table.cells[0] for table in tables(comparison) if "differences" in table.title)
    for heads in (means, differences):
        assert "solved" in heads
        assert "F1" not in heads
    assert "react is more accurate than rewoo, by about 50 points of solved tasks." in comparison.verdicts
    assert not EM.search(str(comparison))
    before = compare(BOTH, manifests=OTHER)
    assert "F1" in str(before)
    assert "by about 50 points of exact match." in str(before)
    assert before.pairs[0].figures == comparison.pairs[0].figures


@pytest.mark.parametrize(
    ("manifests", "said", "unsaid"), [(WORLD, CAN_DO, MEANS_NOTHING), (OTHER, MEANS_NOTHING, CAN_DO)]
)
def test_what_an_oracle_shows(manifests: dict[str, Manifest], said: str, unsaid: str) -> None:
    summaries, comparison = summaries_of(ORACLES, manifests), compare(ORACLES, manifests=manifests)
    assert [each.as_dict()["note"] for each in summaries] == [said.removeprefix("* ")] * 2
    frame_of = comparison.to_frame()
    scores = frame_of[frame_of["measure"] == "exact_match"]
    assert list(scores["meaningless"]) == [manifests is OTHER] * 3
    for shown in (summary_table(summaries), str(comparison)):
        assert said in shown
        assert unsaid not in shown
