"""The processes of a run: which they are, and what each of them runs."""

from __future__ import annotations

from pathlib import Path


def under(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    started = [file.read_text("ascii").split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    children = [int(child) for of_thread in started for child in of_thread]
    return children + [grandchild for child in children for grandchild in under(child)]


def program_of(pid: int) -> str:
    """What a process runs: its script where there is one."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return next((Path(word).name for word in words if word.endswith(".py")), Path(words[0]).name)
