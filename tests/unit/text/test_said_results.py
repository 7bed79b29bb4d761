"""What a tool's result says of itself: an error, or nothing."""

from __future__ import annotations

import pytest

from rewoo_bench.text.results import says_error, says_nothing


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("Error: division by zero", True),
        (" Traceback (most recent call last)", True),
        ("error_rate: 0.1", False),
        ("HTTP 500 Internal Server Error", True),
        ('{"error": "none left"}', True),
        ('{"success": false, "message": "not permitted"}', True),
        ("Exceptional hotel with a pool", False),
        ('{"error": null, "rows": 3}', False),
        ('{"rows": [{"status": "error"}]}', False),
        ('{"success": false', False),
        ('{"ok":' * 100_000, False),
    ],
)
def test_a_result_says_that_the_tool_failed(text: str, is_error: bool) -> None:
    assert says_error(text) == is_error


@pytest.mark.parametrize(
    ("text", "is_empty"),
    [
        ("", True),
        ("No results found.\nTry other words.", True),
        ('{"results": [], "total": 0}', True),
        ('{"data": {"items": [], "next": null}, "more": false}', True),
        ("✓", False),
        ("No data leak was found: account is safe", False),
        ("None of the three flights are late", False),
        ("0", False),
        ('{"balance": 0}', False),
        ("[" * 200 + "]" * 200, True),
        ('{"a":' * 90, False),
    ],
)
def test_a_result_says_that_nothing_was_found(text: str, is_empty: bool) -> None:
    assert says_nothing(text) == is_empty
