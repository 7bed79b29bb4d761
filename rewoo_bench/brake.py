"""Ctrl-C: no new calls, some time for those in flight, then the end.

brake = Brake()
await brake.go()            # a call that would begin after `pull` never does
with brake:
    ...                     # in flight
brake.pull()
await brake.stopped(grace_s=15)
"""

from __future__ import annotations

import os
import signal
import sys

import anyio

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and by what CI and schedulers end a job
INCOMPLETE = 3  # exit code


class Brake:
    """Counts calls in flight, each in its `with`; once pulled, lets no new ones begin."""

    def __init__(self) -> None:
        self.pulled = anyio.Event()
        self._idle = anyio.Event()
        self._in_flight = 0

    async def go(self) -> None:
        """Returns at once; after `pull` never, but to be cancelled."""
        if self.pulled.is_set():
            await anyio.sleep_forever()

    def __enter__(self) -> None:
        self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        self._in_flight -= 1
        if not self._in_flight and self.pulled.is_set():
            self._idle.set()

    def pull(self) -> None:
        self.pulled.set()
        if not self._in_flight:
            self._idle.set()

    async def stopped(self, grace_s: float) -> None:
        """Returns when no call is in flight any more, or after `grace_s` seconds."""
        with anyio.move_on_after(grace_s):
            await self._idle.wait()


async def pull_on_signal(brake: Brake, grace_s: float) -> None:
    """Pulls the brake at the first signal, and ends the process at the second, with nothing lost that was finished."""
    try:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            async for _ in signals:
                if brake.pulled.is_set():
                    print("rewoo-bench: stopped at once; what was finished is in the journal", file=sys.stderr)
                    os._exit(INCOMPLETE)
                said = f"waiting up to {grace_s:g} s for the calls in flight; once more to stop at once"
                print(f"rewoo-bench: interrupted; {said}", file=sys.stderr)
                brake.pull()
    except NotImplementedError:  # Windows: Ctrl-C is a KeyboardInterrupt there
        await anyio.sleep_forever()
