"""A wheel written by hand: a zip of a package's files, its metadata and its entry points."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def wheel(folder: Path, name: str, files: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """The wheel of the package `name`, version 1.0. `entry_points` maps a group to names and import paths."""
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in entry_points.items()
    )
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(groups),
    }
    record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    path = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return path


def unpacked(wheel: Path, folder: Path) -> Path:
    """The folder with the wheel's files, as a site-packages has them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder
