"""Places at the workers of a cluster."""

from __future__ import annotations

from functools import partial

import anyio
import anyio.lowlevel
import pytest
from timing import counted_calls

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

    async def ask(name: str, *, alone: bool = False) -> None:
        async with pool.place(alone=alone):
            order.append((name, worker.taken))
            await go.wait()

    async with anyio.create_task_group() as group:
        for name in ("before", "alone", "after"):  # who asks later begins later
            group.start_soon(partial(ask, name, alone=name == "alone"))
            await settle()
        assert order == [("before", 1)]
        go.set()
    assert order == [("before", 1), ("alone", 2), ("after", 1)]


async def test_the_work_of_giving_places_grows_with_the_questions_and_not_with_their_square() -> None:
    async def work(questions: int) -> int:
        pool = Pool()
        pool.add(PoolWorker(0, None, places=4))

        async def ask() -> None:
            async with pool.place(alone=False):
                await anyio.lowlevel.checkpoint()

        with counted_calls() as count:
            async with anyio.create_task_group() as group:
                for _ in range(questions):
                    group.start_soon(ask)
        return count[0]

    await work(1)
    assert await work(200) < 2.5 * await work(100)


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
