"""The processes of a run: which they are, and what each of them runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def children(pid: int | str) -> list[int]:
    """The processes that a process (`self` is this one) started."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has just ended
            found += map(int, file.read_text("ascii").split())
    return found


def under(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    own = children(pid)
    return own + [grandchild for child in own for grandchild in under(child)]


def program_of(pid: int) -> str:
    """What a process runs: its script where there is one."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return next((Path(word).name for word in words if word.endswith(".py")), Path(words[0]).name)
