"""What an import takes grows with its file: counted in texts, rows and bytes, not by a clock."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from rewoo_bench.imports.write import import_run
from rewoo_bench.text import tokens

WORDS = [f"word{number}" for number in range(2_000)]


def talk(folder: Path, turns: int, words: int) -> Path:
    """A conversation of so many turns, each with a tool's result of so many words."""
    random = Random(7)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find all of it."}]
    for turn in range(turns):
        call = {"id": f"c{turn}", "function": {"name": "look", "arguments": json.dumps({"page": turn})}}
        messages.append({"role": "assistant", "content": f"Page {turn}, then.", "tool_calls": [call]})
        found = f"{turn}: " + " ".join(random.choices(WORDS, k=words))
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": found})
    path = folder / f"talk-{turns}.json"
    path.write_text(json.dumps({"messages": [*messages, {"role": "assistant", "content": "All found."}]}))
    return path


def imported(folder: Path, turns: int, words: int) -> Path:
    out = folder / f"run-{turns}-{words}"
    anyio.run(partial(import_run, [talk(folder, turns, words)], out))
    return out


@pytest.mark.parametrize("words", [10, 1_500])  # below and above the length of texts that are remembered as a whole
def test_each_text_is_tokenised_a_bounded_number_of_times(
    tmp_path: Path, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, times = tokens._encode, Counter[str]()

    def counted(text: str) -> list[int]:
        times[text] += 1
        return encode(text)

    monkeypatch.setattr(tokens, "_encode", counted)
    tokens._count_remembered.cache_clear()
    imported(tmp_path, 40, words)
    assert max(times.values()) <= 2


def test_twice_the_turns_are_twice_the_rows(tmp_path: Path) -> None:
    sizes = []
    for turns in (20, 40, 80):
        with closing(sqlite3.connect(imported(tmp_path, turns, 10) / "journal.sqlite")) as journal:
            tables = ("texts", "prompts", "calls")
            sizes.append([journal.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables])
    first, second, third = sizes
    assert [c - b for b, c in zip(second, third, strict=True)] == [
        2 * (b - a) for a, b in zip(first, second, strict=True)
    ]
