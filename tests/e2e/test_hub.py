"""The hub's own client against a hub on loopback: streamed, cached, offline, and out of reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.config.names import bundled_folder

COMMIT = "c0ffee1234" * 4
REPOSITORY = "hotpotqa/hotpot_qa"
CARD = """---
configs:
- config_name: distractor
  data_files:
  - {split: train, path: distractor/train-*}
  - {split: validation, path: distractor/validation-*}
---
"""
LOAD = """
import json, sys
from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import load_dataset_examples
try:
    found = load_dataset_examples(sys.argv[1], **json.loads(sys.argv[2]))
    print(json.dumps([[example.id for example in found.examples], found.manifest]))
except DataError as error:
    print(json.dumps(str(error)))
"""


class LoopbackHub(ThreadingHTTPServer):
    """Answers the requests of huggingface_hub for one data set; `files` by path, `requests` as they came."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.requests: list[str] = []

    def listing(self, folder: str) -> list[dict[str, Any]]:
        """What lies right inside `folder`; the repository is one folder deep."""
        inside = [name for name in self.files if name.startswith(folder)]
        folders = {name.partition("/")[0] for name in inside if "/" in name and not folder}
        files = [name for name in inside if folder or "/" not in name]
        return [
            *({"type": "directory", "path": name, "size": 0, "oid": "0" * 40} for name in sorted(folders)),
            *({"type": "file", "path": n, "size": len(self.files[n]), "oid": etag(self.files[n])} for n in files),
        ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LoopbackHub

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.requests.append(f"{self.command} {path}")
        api, files = f"/api/datasets/{REPOSITORY}", f"/datasets/{REPOSITORY}/resolve/"
        if path == api or path.startswith(f"{api}/revision/"):
            siblings = [{"rfilename": name} for name in self.server.files]
            self.reply(200, json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": siblings}).encode())
        elif path.startswith(f"{api}/tree/"):
            folder = path.removeprefix(f"{api}/tree/").partition("/")[2]
            self.reply(200, json.dumps(self.server.listing(folder)).encode())
        elif path.startswith(files):
            self.reply_file(self.server.files.get(path.removeprefix(files).partition("/")[2]))
        else:
            self.reply(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def reply_file(self, content: bytes | None) -> None:
        if content is None:
            self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        headers = {"ETag": f'"{etag(content)}"', "Accept-Ranges": "bytes"}
        first, _, last = (self.headers.get("Range") or "").removeprefix("bytes=").partition("-")
        if first:
            part = content[int(first) : int(last or len(content)) + 1]
            headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
            self.reply(206, part, headers)
        else:
            self.reply(200, content, headers)

    def reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"X-Repo-Commit": COMMIT, "Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: a test's output is its result."""


def etag(content: bytes) -> str:
    return sha1(content).hexdigest()


def parquet(rows: int) -> bytes:
    """A split of HotpotQA in the hub's columns."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(
        [
            {
                "id": f"id{number}",
                "question": f"Question {number}?",
                "answer": "Lund",
                "type": "bridge",
                "supporting_facts": {"title": ["Ann Ek"], "sent_id": [0]},
                "context": {"title": ["Ann Ek"], "sentences": [["Ann Ek was a writer.", " She lived in Lund."]]},
            }
            for number in range(rows)
        ]
    )
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue())


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    splits = {"distractor/train-00000-of-00001.parquet": 3, "distractor/validation-00000-of-00001.parquet": 50}
    files = {name: parquet(rows) for name, rows in splits.items()}
    with LoopbackHub(files | {"README.md": CARD.encode()}) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def load(home: Path, endpoint: str, dataset: str = "hotpotqa", *, offline: bool = False, **options: Any) -> Any:
    """Ids and manifest, or the message of the error. Another process: the client reads its settings once."""
    environment = os.environ | {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": str(int(offline))}
    command = [sys.executable, "-c", LOAD, dataset, json.dumps(options)]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=250, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_same_sample_comes_streamed_and_cached_and_then_offline(tmp_path: Path, hub: LoopbackHub) -> None:
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    streamed, manifest = load(tmp_path, endpoint, limit=5)
    assert manifest["source"] == {"hub": REPOSITORY, "config": "distractor", "revision": COMMIT}
    assert manifest["rows"] == 50
    cached, _ = load(tmp_path, endpoint, limit=2000)
    assert cached[:5] == streamed
    asked = len(hub.requests)
    offline, manifest = load(tmp_path, endpoint, limit=5, offline=True)
    assert (offline, manifest["source"]["revision"]) == (streamed, COMMIT)
    assert len(hub.requests) == asked


def test_an_unknown_split_names_those_of_the_hub(tmp_path: Path, hub: LoopbackHub) -> None:
    message = load(tmp_path, f"http://127.0.0.1:{hub.server_port}", split="trian")
    assert "unknown split 'trian', did you mean 'train'? available: train, validation" in message


def test_a_data_set_that_the_hub_does_not_have_is_one_line(tmp_path: Path, hub: LoopbackHub) -> None:
    message = load(tmp_path, f"http://127.0.0.1:{hub.server_port}", "triviaqa")
    assert message.startswith("can't read mandarjoshi/trivia_qa (rc.nocontext) from the Hugging Face hub: 404")


def test_a_hub_out_of_reach_says_what_works_without_one(tmp_path: Path) -> None:
    message = load(tmp_path, "http://127.0.0.1:9")
    assert "or use a downloaded file (--dataset NAME=path/to/file.json) or --dataset sample" in message


def test_the_folder_of_data_sets_does_not_shadow_hugging_face_datasets() -> None:
    """A folder without `__init__.py` yields to a regular package later on the path, also as `-m` from a clone."""
    import datasets

    folder = bundled_folder("datasets")
    code = "import sys, datasets; assert sys.path[0] == ''; print(datasets.__file__, datasets.load_dataset_builder)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder.parent, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(datasets.__file__))
    assert not Path(str(datasets.__file__)).is_relative_to(folder)
    assert not list(folder.rglob("*.py"))
