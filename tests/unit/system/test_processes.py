"""Other people's programs: what is said where one can't be started, and what is left of one that is cut off."""

from __future__ import annotations

import os
import signal
import sys

import anyio
import pytest
from processes import children

from rewoo_bench.errors import UsageError
from rewoo_bench.system.processes import ProcessGroups


def test_a_program_that_is_missing_is_named() -> None:
    async def start() -> None:
        async with ProcessGroups() as groups, groups.start(["uvx"], env={"PATH": "/nowhere"}, what="--mcp"):
            pass

    with pytest.raises(UsageError, match="--mcp: can't start 'uvx': No such file"):
        anyio.run(start)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_start_that_is_cut_off_leaves_no_process() -> None:
    async def start(limit_s: float) -> set[int]:
        before = {*children("self")}
        async with ProcessGroups() as groups:
            with anyio.move_on_after(limit_s):
                async with groups.start(["sleep", "600"], env={"PATH": os.environ["PATH"]}):
                    await anyio.sleep_forever()
        return {*children("self")} - before

    left = [anyio.run(start, number * 0.0001) for number in range(60)]  # before, in and after the start
    assert left == [set()] * 60


def test_a_run_ends_where_the_reaper_gets_no_time_to_end() -> None:
    async def start() -> None:
        async with ProcessGroups() as groups, groups.start(["sleep", "600"], env={"PATH": os.environ["PATH"]}):
            assert groups._reaper is not None
            groups._reaper.send_signal(signal.SIGSTOP)

    anyio.run(start)
