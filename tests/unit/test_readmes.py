"""The READMEs: the first one is short, and no link of any leads nowhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.llmcompiler import LLMCompilerSettings
from rewoo_bench.runners.rewoo import ReWOOSettings

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
PAGES = LISTED.split() or [str(path.relative_to(ROOT)) for path in ROOT.glob("*/README.md")]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub links them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_takes_two_minutes() -> None:
    """500 words; 30 numbers in the table and 6 elsewhere, beside versions and those of papers."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 500
    table = "\n".join(re.findall(r"^\|.*$", text, re.MULTILINE))
    assert len(re.findall(r"\d[\d.,]*", table)) <= 30
    prose = re.sub(r"^\|.*$|```.*?```|\([^)]*\)|Python 3\.11|arXiv [\d.]+|(Xu|Yao) et al. \d+|Apache-2.0", "", text,
                   flags=re.MULTILINE | re.DOTALL)  # fmt: skip
    assert len(re.findall(r"\d[\d.,]*", prose)) <= 6


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for link in LINK.findall(text):
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent / file if file else ROOT / page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_the_questions_that_commands_name_are_in_every_run_of_the_sample() -> None:
    asked = [example.id for example in load_dataset_examples("sample", limit=5).examples]
    named = {
        (page, name)
        for page in PAGES
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if re.search(r"rewoo-bench show|#q=|\.show\(", line)
        for name in re.findall(r"sample-\d+", line)
    }
    assert named
    assert {name for _, name in named} <= set(asked)


@pytest.mark.parametrize(("page", "settings"), [("rewoo", ReWOOSettings), ("llmcompiler", LLMCompilerSettings)])
def test_a_table_of_settings_has_their_defaults(page: str, settings: type[BaseModel]) -> None:
    """A row may have several settings, with a default for each."""
    text = (ROOT / "architectures" / page / "README.md").read_text(encoding="utf-8")
    table = re.search(r"^\| key \| default \|.*\n\|[-|]+\n((?:\|.*\n?)+)", text, re.MULTILINE)
    assert table
    stated: dict[str, str] = {}
    for row in table[1].splitlines():
        keys, defaults = (re.findall(r"[^\s,`]+", cell) for cell in row.split("|")[1:3])
        stated |= dict(zip(keys, defaults, strict=True))
    assert stated == {key: str(value).lower() for key, value in settings().model_dump().items()}
