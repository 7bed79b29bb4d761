"""A run that a cap ended: the advice is a command that gets further, and a resumed run may drop the cap."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_runs import quiet

from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

CAPPED = ("--arch", "direct", "--model", "oracle", "-n", 6, "--concurrency", 1, "--out", "here")


def test_the_advice_of_a_capped_run_gets_further(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet(*CAPPED, "--run-tokens", 200) == 3
    *_, note, command = capfd.readouterr().err.splitlines()
    assert note == f"{len(load('here'))} of 6 answers finished; continue with the rest with another cap:"
    program, subcommand, *arguments = shlex.split(command)
    assert (program, subcommand, arguments[:3]) == ("rewoo-bench", "run", ["--resume", "here", "--run-tokens"])
    before = len(load("here"))
    quiet(*arguments)
    assert len(load("here")) > before


def test_what_unfinished_questions_spent_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    capped = ("--arch", "react", "--model", "oracle", "-n", 6, "--out", "here", "--run-tokens", 3000)
    assert quiet(*capped) == 3
    told = capfd.readouterr().err
    (spent,) = re.findall("used ([0-9,]+) of", told)
    (unfinished,) = re.findall("unfinished questions have spent ([0-9,]+) tokens, which the tables leave out", told)
    rows = int(load("here")["billed_tokens"].sum())
    assert int(spent.replace(",", "")) == rows + int(unfinished.replace(",", ""))


def test_a_resumed_run_may_drop_its_cap(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet(*CAPPED, "--run-tokens", 1) == 3
    assert quiet("--resume", "here") == 3
    assert quiet("--resume", "here", "--run-tokens", "none", "--run-cost", "none") == 0
    assert len(load("here")) == 6


def test_a_run_file_may_have_no_cap() -> None:
    Path("run.toml").write_text("run-tokens = 'none'\nquestion_tokens = 9000\n")
    assert quiet("--from", "run.toml", *CAPPED) == 0
