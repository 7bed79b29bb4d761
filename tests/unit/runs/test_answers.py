"""The cache of answers: what is wrong with its file is told, and never an answer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from full_disk import no_larger_files

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.response_cache import ResponseCache

ANSWER = {"text": "Neva", "usage": {"input_tokens": 3}, "receipt": {"latency_s": 0.1, "cost_usd": None}}


def kept(folder: Path, key: bytes = b"key") -> dict[str, Any] | None:
    with closing(ResponseCache(folder)) as cache:
        return cache.get(key)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with one answer."""
    with closing(ResponseCache(tmp_path)) as cache:
        cache.put(b"key", ANSWER)
    return tmp_path


def test_an_answer_comes_back_as_it_was(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert kept(folder) == ANSWER
    assert not caplog.records


def test_answers_that_a_full_disk_has_no_room_for_are_warnings(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(ResponseCache(folder)) as cache:
        with no_larger_files(1 << 20):
            for number in range(3):
                cache.put(b"%d" % number, {"text": "x" * (1 << 21)})
        assert cache.get(b"key") == ANSWER
    assert len(caplog.records) == 3
    assert kept(folder) == ANSWER


@pytest.mark.parametrize("content", [b"no database at all " * 100, None])
def test_a_file_that_is_no_cache_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "answers.sqlite"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(DataError, match=r"--answer-cache: .*answers\.sqlite' can't be used: "):
        ResponseCache(tmp_path)
    assert content is None or path.read_bytes() == content
