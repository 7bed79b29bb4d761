"""Tables of cells, the first row of which is the header: as plain text, as Markdown and as CSV.

Each cell is made harmless here for what shows the table.

csv_cell("=HYPERLINK(1)")                 # "'=HYPERLINK(1)"
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rewoo_bench.text.escaping import plain_line, plain_markdown

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = re.compile(r"[-+<>$]*\d")  # the beginning of a cell
_FORMULA = tuple("=+-@\t\r")


WIDTH = 80
"""The most columns of a table, whatever the terminal has."""
_LONGEST_NAME = 0.4  # of the width; a longer one has a line of its own


def terminal_width() -> int:
    """Columns of the terminal that standard output is; a file and a pipe have no end."""
    on_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if on_terminal else sys.maxsize


def text_table(
    cells: Sequence[Sequence[str]], width: int | None = None, *, left: bool = False, grouped: bool = False
) -> list[str]:
    """A line for each row, with the first column to the left and the others to the right (texts: `left`).

    A table that is wider than `width` becomes several below each other, each of which begins with the first column.
    The default is `WIDTH`, or the terminal's where that is narrower; a table of texts takes all the terminal has.
    Where a row's name is long, its figures stand in the line below. `grouped`: rows with the same first cell stand
    below it, by their second.
    """
    limit = width or (terminal_width() if left else min(terminal_width(), WIDTH))
    plain = [list(map(plain_line, row)) for row in cells]
    if grouped:
        plain = _by_first(plain)
    elif not left and max(len(row[0]) for row in plain) > _LONGEST_NAME * limit:
        header, *rows = plain
        plain = [header, *(part for name, *row in rows for part in ([name, *[""] * len(row)], ["", *row]))]
    # A name with nothing beside it takes what room there is.
    firsts = [len(row[0]) for row in plain if any(row[1:])]
    widths = [max(firsts, default=0), *(max(map(len, column)) for column in list(zip(*plain, strict=True))[1:])]
    blocks: list[list[int]] = [[]]
    for place in range(1, len(widths)):
        if blocks[-1] and widths[0] + sum(2 + widths[each] for each in (*blocks[-1], place)) > limit:
            blocks.append([])
        blocks[-1].append(place)
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        for row in plain:
            others = (getattr(row[place], "ljust" if left else "rjust")(widths[place]) for place in block)
            lines.append("  ".join([row[0].ljust(widths[0]), *others]).rstrip())
    return lines


def _by_first(cells: Sequence[list[str]]) -> list[list[str]]:
    """Rows below the first cell that they share, which has a line of its own."""
    (head, _, *heads), *rows = cells
    found, last = [[head, *heads]], None
    for group, name, *row in rows:
        if group != last:
            found.append([group, *[""] * len(row)])
        last = group
        found.append([f"  {name}", *row])
    return found


def markdown_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """The same for GitHub, with every cell as plain text; columns of numbers stand to the right."""
    header, *rows = [list(map(plain_markdown, row)) for row in cells]
    columns = zip(*cells[1:], strict=True) if rows else [[""]] * len(header)
    sides = ["---:" if any(map(_NUMBER.match, column)) else "---" for column in columns]
    return [f"| {' | '.join(row)} |" for row in (header, sides, *rows)]


def csv_cell(text: str) -> str:
    """A text that no spreadsheet reads as a formula."""
    text = plain_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV, without a newline at its end; its texts are `csv_cell`s."""
    cells = table.map(lambda cell: csv_cell(cell) if isinstance(cell, str) else cell)
    text: str = cells.to_csv(index=False, lineterminator="\n")
    return text.removesuffix("\n")
