"""Graceful shutdown of a run: no new calls, some time for those in flight, then the end.

shutdown = GracefulShutdown()
await shutdown.admit()      # returns at once; after `request`, never
with shutdown:
    ...                     # a call in flight
shutdown.request(RunStopped("used 260 of 250 tokens (--run-tokens)"))
await shutdown.wait_idle(grace_s=15)
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from contextlib import suppress

import anyio

from rewoo_bench.errors import RewooBenchError

# Ctrl-C, the end of a job in CI or a scheduler, and a closed terminal, for which Windows has no signal.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS: tuple[signal.Signals, ...] = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
INCOMPLETE = 3  # exit code


class GracefulShutdown:
    """Counts the calls in flight, each in its `with`; once shutdown is requested, admits no new ones.

    `reason` is that of the first request; None for an interruption.
    """

    def __init__(self) -> None:
        self.requested = anyio.Event()
        self.reason: RewooBenchError | None = None
        self._idle = anyio.Event()
        self._in_flight = 0

    async def admit(self) -> None:
        """Returns at once; after `request`, never (until it is cancelled)."""
        if self.requested.is_set():
            await anyio.sleep_forever()

    def __enter__(self) -> None:
        self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        self._in_flight -= 1
        if not self._in_flight and self.requested.is_set():
            self._idle.set()

    def request(self, reason: RewooBenchError | None = None) -> None:
        """Requests the end of the run. Only the first reason counts."""
        if not self.requested.is_set():
            self.reason = reason
        self.requested.set()
        if not self._in_flight:
            self._idle.set()

    async def wait_idle(self, grace_s: float) -> None:
        """Returns when no call is in flight any more, or after `grace_s` seconds."""
        with anyio.move_on_after(grace_s):
            await self._idle.wait()


def signals_heard() -> list[signal.Signals]:
    """The signals that end a run; not a hangup if `nohup` ignores it."""
    return [each for each in SIGNALS if each != _HANGUP or signal.getsignal(each) is not signal.SIG_IGN]


async def shutdown_on_signal(shutdown: GracefulShutdown, grace_s: float, command: str) -> None:
    """Requests the shutdown at the first signal and ends the process at the second; finished calls are kept.

    `command` is the command that resumes the run.
    """
    interrupted = False  # a shutdown may have been requested for another reason
    try:
        with anyio.open_signal_receiver(*signals_heard()) as signals:
            async for each in signals:
                if each == _HANGUP:
                    leave_closed_terminal()
                if interrupted:
                    print("rewoo-bench: stopped at once; what was finished is in the journal", file=sys.stderr)
                    print(command, file=sys.stderr, flush=True)
                    os._exit(INCOMPLETE)
                notice = f"waiting up to {grace_s:g} s for the calls in flight; once more to stop at once"
                print(f"rewoo-bench: interrupted; {notice}", file=sys.stderr)
                interrupted = True
                shutdown.request()
    except NotImplementedError:  # Windows: Ctrl-C is a KeyboardInterrupt there
        await anyio.sleep_forever()


def leave_closed_terminal() -> None:
    """Redirects output of a closed terminal to the null device: each write would be an error."""
    for output in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(output).st_mode) and not os.isatty(output):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, output)
                os.close(nowhere)
