"""The tables of forms in docs/architectures.md: its options work, and its numbers are the runs'."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from rewoo_bench.runners.architecture import load_architecture

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## As in the papers\n")[2].partition("\n## ")[0]
OPTIONS = sorted(set(re.findall(r"`((?:rewoo|direct|react|cot|llmcompiler)\?[^`]+)`", SECTION)))


def test_the_table_has_an_option_for_each_architecture_of_a_paper() -> None:
    assert {option.partition("?")[0] for option in OPTIONS} == {"rewoo", "direct", "react", "cot", "llmcompiler"}


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_is_one_that_changes_the_form_and_run_json_says_so(option: str) -> None:
    plain, changed = (load_architecture(name, style="multihop").manifest for name in (option.partition("?")[0], option))
    assert any(plain[fact] != changed[fact] for fact in ("settings", "tools", "exemplars"))


def test_the_share_of_lookups_that_fail_is_that_of_the_run() -> None:
    calls = pd.read_parquet(ROOT / "tests" / "golden" / "models" / "triviaqa-qwen-1.5b-100" / "calls.parquet")
    lookups = calls[(calls["architecture"] == "react") & (calls["name"] == "Lookup")]
    assert f"{(lookups['status'] == 'error').sum()} of {len(lookups)} were errors" in SECTION
