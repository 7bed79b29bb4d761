"""What a command prints: the one place where texts are made harmless for a terminal."""

from __future__ import annotations

import sys

from rewoo_bench.text.escaping import terminal


def echo(text: str, *, err: bool = False) -> None:
    """Prints a text on standard output or standard error, without signs that would move the cursor."""
    print(terminal(text), file=sys.stderr if err else sys.stdout, flush=True)
