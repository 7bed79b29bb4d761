"""Tables as text and as Markdown, and numbers with their nouns."""

from __future__ import annotations

from rewoo_bench.text.tables import markdown_table, text_table

CELLS = [["", "n", "total"], ["rewoo", "50", "1,431.9"], ["a\nb", "7", ""]]


def test_the_first_column_is_on_the_left_and_the_others_on_the_right() -> None:
    assert text_table(CELLS) == ["        n    total", "rewoo  50  1,431.9", "a b     7"]


def test_markdown_holds_cells_as_plain_text_and_numbers_on_the_right() -> None:
    cells = [["a|b", "n", "$", "said"], ["*x*", "1", "-", "so"], ["y", "+0.1 [0.0, 0.2]", "<0.001", "no"]]
    assert markdown_table(cells) == [
        r"| a\|b | n | $ | said |",
        "| --- | ---: | ---: | --- |",
        r"| \*x\* | 1 | - | so |",
        "| y | +0.1 [0.0, 0.2] | <0.001 | no |",
    ]


def test_a_wide_table_becomes_several_of_fewer_columns() -> None:
    cells = [["name", "first", "second", "third"], ["rewoo", "1", "2", "3"]]
    assert text_table(cells, 20) == [
        "name   first  second",
        "rewoo      1       2",
        "",
        "name   third",
        "rewoo      3",
    ]
    assert len(text_table(cells)) == 2


def test_a_table_has_80_columns_at_most_where_there_is_no_terminal() -> None:
    cells = [["name", *(f"column {n}" for n in range(9))], ["rewoo", *["1,234 [1,000, 1,500]"] * 9]]
    assert max(map(len, text_table(cells))) <= 80
    named = [["name", "n", "tokens"], ["rewoo, openai/gpt-4o-mini, run of yesterday", "7", "1,234"]]
    assert text_table(named) == ["name  n  tokens", named[1][0], "      7   1,234"]


def test_rows_of_one_group_stand_below_its_name() -> None:
    rows = [["ratio", "of", "n"], ["react / rewoo", "tokens", "7"], ["react / rewoo", "cost", "6"], ["b", "cost", "5"]]
    assert text_table(rows, grouped=True) == [
        "ratio     n", "react / rewoo", "  tokens  7", "  cost    6", "b", "  cost    5",
    ]  # fmt: skip
