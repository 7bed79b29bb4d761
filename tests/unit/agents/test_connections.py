"""The addresses that an agent's processes are connected to."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from rewoo_bench.agents.program import connections_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc shows it on Linux alone")
CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', {port})); print(flush=True); sys.stdin.read()"


def test_a_connection_of_a_child_is_seen_while_it_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        program = CONNECT.format(port=server.getsockname()[1])
        parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"
        command, pipe = [sys.executable, "-c", parent], subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert connections_of(process.pid) == {address}
            process.communicate()


def test_a_process_that_has_ended_has_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert connections_of(process.pid) == set()
