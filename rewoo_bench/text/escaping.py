"""Makes names, ids and errors harmless where they are printed: they may come from somebody else's run folder.

terminal("\\x1b[2J")                       # "\\u001b[2J"
plain_markdown("@all <b>|")                     # "&#64;&#8203;all &lt;b>\\\\|"
latex("50% of {it}")                      # r"50\\% of \\{it\\}"
"""

from __future__ import annotations

import re

# Characters that move the cursor, change colours, open links or titles (C0, DEL, C1), that turn the direction of text
# or are invisible (bidi controls, zero-width signs), and that no output can encode (lone surrogates).
_HIDDEN = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
_CONTROLS = re.compile(f"[{_HIDDEN}]")
_WORKFLOW_COMMAND = re.compile(r"^([^\S\n]*)(::|##(?=\[))", re.MULTILINE)  # line ends in `\s*` would be quadratic
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


def _shown(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"  # as JSON has it


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which no file can hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
