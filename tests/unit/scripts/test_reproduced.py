"""Rows that were asked again, against published ones."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewoo_bench import bench, load

SCRIPT = Path(__file__).parents[3] / "scripts" / "reproduced.py"


def test_the_rows_that_differ_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(SCRIPT))["main"]
    for folder, n in ((tmp_path / "again/one", 3), (tmp_path / "study/runs/one", 4)):
        bench(["rewoo", "react"], dataset="sample", questions=n, out=folder)
    said = [str(tmp_path / "again"), str(tmp_path / "study")]
    rows = load(tmp_path / "again/one").groupby("architecture", observed=True)["total_tokens"].sum()
    ratio = round(rows["react"] / rows["rewoo"], 2)
    assert main(said) == 0
    head, line = capsys.readouterr().out.splitlines()[-2:]
    assert head == "run,questions,rows,differ,ratio_published,ratio_again,processor"
    assert line == f"one,3,6,0,{ratio},{ratio},"
    file = tmp_path / "again/one/questions.parquet"
    table = pq.read_table(file)
    for name, value in (("prediction", "Paris"), ("output_tokens", 1)):
        place, column = table.schema.get_field_index(name), table[name].to_pylist()
        changed = pa.array([value, *column[1:]] if name == "prediction" else [*column[:-1], value], table[name].type)
        table = table.set_column(place, table.schema.field(place), changed)
    pq.write_table(table, file)
    assert main(said) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"one,3,6,2,{ratio},")
    assert not last.startswith(f"one,3,6,2,{ratio},{ratio},")  # a row has one output token now
    manifest = json.loads((tmp_path / "again/one/run.json").read_text("utf-8"))
    manifest["models"]["default"]["processor"] = "x86_64 avx2"
    (tmp_path / "again/one/run.json").write_text(json.dumps(manifest), "utf-8")
    assert main(said) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{last}x86_64 avx2"
    with pytest.raises(SystemExit):
        main([str(tmp_path), str(tmp_path / "study")])
