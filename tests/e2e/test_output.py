"""Closed and full outputs: a command ends with its own exit code, and never with that of a failed gate."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command_runs import quiet

pytestmark = [
    pytest.mark.usefixtures("own_folder"),
    pytest.mark.skipif(sys.platform == "win32", reason="pipes and /dev/full"),
]

GOLDEN = Path(__file__).parents[1] / "golden" / "replay"
BIG = 2000.0  # mean tokens of `direct` stay below


@pytest.fixture
def folder(own_folder: None) -> str:
    assert quiet("--arch", "direct", "--model", "oracle", "-n", 3, "--out", "here") == 0
    for name, limit in (("passes", BIG), ("fails", 1.0)):
        Path(f"{name}.toml").write_text(
            '[[budget]]\narchitecture = "direct"\ndataset = "sample"\nmodel = "oracle"\n'
            f"total_tokens = {{ mean = {limit} }}\n"
        )
    return "here"


def ended(*arguments: str, closed: str = "", full: str = "") -> tuple[int, str]:
    """Exit code and standard error of a command; nobody reads the streams in `closed`, and those in `full` are full."""
    command = [sys.executable, "-m", "rewoo_bench", *arguments]
    redirections = {"stdout": ">", "stderr": "2>"}
    shell = 'exec "$@"' + "".join(f" {redirections[name]}/dev/full" for name in full.split())
    process = subprocess.Popen(
        ["sh", "-c", shell, "sh", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for name in closed.split():
        getattr(process, name).close()
    err = "" if "stderr" in closed else process.stderr.read()  # type: ignore[union-attr] # it is a pipe
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    return process.wait(120), err


@pytest.mark.by_day(2)
@pytest.mark.parametrize("closed", ["stdout stderr"])
@pytest.mark.parametrize(("budget", "code"), [("passes", 0), ("fails", 1)])
def test_a_gate_keeps_its_exit_code_where_nobody_reads(folder: str, budget: str, code: int, closed: str) -> None:
    assert ended("gate", folder, "--budgets", f"{budget}.toml", closed=closed) == (code, "")


@pytest.mark.by_day(1)
@pytest.mark.parametrize("arguments", [["--help"], ["compare", "here"]])
def test_a_command_is_silent_where_nobody_reads(folder: str, arguments: list[str]) -> None:
    assert ended(*arguments, closed="stdout") == (0, "")


@pytest.mark.by_day(1)
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_run_ends_its_work_where_nobody_reads(closed: str, folder: str) -> None:
    code, _ = ended("run", "--arch", "direct", "--model", "oracle", "-n", "3", "--out", "there", closed=closed)
    assert code == 0
    assert Path("there/questions.parquet").is_file()


@pytest.mark.by_day(2)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["gate", "here", "--budgets", "passes.toml"], 2),
        (["run", "--arch", "direct", "--model", "oracle", "-n", "1", "--no-progress", "--out", "there"], 3),
    ],
)
def test_a_full_output_is_one_line(folder: str, arguments: list[str], code: int) -> None:
    found, err = ended(*arguments, full="stdout")
    assert (found, err.count("\n")) == (code, 1)
    assert err.startswith("rewoo-bench: can't write to standard output: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_run_with_a_full_standard_error_ends_its_work(folder: str) -> None:
    assert ended("run", "--arch", "direct", "--model", "oracle", "-n", "1", "--out", "there", full="stderr")[0] == 0


TABLES: dict[str, list[str]] = {
    "compare": [str(GOLDEN)],
    "run": ["--arch", "rewoo,react", "--model", "oracle", "-n", "3", "--out", "made", "--no-progress", "--no-report"],
    "gate": ["here", "--budgets", "fails.toml"],
    "runs": ["."],
    "list": [],
}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("command", TABLES)
def test_on_a_terminal_of_80_columns_no_row_of_a_table_is_wider(command: str, folder: str) -> None:
    """A real process on a pseudo-terminal; sentences wrap, rows of numbers don't."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    run = [sys.executable, "-m", "rewoo_bench", command, *TABLES[command]]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(run, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the end of a terminal is an error on Linux
            while part := os.read(ours, 4096):
                shown += part
        process.wait()
    os.close(ours)
    starts = ("rewoo  ", "react  ", "react / ", "react - ", "direct  ", "here  ", "  ")
    rows = [line for line in shown.decode().splitlines() if line.startswith(starts)]
    assert rows
    assert max(map(len, rows)) <= 80
