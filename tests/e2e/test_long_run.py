"""A run of 4,000 answers goes through every command that reads one; by day it has 800."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_runs import quiet

from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, repeats: Callable[[int], int]) -> Path:
    folder = tmp_path_factory.mktemp("long") / "run"
    asked = ("--dataset", "chain?hops=2", "-n", repeats(1000), "--model", "oracle")
    assert quiet("--arch", "rewoo,react,direct,cot", *asked, "--out", folder) == 0
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "RUN", "--prices", "all"),
        ("report", "RUN", "--out", "OUT.html"),
        ("show", "RUN", "--random", "1"),
        ("plot", "RUN", "--out", "OUT"),
        ("runs", "RUN"),
        ("gate", "RUN", "--baseline", "OUT.json", "--update"),
        ("plannable", "RUN"),
        ("claims", "RUN"),
        ("publish", "RUN", "--out", "OUT"),
        ("rescore", "RUN"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_every_command_reads_it(arguments: tuple[str, ...], run: Path, tmp_path: Path) -> None:
    filled = [each.replace("RUN", str(run)).replace("OUT", str(tmp_path / "out")) for each in arguments]
    with pytest.raises(SystemExit) as ended:
        main(filled)
    assert ended.value.code == 0


def test_nothing_is_lost(run: Path, repeats: Callable[[int], int]) -> None:
    rows = load(run)
    assert rows.groupby("architecture").size().tolist() == [repeats(1000)] * 4
    assert rows["exact_match"].eq(1).all()
