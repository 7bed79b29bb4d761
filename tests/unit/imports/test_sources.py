"""What is given as a file and isn't one of this machine: addresses, pipes, standard input; and names that are shown."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from rewoo_bench.errors import UsageError
from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.sources import local_files, name_of

RECORD = json.dumps({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}).encode()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path in ("/ftp", "/file", "/loop", "/there", "/other"):
            self.send_response(302)
            host = self.headers["Host"]
            to = {"/ftp": f"ftp://{host}/runs.json", "/file": "file:///etc/passwd", "/loop": "/loop", "/there": "/runs"}
            self.send_header("Location", to.get(path, f"http://localhost:{host.partition(':')[2]}/runs?token=hunter22"))
            self.end_headers()
            return
        if path == "/private" and self.headers["Authorization"] != f"Basic {b64encode(b'me:hunter22').decode()}":
            self.send_error(401)
            return
        self.send_response(200)
        if path == "/packed":
            self.send_header("Content-Encoding", "gzip")
        if path == "/short":
            self.send_header("Content-Length", "5000")
        self.end_headers()
        if path == "/drip":
            self.drip()
        self.wfile.write(gzip.compress(RECORD)[: 40 if path == "/cut.json.gz" else None] if path != "/runs" else RECORD)

    def drip(self) -> None:
        for _ in range(100):
            try:
                self.wfile.write(b" ")
                time.sleep(0.1)
            except OSError:
                return

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("path", ["/runs", "/there", "/packed", "/runs.json.gz"])
def test_a_file_at_an_address_is_read_also_compressed_and_behind_a_redirect(host: str, path: str) -> None:
    with local_files([f"http://{host}{path}"]) as paths:
        assert [found.fault for found in read_files(paths)] == [""]


def test_a_password_in_an_address_is_sent_and_shown_nowhere(host: str) -> None:
    with local_files([f"http://me:hunter22@{host}/private"]) as paths:
        assert len([*read_files(paths)]) == 1
    wanted = r"^http://\*\*\*@127.0.0.1:\d+/private: can't be fetched: HTTP 401 Unauthorized$"
    with pytest.raises(UsageError, match=wanted), local_files([f"http://me:wrong123@{host}/private"]):
        pass


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/ftp", "it leads to another address, which you may give yourself: ftp://127.0.0.1"),
        ("/file", "it leads to another address, which you may give yourself: file:///etc/passwd"),
        (
            "/other",
            r"it leads to another address, which you may give yourself: http://localhost:\d+/runs\?token=\*\*\*$",
        ),
        ("/loop", "more than 10 redirects"),
        ("/short", r"it broke off after \d+ bytes"),
        ("/drip", "fewer than 64 KB in 1 s"),
    ],
)
def test_what_cant_be_fetched_is_one_line_with_its_address(host: str, path: str, said: str) -> None:
    start = time.monotonic()
    wanted = f"^http://{host}{path}: can't be fetched: {said}"
    with pytest.raises(UsageError, match=wanted), local_files([f"http://{host}{path}"], patience_s=1):
        pass
    assert time.monotonic() - start < 30


def test_a_fault_in_a_fetched_file_names_no_folder_of_this_machine(host: str) -> None:
    with local_files([f"http://{host}/cut.json.gz"]) as paths:
        (found,) = read_files(paths)
    assert found.fault.startswith("cut.json.gz: can't be read: Compressed file ended")


def test_what_a_shell_offers_as_a_file_is_read() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(RECORD)
    with local_files([f"/dev/fd/{reading}"]) as paths:
        assert [found.fault for found in read_files(paths)] == [""]
    os.close(reading)


@pytest.mark.parametrize("given", ["-", "/dev/stdin"])
def test_standard_input_is_read(given: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rewoo_bench", "import", given, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, input=RECORD, capture_output=True, check=False)
    assert (done.returncode, b"1 trace" in done.stdout) == (0, True)


def test_a_pipe_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(UsageError, match="is a pipe or a device: give a file, or '-'"),
        local_files([str(tmp_path / "pipe")]),
    ):
        pass


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("runs/a b.json", "a b.json"),
        ("runs/an\x1b[31mred\nname.jsonl", "an_[31mred_name.jsonl"),
        ("https://me:hunter22@example.org/", ""),
        ("https://example.org/x/runs%1b.json?token=hunter22", "runs_.json"),
        ("-", "stdin"),
    ],
)
def test_the_name_of_what_is_given_can_be_shown(given: str, name: str) -> None:
    assert name_of(given) == name
