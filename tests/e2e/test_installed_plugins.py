"""Plug-ins as users have them: wheels unpacked into an environment of their own, and the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_package import ENTRY_POINTS, FILES
from wheels import unpacked, wheel

import rewoo_bench
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import read_manifest


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that has a package with one plug-in of each kind."""
    folder = tmp_path_factory.mktemp("plugins")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    paths = [entry for entry in sys.path if entry.endswith("site-packages")]
    paths.append(str(Path(str(rewoo_bench.__file__)).parents[1]))
    (site_packages(python) / "these.pth").write_text("\n".join(paths))
    unpacked(wheel(folder, "my-agents", FILES, ENTRY_POINTS), site_packages(python))
    return python


def site_packages(python: Path) -> Path:
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(found.stdout.strip())


def command(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`rewoo-bench …` in that environment."""
    return subprocess.run(
        [python, "-m", "rewoo_bench", *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )


def test_what_is_installed_is_listed(python: Path, tmp_path: Path) -> None:
    shown = command(python, tmp_path, "list").stdout
    for name, value in {name: value for group in ENTRY_POINTS.values() for name, value in group.items()}.items():
        assert re.search(rf"^  {re.escape(name)} +{re.escape(value)} \(my-agents\)$", shown, re.MULTILINE)


def test_installed_architectures_data_sets_tools_and_scorers_run(python: Path, tmp_path: Path) -> None:
    arguments = ["--dataset", "capitals", "--model", "oracle", "--out", "run", "--no-progress", "--no-report"]
    done = command(python, tmp_path, "run", "--arch", "glance,react?tools=Search+Glossary", *arguments)
    assert done.returncode == 0, done.stderr
    rows, manifest = load(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert list(rows["architecture"]) == ["glance", "react?tools=Search+Glossary"]
    assert list(rows["stop_reason"]) == ["answered", "answered"]
    assert rows["exact_match"].iloc[1]
    assert list(rows["tool_llm_tokens"] > 0) == [True, False]
    assert manifest.dataset.scoring == "lenient"
    assert manifest.architectures[0].model_dump()["package"] == "my-agents"
