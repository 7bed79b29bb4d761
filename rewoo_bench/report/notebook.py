"""`rewoo_bench.show`: questions of a run in a notebook, or in a Python session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.jupyter import JupyterMixin

from rewoo_bench.errors import UsageError
from rewoo_bench.report.terminal import Shown

MOST = 10  # questions, unless the caller asks for more
_COLUMNS = 120  # of a text without a terminal


class ShownQuestions(JupyterMixin):
    """Questions with the steps of each architecture: a notebook shows them as a table, `print` as text."""

    def __init__(self, shown: Shown, lines: Sequence[int]) -> None:
        self._shown = shown
        self._lines = lines
        self.ids: list[str] = [shown.table.columns["ids"][line] for line in lines]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from self._shown.parts(self._lines, options.max_width)

    def __str__(self) -> str:
        text = StringIO()
        Console(file=text, width=_COLUMNS, highlight=False, force_jupyter=False).print(self, markup=False)
        return text.getvalue()

    __repr__ = __str__


def show(
    run: str | Path,
    question: str | None = None,
    *,
    architectures: Sequence[str] = (),
    failed: bool = False,
    only_right: str | None = None,
    limit: int = MOST,
) -> ShownQuestions:
    """The steps of each architecture on a question of a finished run, the same look-ups in one row.

    `question` is an id, or a part of the question's text. Without one: the first `limit` questions, those that an
    architecture failed on (`failed`), or those that one architecture alone has right (`only_right`).
    Raises `UsageError` for an unknown architecture, and `DataError` for an unknown question or what is no run.
    """
    if not isinstance(run, str | Path):
        raise UsageError(f"expected the folder of a run, got {run!r}")
    shown = Shown(Path(run), [architectures] if isinstance(architectures, str) else architectures)
    lines = shown.named(question) if question else shown.with_outcome(failed=failed, only_right=only_right)
    return ShownQuestions(shown, lines[:limit])
