"""The end of a run before its last question: no new calls, some time for those in flight, then the end.

brake = Brake()
await brake.go()            # a call that would begin after `pull` never does
with brake:
    ...                     # in flight
brake.pull(RunStopped("used 260 of 250 tokens (--max-total-tokens)"))
await brake.stopped(grace_s=15)
"""

from __future__ import annotations

import os
import signal
import sys

import anyio

from rewoo_bench.errors import RewooBenchError

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and by what CI and schedulers end a job
INCOMPLETE = 3  # exit code


class Brake:
    """Counts calls in flight, each in its `with`; once pulled, lets no new ones begin.

    `reason` is why it was pulled first; None for an interruption.
    """

    def __init__(self) -> None:
        self.pulled = anyio.Event()
        self.reason: RewooBenchError | None = None
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

    def pull(self, reason: RewooBenchError | None = None) -> None:
        """Ends the run, once; a later reason changes nothing."""
        if not self.pulled.is_set():
            self.reason = reason
        self.pulled.set()
        if not self._in_flight:
            self._idle.set()

    async def stopped(self, grace_s: float) -> None:
        """Returns when no call is in flight any more, or after `grace_s` seconds."""
        with anyio.move_on_after(grace_s):
            await self._idle.wait()


async def pull_on_signal(brake: Brake, grace_s: float) -> None:
    """Pulls the brake at the first signal, and ends the process at the second, with nothing lost that was finished."""
    interrupted = False  # the brake may have been pulled for another reason
    try:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            async for _ in signals:
                if interrupted:
                    print("rewoo-bench: stopped at once; what was finished is in the journal", file=sys.stderr)
                    os._exit(INCOMPLETE)
                said = f"waiting up to {grace_s:g} s for the calls in flight; once more to stop at once"
                print(f"rewoo-bench: interrupted; {said}", file=sys.stderr)
                interrupted = True
                brake.pull()
    except NotImplementedError:  # Windows: Ctrl-C is a KeyboardInterrupt there
        await anyio.sleep_forever()
