"""The commands of `rewoo-bench`: each can be imported, and `--help` imports none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from rewoo_bench.cli.main import group, main

NAMES = group.list_commands(click.Context(group))


@pytest.mark.parametrize("name", NAMES)
def test_each_command_is_where_the_group_looks(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.name == name
    assert command.help


def test_help_names_each_command_and_imports_none(capfd: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys; from rewoo_bench.cli.main import group\n"
        "group.main(['--help'], standalone_mode=False)\n"
        "print(*(name for name in sys.modules if name.startswith('rewoo_bench.')), file=sys.stderr)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    shown, imported = capfd.readouterr()
    listed = [line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert listed == NAMES
    assert not {f"rewoo_bench.cli.{name}" for name in NAMES} & set(imported.split())


def test_a_flag_given_twice_says_that_the_last_one_counts(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ["--format", "csv", "--by", "hops", "--format", "json", "--prices", "none", "--prices", "openai"]
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path / "none"), *given])
    said, refused = capfd.readouterr().err.splitlines()
    assert said == "rewoo-bench: --format is given 2 times, the last one counts"
    assert "is no run" in refused


@pytest.mark.parametrize("name", ["import", "runs", "compare", "show", "report", "report --live", "new arch"])
def test_a_name_that_no_file_can_have_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "a" * 300])
    (line,) = capfd.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert line.startswith("rewoo-bench: '")
    assert line.endswith("' …: File name too long")
