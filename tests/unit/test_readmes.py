"""The READMEs: the first one is short, and no link of any leads nowhere; settings are shown where they are set."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.llmcompiler import LLMCompilerSettings
from rewoo_bench.runners.react import ReActSettings
from rewoo_bench.runners.react_code import ReActCodeSettings
from rewoo_bench.runners.rewoo import ReWOOSettings
from rewoo_bench.runners.rewoo_code import ReWOOCodeSettings

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


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("rewoo", ReWOOSettings),
        ("llmcompiler", LLMCompilerSettings),
        ("rewoo-code", ReWOOCodeSettings),
        ("react", ReActSettings),
        ("react-code", ReActCodeSettings),
    ],
)
def test_architecture_toml_shows_every_setting_with_its_default(name: str, settings: type[BaseModel]) -> None:
    """Behind a `#` those that it doesn't need to set."""
    text = (ROOT / "architectures" / name / "architecture.toml").read_text(encoding="utf-8")
    shown = re.sub(r"^# (?=\w+ = )", "", text.partition("[settings]\n")[2], flags=re.MULTILINE)
    assert tomllib.loads(shown) == settings().model_dump()
