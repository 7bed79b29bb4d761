"""The environment of a run, for its manifest: command, versions, commit."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any

PACKAGES = ("rewoo-bench", "anyio", "bm25s", "datasets", "litellm", "pyarrow", "pydantic", "PyStemmer", "xllamacpp")


def new_run_id(architectures: Sequence[str], now: datetime | None = None) -> str:
    """`20261122-093000-rewoo+react-1f0a`: sorts by time, and differs from any other machine's."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%d-%H%M%S")
    names = re.sub(r"[^\w.+-]", "-", "+".join(architectures))  # it names a folder, too
    return f"{moment}-{names[:60]}-{token_hex(2)}"


def environment() -> dict[str, Any]:
    """Versions of packages that may change a result, and the platform; no names, paths or variables."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: package_version(name) for name in PACKAGES},
        "git_commit": _commit(Path(__file__).parent),
    }


def command_line() -> list[str]:
    """The command line, with the program's name without its folder."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit(folder: Path) -> str | None:
    """The commit of the clone that the code runs from, with `+` for changed files; None outside a clone."""
    try:
        _git(folder, "ls-files", "--error-unmatch", __file__)  # fails in a clone of another project
        return _git(folder, "rev-parse", "HEAD") + ("+" if _git(folder, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=5)
    return done.stdout.strip()
