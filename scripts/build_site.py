"""Builds the documentation site from the repository's own Markdown, with zensical (`pip install -e '.[docs]'`).

    python scripts/build_site.py              # into site/, which git ignores
    python scripts/build_site.py --out DIR

README.md, docs/, the published results and the cards of data sets and architectures are its pages; the README of a
folder only says what is in it. A link to a page stays a link within the site; one to any other file or folder leads to
the repository, and a picture is taken along. Exit code 1 where zensical warns, such as of a link to no page, or where a
link leads nowhere. zensical.toml has the menu.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/rewoo-bench/rewoo_bench/tree/main/"
_CODE_OR_LINK = re.compile(r"```.*?```|`[^`\n]*`|(?P<picture>!?)\[(?P<words>[^]]*)\]\((?P<to>[^)\s]+)\)", re.DOTALL)


_NO_PAGE = re.compile(
    r"(tests|\.\w+)/.*|.*/page(-\w+)?\.md"  # the latter are templates of a study
    r"|(architectures|architectures/agents|datasets|results|rewoo_bench/.*)/README\.md"
)


def pages(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True).stdout
    return [page for page in listed.split() if not _NO_PAGE.fullmatch(page)]


def site_text(root: Path, page: str, known: Sequence[str], folder: Path) -> str:
    """A page with its links to other files changed; its pictures go into the folder."""

    def changed(link: re.Match[str]) -> str:
        if link["to"] is None or link["to"].startswith("#") or ":" in link["to"]:
            return link[0]
        file = (root / page).parent.joinpath(link["to"].partition("#")[0]).resolve()
        path = file.relative_to(root.resolve()).as_posix()
        if not file.exists():
            raise FileNotFoundError(f"{page}: a link to {path}, which doesn't exist")
        if link["picture"]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / path)
        return link[0] if link["picture"] or path in known else f"[{link['words']}]({REPOSITORY}{path})"

    return _CODE_OR_LINK.sub(changed, (root / page).read_text(encoding="utf-8"))


def lay_out(root: Path, folder: Path) -> None:
    """Writes the pages and their pictures into a folder."""
    known = pages(root)
    for page in known:
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(site_text(root, page, known, folder), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    out: Path = parser.parse_args(arguments).out
    with tempfile.TemporaryDirectory() as folder:
        lay_out(ROOT, Path(folder) / "docs")
        shutil.copyfile(ROOT / "zensical.toml", Path(folder) / "zensical.toml")
        built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=False)
        if built.returncode == 0:
            shutil.copytree(Path(folder) / "site", out, dirs_exist_ok=True)
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
