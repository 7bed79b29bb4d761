"""The download cache is where this platform has its caches, or where the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewoo_bench.system.files import cache_dir


def test_the_cache_is_the_users_own_folder_else_that_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWOO_BENCH_CACHE", "~/own")
    assert cache_dir() == Path.home() / "own"
    monkeypatch.delenv("REWOO_BENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_dir().name == "rewoo_bench"
