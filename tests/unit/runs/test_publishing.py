"""A published run has every number and prediction, and no text of the data set."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.evaluation.api import BenchRun, bench
from rewoo_bench.evaluation.resume import resumed
from rewoo_bench.runs.publish import PRIVATE_COLUMNS, publish


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    return bench("rewoo,react,direct", out=tmp_path_factory.mktemp("publish") / "run", questions=3)


def test_every_number_stays_and_no_text_does(run: BenchRun, tmp_path: Path) -> None:
    assert publish(run.folder, tmp_path / "out") == 9
    rows = rewoo_bench.load(tmp_path / "out")
    others = [*PRIVATE_COLUMNS, "run_folder"]
    pd.testing.assert_frame_equal(rows.drop(columns=others), run.rows.drop(columns=others))
    assert rows[list(PRIVATE_COLUMNS)].isna().all(axis=None)
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["calls.parquet", "questions.parquet", "run.json"]
    calls = pd.read_parquet(tmp_path / "out" / "calls.parquet").to_csv()
    told = calls + (tmp_path / "out" / "run.json").read_text("utf-8")
    assert not any(question in told for question in run.rows["question"])


def test_the_command_adds_a_page_without_texts(run: BenchRun, tmp_path: Path) -> None:
    for flags, pages in (([], 1), (["--no-report"], 0)):
        out = tmp_path / f"out{pages}"
        with pytest.raises(SystemExit) as done:
            main(["publish", str(run.folder), "--out", str(out), *flags])
        assert not done.value.code
        assert len(list(out.glob("report.html"))) == pages
    table = packed(tmp_path / "out1" / "report.html", "table")
    assert table["ids"] == list(run.rows["example_id"].unique())
    assert not any(question in json.dumps(table) for question in run.rows["question"])


def packed(page: Path, name: str) -> Any:
    """The JSON of a compressed part of a page."""
    part = re.search(f'id="{name}"[^>]*>([^<]*)<', page.read_text(encoding="utf-8"))
    assert part
    return json.loads(zlib.decompress(b64decode(part[1]), -zlib.MAX_WBITS))


def test_an_architecture_that_is_left_out_is_nowhere_else(run: BenchRun, tmp_path: Path) -> None:
    publish(run.folder, tmp_path / "out", without=["react"], texts=True)
    facts = json.loads((tmp_path / "out" / "run.json").read_text("utf-8"))
    assert [each["name"] for each in facts["architectures"]] == ["rewoo", "direct"]
    assert facts["rows"] == 6
    said = [(tmp_path / "out" / name).read_text("utf-8") for name in ("run.json", "traces.jsonl")]
    assert '"react"' not in said[0].replace('"without": [\n      "react"\n    ]', "") + said[1]


def test_no_folder_of_this_machine_is_published(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(bundled_folder("datasets") / "sample", folder)
    made = bench("direct", dataset=str(folder), model="oracle", out=tmp_path / "run", questions=2)
    facts = json.loads((made.folder / "run.json").read_text("utf-8"))
    facts["command"] = [
        "rewoo-bench",
        "run",
        f"--corpus={folder}/p.jsonl",
        "--arch",
        f"rewoo,{folder}",
        "--",
        str(folder),
    ]
    commands = [f"agent:MODE=all {folder}/bin/python {folder}/agent.py", f"{folder}/python -m x --in={folder}/a b"]
    addresses = ["http://host/v1/x", "router?policy=model&parents=cot+react", "km / h", f"{folder}/my file.json"]
    facts["command"] += [*commands, *addresses, f"NAME='{folder}/my-agent' --x"]
    facts["models"]["default"]["name"] = f"local/{folder}/small.gguf"
    (made.folder / "run.json").write_text(json.dumps(facts))
    publish(made.folder, tmp_path / "out")
    text = (tmp_path / "out" / "run.json").read_text("utf-8")
    assert str(tmp_path) not in text
    published = json.loads(text)
    assert published["command"][2:7] == ["--corpus=p.jsonl", "--arch", "rewoo,mine", "--", "mine"]
    assert published["command"][7:9] == ["agent:MODE=all python agent.py", "python -m x --in=a b"]
    assert published["command"][9:] == [*addresses[:3], "my file.json", "NAME='my-agent' --x"]
    assert published["models"]["default"]["name"] == "local/small.gguf"
    assert published["options"]["dataset"] == "mine"


def test_a_published_run_cant_be_resumed(run: BenchRun, tmp_path: Path) -> None:
    publish(run.folder, tmp_path / "out")
    with pytest.raises(UsageError, match="this run was published: there is nothing to go on with"):
        resumed(tmp_path / "out", {})


def test_what_cant_be_published_is_one_line(run: BenchRun, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown architecture 'dirct', did you mean 'direct'"):
        publish(run.folder, tmp_path / "out", without=["dirct"])
    with pytest.raises(UsageError, match="holds a run or its copy already"):
        publish(run.folder, run.folder)
    cut = shutil.copytree(run.folder, tmp_path / "cut", ignore=shutil.ignore_patterns("calls.parquet"))
    with pytest.raises(DataError, match=r"has lost its calls\.parquet"):
        publish(cut, tmp_path / "out")
    with pytest.raises(DataError, match="is no run: "):
        publish(tmp_path, tmp_path / "out")
