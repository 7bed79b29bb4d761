"""Where an agent's processes connect to, as far as Linux shows it: who answers in the place of the gateway.

    connections_of(process.pid)    # {"127.0.0.1:8001", "[2001:db8::1]:443"}

A short connection may lie between two looks.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from rewoo_bench.agents.session import AgentSession

_PROCESSES = Path("/proc")
_TABLES = ("tcp", "tcp6")
_OPEN = ("01", "02")  # established, and asked for
_EVERY_S = 0.1
_EVERY_S_ONCE_ANSWERED = 0.5


async def watch(pid: int, session: AgentSession, base_url: str) -> None:
    """Adds the addresses to `session.connections` until it is cancelled, less often after the model's first answer."""
    gateway = urlsplit(base_url).netloc
    while True:
        session.connections |= await to_thread.run_sync(connections_of, pid) - {gateway}
        await anyio.sleep(_EVERY_S_ONCE_ANSWERED if session.has_answer else _EVERY_S)


def connections_of(pid: int) -> set[str]:
    """The addresses that a process and those that it started are connected to, without those among themselves."""
    sockets = {socket for each in _with_children(pid) for socket in _sockets(each)}
    if not sockets:
        return set()
    ends = [(here, there) for here, there, inode in _connections(pid) if inode in sockets]
    return {there for _, there in ends} - {here for here, _ in ends}


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for children in (_PROCESSES / str(pid) / "task").glob("*/children"):
        with suppress(OSError):  # it has ended
            for child in children.read_text().split():
                yield from _with_children(int(child))


def _sockets(pid: int) -> Iterator[str]:
    """The inodes of the sockets of a process."""
    with suppress(OSError):
        for descriptor in (_PROCESSES / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]


def _connections(pid: int) -> Iterator[tuple[str, str, str]]:
    """Local address, remote address and inode of the open TCP connections that the process's network has."""
    for name in _TABLES:
        with suppress(OSError):
            for line in (_PROCESSES / str(pid) / "net" / name).read_text().splitlines()[1:]:
                _, here, there, state, *rest = line.split()
                if state in _OPEN:
                    yield _address(here), _address(there), rest[5]


def _address(text: str) -> str:
    """`0100007F:1F41` as `127.0.0.1:8001`: words in the byte order of the machine."""
    host, _, port = text.partition(":")
    words = [bytes.fromhex(host[i : i + 8]) for i in range(0, len(host), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    address = ipaddress.ip_address(packed)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return f"{address}:{int(port, 16)}" if address.version == 4 else f"[{address}]:{int(port, 16)}"
