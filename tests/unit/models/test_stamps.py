"""A large file is hashed again only when it has changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from rewoo_bench.models.local.catalogue import stamp_of, stamped_sha256


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"weights")
    return path


def rewrite(path: Path, data: bytes, mtime_ns: int) -> None:
    path.write_bytes(data)
    os.utime(path, ns=(mtime_ns, mtime_ns))


def test_an_unchanged_file_is_not_read_again(model: Path) -> None:
    first = stamped_sha256(model, stamp_of(model))
    assert first == hashlib.sha256(b"weights").hexdigest()
    rewrite(model, b"WEIGHTS", model.stat().st_mtime_ns)  # a change that only reading would find
    assert stamped_sha256(model, stamp_of(model)) == first


@pytest.mark.parametrize(("data", "later_ns"), [(b"WEIGHTS", 1), (b"weights and more", 0)])
def test_another_time_or_size_is_hashed_again(model: Path, data: bytes, later_ns: int) -> None:
    stamped_sha256(model, stamp_of(model))
    rewrite(model, data, model.stat().st_mtime_ns + later_ns)
    assert stamped_sha256(model, stamp_of(model)) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("text", ["", '{"size": 7, "sha256": "00"}'])
def test_a_damaged_stamp_is_none(model: Path, text: str) -> None:
    stamp_of(model).write_text(text, "utf-8")
    assert stamped_sha256(model, stamp_of(model)) == hashlib.sha256(b"weights").hexdigest()
