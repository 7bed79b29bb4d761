"""Places at the workers of a cluster."""

from __future__ import annotations

import anyio
import pytest

from rewoo_bench.errors import RunStopped
from rewoo_bench.evaluation.cluster.pool import Pool, PoolWorker

pytestmark = pytest.mark.anyio


async def settle() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_a_question_gets_the_worker_with_the_most_free_places() -> None:
    pool = Pool()
    small, large = PoolWorker(0, None, places=1), PoolWorker(1, None, places=3)
    pool.add(small)
    pool.add(large)
    async with pool.place(alone=False) as first, pool.place(alone=False) as second:
        assert (first, second) == (large, large)
        assert pool.taken == 2
    assert pool.taken == 0


async def test_a_question_waits_for_a_worker_that_comes_later() -> None:
    pool, got = Pool(), []

    async def ask() -> None:
        async with pool.place(alone=False) as worker:
            got.append(worker.number)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await settle()
        assert not got
        pool.add(PoolWorker(7, None, places=1))
    assert got == [7]


async def test_a_question_alone_has_all_places_and_waits_until_the_others_end() -> None:
    pool = Pool()
    worker = PoolWorker(0, None, places=2)
    pool.add(worker)
    order, go = [], anyio.Event()

    async def alone() -> None:
        async with pool.place(alone=True):
            order.append(("alone", worker.taken))

    async def other(name: str) -> None:
        async with pool.place(alone=False):
            order.append((name, worker.taken))
            await go.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(other, "before")
        await settle()
        group.start_soon(alone)
        await settle()
        group.start_soon(other, "after")  # while one waits for the whole worker, nobody else begins there
        await settle()
        assert order == [("before", 1)]
        go.set()
    assert order == [("before", 1), ("alone", 2), ("after", 1)]


async def test_a_dead_worker_has_no_places_and_the_end_of_all_workers_is_an_error() -> None:
    pool = Pool()
    worker = PoolWorker(0, None, places=2)
    pool.add(worker)
    pool.remove(worker)

    async def ask() -> None:
        with pytest.raises(RunStopped, match="no worker"):
            async with pool.place(alone=False):
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await settle()
        pool.fail(RunStopped("no worker is left"))
