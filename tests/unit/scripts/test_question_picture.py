"""The README's picture is what the oracle makes of its question."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts"))
import question_picture


def test_the_picture_is_drawn_from_a_run() -> None:
    calls = question_picture.calls_of_one_question()
    drawn = question_picture.picture(calls)
    assert drawn == question_picture.FILE.read_text("utf-8")
    for name, sent in calls.groupby("architecture")["input_tokens"].sum().items():
        assert name in question_picture.SHOWN
        assert f"{sent:,.0f} tokens" in drawn
    numbers = re.findall(r">([\d,]+)</text>", drawn)
    assert numbers == [f"{sent:,.0f}" for sent in calls["input_tokens"]]
