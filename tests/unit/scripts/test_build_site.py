"""The documentation site has every page, and its links lead to pages or to the repository."""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
CLONE = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone: git lists the pages")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "build_site.py"))


def in_navigation(entries: Any) -> list[str]:
    """The pages of zensical.toml's `nav`, in their order."""
    if isinstance(entries, str):
        return [entries]
    return [page for entry in entries for each in entry.values() for page in in_navigation(each)]


@CLONE
def test_the_navigation_has_every_page_once(script: dict[str, Any]) -> None:
    nav = in_navigation(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    assert sorted(nav) == sorted(script["pages"](ROOT))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "part").mkdir(parents=True)
    (root / "code.py").write_text("")
    (root / "a.png").write_bytes(b"a")
    (root / "README.md").write_text("[p](part/README.md#x) [c](code.py) ![a](a.png) `[c](code.py)` [w](https://w.org)")
    (root / "part" / "README.md").write_text("# X\n[up](../README.md) [there](../part)")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def test_links_to_code_lead_to_the_repository(script: dict[str, Any], repository: Path, tmp_path: Path) -> None:
    script["lay_out"](repository, tmp_path / "docs")
    address = script["REPOSITORY"]
    assert (tmp_path / "docs" / "README.md").read_text() == (
        f"[p](part/README.md#x) [c]({address}code.py) ![a](a.png) `[c](code.py)` [w](https://w.org)"
    )
    assert (tmp_path / "docs" / "part" / "README.md").read_text() == f"# X\n[up](../README.md) [there]({address}part)"
    assert (tmp_path / "docs" / "a.png").read_bytes() == b"a"


def test_a_link_to_nothing_ends_the_build(script: dict[str, Any], repository: Path, tmp_path: Path) -> None:
    (repository / "part" / "README.md").write_text("[x](none.py)")
    with pytest.raises(FileNotFoundError, match=r"part/README\.md: a link to part/none\.py, which doesn't exist"):
        script["lay_out"](repository, tmp_path / "docs")


@CLONE
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="needs zensical (the extra docs)")
def test_the_site_is_built_without_a_warning(script: dict[str, Any], tmp_path: Path) -> None:
    assert script["main"](["--out", str(tmp_path / "site")]) == 0
    assert "rewoo_bench" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
