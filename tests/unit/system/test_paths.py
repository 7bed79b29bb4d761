"""The download cache is where this platform has its caches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINT = "import sys; sys.platform = sys.argv[1]; from rewoo_bench.system.files import cache_dir; print(cache_dir())"


def cache_on(platform: str, home: Path, **env: str) -> Path:
    """The cache folder of a process on that platform."""
    plain = {name: value for name, value in os.environ.items() if name not in ("REWOO_BENCH_CACHE", "XDG_CACHE_HOME")}
    command = [sys.executable, "-c", PRINT, platform]
    done = subprocess.run(command, env={**plain, "HOME": str(home), **env}, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".cache/rewoo_bench"), ("darwin", "Library/Caches/rewoo_bench")],
)
def test_each_platform_has_its_folder(tmp_path: Path, platform: str, folder: str) -> None:
    assert cache_on(platform, tmp_path) == tmp_path / folder
    assert cache_on(platform, tmp_path, REWOO_BENCH_CACHE="~/own") == tmp_path / "own"


def test_a_shared_cache_is_used_on_linux(tmp_path: Path) -> None:
    assert cache_on("linux", tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg")) == tmp_path / "xdg" / "rewoo_bench"
