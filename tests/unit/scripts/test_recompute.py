"""Whoever has pandas and scipy can compute the published figures from the published rows."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest

from rewoo_bench import load
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.config.price_sheets import RULES

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "recompute.py"
HOTPOTQA, KEY = "hotpotqa-qwen-1.5b-100", ["architecture", "example_id", "trial"]


def run(root: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, root / "scripts" / SCRIPT.name], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_the_published_figures_are_those_of_the_rows() -> None:
    code, said = run(ROOT)
    assert (code, [line for line in said.splitlines() if line.startswith("DIFFERS")]) == (0, [])
    assert said.count(": verdict: ") == 12
    alone = [line for line in said.splitlines() if not line.startswith("agrees")]
    assert alone[-1].endswith("0 differ, 0 are not found; 5 more are printed nowhere")
    assert {line.partition(": dollars, ")[2].partition(":")[0] for line in alone[:-1]} == set(RULES) - set(SHOWN)
    agreeing = [line for line in said.splitlines() if line.startswith("agrees")]
    assert sum("ReAct's loops" in line for line in agreeing) == 4
    assert sum("ReWOO: tokens where both answered" in line for line in agreeing) == 8


def test_each_rule_gives_the_dollars_that_the_package_gives() -> None:
    script, folder = runpy.run_path(str(SCRIPT)), ROOT / "results" / "models" / HOTPOTQA
    assert script["PRICES"].keys() == RULES.keys()
    rows = load(folder)
    for name, found in zip(RULES, priced_rows([folder], rows, [[name] for name in RULES]), strict=True):
        own = script["priced"](HOTPOTQA, script["PRICES"][name]).set_index(KEY)["usd"]
        asked = own.loc[pd.MultiIndex.from_frame(rows[KEY].astype(object))]
        assert asked.to_numpy() == pytest.approx(1000 * found.usd), name


def test_figures_that_differ_or_are_not_found_are_named(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for part in ("scripts/recompute.py", "README.md"):
        (tmp_path / part).write_bytes((ROOT / part).read_bytes())
    copytree(ROOT / "results" / "models", tmp_path / "results" / "models")
    for page, before, after in (
        ("README.md", "| rewoo | 0.27 ", "| rewoo | 0.28 "),
        ("README.md", "| react | 0.17 [0.11, 0.26]", "| react | 0.17"),
        ("README.md", "| cot | 0.09 ", "| CoT | 0.09 "),
        ("README.md", " times where both answered", " times"),
        ("results/models/README.md", "| 135M, TriviaQA | 300 | 0", "| 135M TriviaQA | 300 | 0"),
        ("results/models/README.md", " dollars, OpenAI's rule | dollars, A", " OpenAI's rule | dollars, A"),
        ("results/models/claims.md", "|ReAct's steps|", "|Steps of ReAct|"),
    ):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert before in text
        (tmp_path / page).write_text(text.replace(before, after), encoding="utf-8")
    code, said = run(tmp_path)
    assert code == 1
    different = [line for line in said.splitlines() if line.startswith("DIFFERS")]
    assert different == [
        "DIFFERS  README, rewoo: exact match [95% CI]: 0.2700 0.1927 0.3643; published: 0.28 [0.19, 0.36]",
        "DIFFERS  README, react: exact match [95% CI]: 0.1700 0.1089 0.2555; published: 0.17",
    ]
    for what, number in (
        ("README, cot", 6),
        ("README, ReAct times where both answered", 1),
        ("135M, TriviaQA, ReAct / ReWOO", 5),
        ("ReWOO: dollars, OpenAI's rule", 8),
        ("ReAct's steps", 4),
    ):
        assert len(re.findall(f"^MISSING .*{re.escape(what)}", said, re.MULTILINE)) == number, what
    assert "2 differ, 23 are not found" in said


def test_it_imports_nothing_of_the_project() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    others = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names)
    assert others == {"numpy", "pandas", "scipy"}
