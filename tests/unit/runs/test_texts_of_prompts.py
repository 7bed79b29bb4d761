"""Texts of recorded prompts: a long conversation's are read from its journal once, not once for each call."""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio

from rewoo_bench.imports.write import import_run
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.prompts import text_reader


def test_each_text_is_read_once(tmp_path: Path) -> None:
    said = [{"role": "assistant", "content": f"reply {number}"} for number in range(2_100)]
    (tmp_path / "long.json").write_text(json.dumps({"messages": [{"role": "user", "content": "Go on."}, *said]}))
    anyio.run(partial(import_run, [tmp_path / "long.json"], tmp_path / "run"))
    with closing(connect_to_read(tmp_path / "run" / "journal.sqlite")) as database:
        ids = [row[0] for row in database.each("texts")]
        read = text_reader(database)
        texts = [read(id_) for id_ in ids]
    assert f"reply {2_099}" not in texts  # no prompt has the last one
    assert len(texts) > 4_000
    assert [read(id_) for id_ in ids[-2_100:]] == texts[-2_100:]  # from memory: the file is closed
