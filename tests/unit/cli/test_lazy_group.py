"""The commands of `rewoo-bench`: each can be imported, and `--help` imports none."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from rewoo_bench.cli.main import group

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
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "Everyday:", "Traces of other programs:", "Research:"]
    listed = [line.split()[0] for line in shown.partition("Everyday:")[2].splitlines() if line.startswith("  ")]
    assert listed == NAMES
    assert not {f"rewoo_bench.cli.{name}" for name in NAMES} & set(imported.split())
