"""A run with several trials: its own output, compare and the report show each trial, and none of a run with one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_runs import quiet, run

from rewoo_bench.analysis.trials import OF_TRIALS
from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

ASKED = ("--arch", "rewoo,direct", "--model", "oracle", "-n", 4)
NAMES = [f"{name}, {of}" for name in ("rewoo", "direct") for of in ("trial 0", "trial 1", "trial 2", "mean", "spread")]
HEAD = ["right", "EM", "tokens", "model calls", "$ / 1000"]  # no seconds: an oracle answered


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert not ended.value.code
    return capfd.readouterr().out


def table(text: str, first: str) -> list[list[str]]:
    """The table of trials in an output."""
    below = text.partition(OF_TRIALS)[2]
    lines = [re.split(r"\s{2,}", line) for line in below.strip().split("\n\n")[0].splitlines()]
    assert lines[0] == [first, *HEAD]
    return lines[1:]


def tokens(folder: str) -> list[str]:
    """Of each row of the table. An oracle's trials are alike, so their mean is that of one, and their spread none."""
    rows = load(folder)
    means = [
        rows[(rows["architecture"] == name) & (rows["trial"] == 0)]["total_tokens"] for name in ("rewoo", "direct")
    ]
    return [text for own in means for text in (*[f"{own.sum() / 4:,.0f}"] * 4, "0")]


def test_a_run_and_compare_show_them(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet(*ASKED, "--trials", 3, "--out", "here") == 0
    for out, first in ((capfd.readouterr().out, "architecture"), (said(capfd, "compare", "here"), "system")):
        lines = table(out, first)
        assert [line[0] for line in lines] == NAMES
        assert [line[3] for line in lines] == tokens("here")
        over = ["3 trials"] * 2
        # one question needs more steps than rewoo may take
        assert [line[1] for line in lines] == [*["3 of 4"] * 3, *over, *["4 of 4"] * 3, *over]


def test_programs_get_the_same_rows(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet(*ASKED, "--trials", 3, "--out", "here", "--json") == 0
    own = json.loads(capfd.readouterr().out)["trials"]
    assert [(row["architecture"], row["kind"], row["trial"]) for row in own[:5]] == [
        ("rewoo", "trial", 0), ("rewoo", "trial", 1), ("rewoo", "trial", 2), ("rewoo", "mean", None),
        ("rewoo", "spread", None),
    ]  # fmt: skip
    assert [f"{row['total_tokens']:,.0f}" for row in own] == tokens("here")
    compared = json.loads(said(capfd, "compare", "here", "--format", "json"))["trials"]
    # `compare` has dollars at an example's price, which a run's JSON hasn't
    assert [{**row, "cost_usd": None} for row in compared] == [{"system": row["architecture"], **row} for row in own]
    assert {row["cost_usd"] for row in own} == {None}


def overview(page: Path) -> dict[str, Any]:
    found = re.search(r'id="overview">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def test_the_report_has_them(tmp_path: Path) -> None:
    assert run(*ASKED, "--trials", 3, "--no-progress", "--out", "here") == 0
    shown = overview(tmp_path / "here" / "report.html")["trials"]
    assert shown["caption"].lower() == OF_TRIALS.lower()
    assert shown["head"] == ["system", *HEAD]
    assert [(row[0], row[3]) for row in shown["rows"]] == list(zip(NAMES, tokens("here"), strict=True))
