"""What a command prints: the one place where texts are made harmless for a terminal."""

from __future__ import annotations

import sys

from rewoo_bench.text.escaping import terminal


def echo(text: str, *, err: bool = False) -> None:
    """Prints a text on standard output or standard error, without signs that would move the cursor."""
    print(terminal(text), file=sys.stderr if err else sys.stdout, flush=True)


def announce(text: str) -> None:
    """Says on standard error what takes some seconds, where somebody may be waiting at a terminal."""
    if sys.stderr.isatty():
        echo(text, err=True)
