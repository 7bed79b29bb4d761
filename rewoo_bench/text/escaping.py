"""Makes names, ids and errors harmless where they are printed: they may come from somebody else's run folder.

terminal("\\x1b[2J")                       # "\\u001b[2J"
plain_markdown("@all <b>|")                     # "&#64;&#8203;all &lt;b>\\\\|"
latex("50% of {it}")                      # r"50\\% of \\{it\\}"
csv_cell("=HYPERLINK(1)")                 # "'=HYPERLINK(1)"
"""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Characters that move the cursor, change colours, open links or titles (C0, DEL, C1), that turn the direction of text
# or are invisible (bidi controls, zero-width signs), and that no output can encode (lone surrogates).
_HIDDEN = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_CONTROLS = re.compile(f"[{_HIDDEN}]")
_WORKFLOW_COMMAND = re.compile(r"^([^\S\n]*)(::|##(?=\[))", re.MULTILINE)  # line ends in `\s*` would be quadratic
_NUMBER = re.compile(r"[-+<>$]*\d")  # the beginning of a cell
_FORMULA = tuple("=+-@\t\r")
# GitHub looks for mentions, addresses, emoji and issues after decoding entities, so an invisible space parts them.
_MARKDOWN = (
    (r"([\\|*`~])", r"\\\1"),
    (r"&(?=#?\w+;)", "&amp;"),
    (r"<(?=[A-Za-z/!?])", "&lt;"),
    (r"#(?=\d)", "#&#8203;"),
    (r":(?=[\w+-]+:)", ":&#8203;"),
    (r"@", "&#64;&#8203;"),
    (r"\](?=[(\[:])", r"\\]"),
    (r"!(?=\[)", r"\\!"),
    (r"://", "&#58;//"),
    (r"([wW]{3})\.", r"\1&#46;"),
    (r"(?<!\w)_|_(?!\w)", r"\\_"),
)
_LATEX = {each: f"\\{each}" for each in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$"
}  # fmt: skip

_SURROGATE = re.compile("[\ud800-\udfff]")


def terminal(text: str) -> str:
    """Text of several lines: control signs are shown as `\\u001b`, and no line is a command to GitHub's runner."""
    return _WORKFLOW_COMMAND.sub(r"\1\\\2", _CONTROLS.sub(_shown, text))


def plain_line(text: str) -> str:
    """The same for a name or a cell: line breaks become spaces."""
    return _CONTROLS.sub(_shown, re.sub(r"\r\n|[\n\r\t]", " ", text))


def plain_markdown(text: str) -> str:
    """A name or a cell as plain text for GitHub: no HTML, link, mention, formula or emoji, and no end of a cell."""
    text = plain_line(text)
    for sign, harmless in _MARKDOWN:
        text = re.sub(sign, harmless, text)
    return text.replace("$", "<span>$</span>") if text.count("$") > 1 else text  # two of them are a formula


def latex(text: str) -> str:
    """A name or a cell as plain text; a number's minus is a minus."""
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", "".join(_LATEX.get(each, each) for each in plain_line(text)))


def csv_cell(text: str) -> str:
    """A text that no spreadsheet reads as a formula."""
    text = plain_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def controls_as_json(text: str) -> str:
    """JSON with an escape sequence for each control character in its strings."""
    return _CONTROLS.sub(_shown, text)


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV, without a newline at its end; its texts are `csv_cell`s."""
    cells = table.map(lambda cell: csv_cell(cell) if isinstance(cell, str) else cell)
    text: str = cells.to_csv(index=False, lineterminator="\n")
    return text.removesuffix("\n")


def with_finite_numbers(value: Any) -> Any:
    """Nested dicts and lists, ready for JSON: None in the place of NaN and infinity."""
    if isinstance(value, dict):
        return {key: with_finite_numbers(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_finite_numbers(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"  # as JSON has it


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which no file can hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


# Tables of cells, the first row of which is the header: as plain text and as Markdown.


def terminal_width() -> int:
    """Columns of the terminal that standard output is; a file and a pipe have no end."""
    on_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if on_terminal else sys.maxsize


def text_table(cells: Sequence[Sequence[str]], width: int | None = None, *, left: bool = False) -> list[str]:
    """A line for each row, with the first column to the left and the others to the right (texts: `left`).

    A table that is wider than `width` becomes several below each other, each of which begins with the first column.
    The default is the terminal's width; a file and a pipe get one table, however wide.
    """
    cells = [list(map(plain_line, row)) for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    limit = width or terminal_width()
    blocks: list[list[int]] = [[]]
    for place in range(1, len(widths)):
        if blocks[-1] and widths[0] + sum(2 + widths[each] for each in (*blocks[-1], place)) > limit:
            blocks.append([])
        blocks[-1].append(place)
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        for row in cells:
            others = (getattr(row[place], "ljust" if left else "rjust")(widths[place]) for place in block)
            lines.append("  ".join([row[0].ljust(widths[0]), *others]).rstrip())
    return lines


def markdown_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """The same for GitHub, with every cell as plain text; columns of numbers stand to the right."""
    header, *rows = [list(map(plain_markdown, row)) for row in cells]
    columns = zip(*cells[1:], strict=True) if rows else [[""]] * len(header)
    sides = ["---:" if any(map(_NUMBER.match, column)) else "---" for column in columns]
    return [f"| {' | '.join(row)} |" for row in (header, sides, *rows)]
