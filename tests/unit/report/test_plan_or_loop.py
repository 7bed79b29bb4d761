"""The calculator's numbers are Python's: its script runs in node, on tasks of many shapes and all its prices."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict
from random import Random

import pytest

from rewoo_bench.analysis.law import MOST_DEPTH, Estimate, Task, compared, cost, default_sizes, tie
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.report.calculator import PRICES, calculator_page, price_of

NODE = shutil.which("node")
ASKED = """
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map(([task, price]) => ({
  costs: costsOf(task, price, SIZES),
  tie: tie(task, price, SIZES, MOST_DEPTH),
  sentence: sentence(task, price, SIZES, MOST_DEPTH),
}))));
"""


def tasks(random: Random) -> list[Task]:
    """Shapes of all kinds, some with prompts near the shortest cached prefix."""
    return [
        Task(
            depth=random.randint(1, 12),
            breadth=random.choice((1, 1, 3)),
            page=random.choice((5, 50, 300, 900, 1500, 6000)),
            reads=random.random() < 0.6,
            tools=random.choice((1, 10, 50)),
            tool=random.choice((None, 100)),
            reasoning=random.choice((0, 200)),
            readers_reason=random.random() < 0.3,
            system=random.choice((0, 800, 4000)),
            start=random.choice((None, 7)),
            name=random.choice((None, 9)),
            loop_exemplars=random.choice((0, 500)),
        )
        for _ in range(40)
    ]


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_page_calculates_what_python_does() -> None:
    script = re.search(r"<script>\n(.*?)const NAMES", calculator_page(), re.DOTALL)
    assert script
    shapes, names = tasks(Random(0)), [*PRICES, "openai_question", "anthropic_1h:claude-sonnet-4-5"]
    tariffs = [named_tariff(names[at % len(names)]) for at in range(len(shapes))]
    billed = [at % 2 == 0 for at in range(len(shapes))]
    asked = [
        (asdict(task), price_of(tariff) if as_billed else {**price_of(tariff), "tools": None})
        for task, tariff, as_billed in zip(shapes, tariffs, billed, strict=True)
    ]
    assert NODE
    ran = subprocess.run([NODE, "-e", script[1] + ASKED], input=json.dumps(asked), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    sizes = default_sizes()
    for task, tariff, as_billed, found in zip(shapes, tariffs, billed, json.loads(ran.stdout), strict=True):
        costs = {name: cost(name, task, tariff, sizes[name], tools_as_billed=as_billed) for name in compared(task)}
        assert found["costs"] == {name: pytest.approx(asdict(each), rel=1e-12) for name, each in costs.items()}
        expected = tie(task, tariff, tools_as_billed=as_billed)
        assert found["sentence"] == Estimate(task, tariff, costs, expected, as_billed).sentence
        assert found["tie"] == (None if expected is None else pytest.approx(expected, rel=1e-9))


def test_the_page_asks_no_network() -> None:
    page = calculator_page()
    assert not re.search(r"https?://|<link|src=|@import|fetch\(|XMLHttp", page)
    assert "/*" not in re.sub(r"/\*.*?\*/", "", page)  # every part was filled in
    assert f"MOST_DEPTH = {MOST_DEPTH}" in page
