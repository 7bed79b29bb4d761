"""Foreign text stays text, as GitHub's own Markdown parser shows it."""

from __future__ import annotations

import html
import random
import re

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from rewoo_bench.text.escaping import plain_markdown, terminal

INVISIBLE = "\u200b"


def rendered(text: str) -> str:
    """GitHub's HTML of a paragraph and of a table's cell that both hold the text."""
    source = f"cell: {text} end\n\n| a |\n|---|\n| {text} |\n"
    return str(cmarkgfm.github_flavored_markdown_to_html(source, Options.CMARK_OPT_UNSAFE))


@pytest.mark.parametrize(
    "text",
    [
        "_www.evil.com", "www.evil.com", "a_www.evil.com", "x@evil.com", "mailto:x@evil.com", "xmpp:x@evil.com/y",
        "http://evil.com", "ftp://evil.com", "[a](http://evil.com)", "![a](b)", "<b>a</b>", "<http://evil.com>",
        "a|b", "`a`", "**a**", "_a_", "~~a~~", "&amp;", "&#64;all", r"\|",
    ],
)  # fmt: skip
def test_github_shows_a_name_as_it_is(text: str) -> None:
    shown = rendered(plain_markdown(text))
    assert "<a " not in shown
    cells = re.findall("<td>(.*)</td>", shown)
    assert [html.unescape(cell).replace(INVISIBLE, "") for cell in cells] == [text]


def test_random_signs_are_no_markup() -> None:
    draw = random.Random(7)
    signs = [*"ab1 =@+-|*_`[](){}<>&%$#~^\\!:/.", "www.", "http://", "@b.com", "&#64;", "mailto:", "&lt;", "W"]
    for _ in range(2000):
        text = "".join(draw.choices(signs, k=10)).strip()
        shown = rendered(plain_markdown(text)).replace("<span>$</span>", "$").replace(INVISIBLE, "")
        (cell,) = re.findall("<td>(.*)</td>", shown)
        assert html.unescape(cell) == text


@pytest.mark.parametrize("before", ["", "a\n", "\n\n", "a\n \t", "\r\n", "\u2028"])
@pytest.mark.parametrize("command", ["::error::x", "##[error]x", "::add-mask::x"])
def test_no_line_is_a_command_to_a_ci_runner(before: str, command: str) -> None:
    shown = terminal(before + command)
    assert not any(line.lstrip().startswith(("::", "##[")) for line in shown.split("\n"))
