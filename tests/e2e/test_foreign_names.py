"""A run folder of somebody else's: what its names and errors hold stays text, wherever it is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from command_runs import quiet

from rewoo_bench.cli.main import main

NASTY = (
    "x\n\\input{/etc/passwd}",
    "x\n::set-output name=a::b",
    "  ::warning file=a::b",
    "##[error]no",
    '<img src=x onerror="alert(1)">',
    "[a](http://evil.example) ![b](http://evil.example/b.png)",
    "www.evil.example @everyone",
    "=HYPERLINK(1)",
    "+1+cmd|' /C calc'!A0",
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x9b2J\x07\r\x08",
    "\u202egnp.exe\u2066\u200b\u2028",
    "a|b`c*d~e_f_\\",
    "% & $ # _ { } ~ ^ \\",
)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign") / "run"
    assert quiet("--arch", "rewoo,react", "-n", 6, "--model", "oracle", "--out", folder) == 0
    return folder


def edited(run: Path, folder: Path, nasty: str) -> Path:
    """The run with the text in every name and every error."""
    folder.mkdir()
    manifest = json.loads((run / "run.json").read_text())
    for architecture in manifest["architectures"]:
        architecture["name"] = f"{nasty}{architecture['name']}"
    (folder / "run.json").write_text(json.dumps(manifest))
    for name in ("questions.parquet", "calls.parquet"):
        rows = pd.read_parquet(run / name, dtype_backend="pyarrow")
        for column in {"dataset", "model", "architecture", "question_type", "error", "example_id"} & set(rows.columns):
            # Only whole columns of it: an architecture keeps what tells it from the other.
            keeps = column in ("architecture", "example_id")
            rows[column] = [f"{nasty}{value if keeps else ''}" for value in rows[column]]
        rows.to_parquet(folder / name)
    return folder


def said(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Both streams of a command; it may refuse the run, but in a line."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    found = capfd.readouterr()
    assert ended.value.code in (0, 1, 2, 3), found.err
    return found.out + found.err


@pytest.mark.parametrize("nasty", [*NASTY[:2], "\n".join(NASTY[2:])])
def test_a_nasty_name_stays_text(
    run: Path, tmp_path: Path, nasty: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step_summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step_summary))
    foreign = edited(run, tmp_path / "foreign", nasty)
    shown = {form: said(capfd, "compare", foreign, "--format", form) for form in ("terminal", "csv", "json")}
    shown["gate"] = said(capfd, "gate", foreign, "--baseline", run)
    shown["claims"] = said(capfd, "claims", foreign)
    shown["publish"] = said(capfd, "publish", foreign, "--out", tmp_path / "copy", "--without", "nobody")
    marked = said(capfd, "compare", foreign, "--format", "markdown") + said(
        capfd, "claims", foreign, "--format", "markdown"
    )
    marked += step_summary.read_text() if step_summary.exists() else ""
    tex = said(capfd, "compare", foreign, "--format", "latex")
    for text in (*shown.values(), marked, tex):
        assert CONTROLS.search(text) is None
        assert re.search(r"^\s*(::|##\[)", text, re.MULTILINE) is None
    assert re.search(r"<img|https?://evil|(?<!&#)@everyone|www\.evil|(?<!\\)\]\(http", marked) is None
    assert "\\input" not in [line for line in tex.splitlines() if not line.startswith("%")]
    assert re.search(r"^[^%]*\\input\{", tex, re.MULTILINE) is None
    cells = [cell for row in csv.reader(io.StringIO(shown["csv"])) for cell in row]
    assert [cell for cell in cells if re.match(r"[=@\t]|[+-](?![\d.])", cell)] == []
    json.loads(shown["json"].partition("\n}")[0][shown["json"].find("{") :] + "\n}")
