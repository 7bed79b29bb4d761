"""Trials of a question have seeds of their own, and a journal, a cache or a column takes none for another's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dialect_server import DialectServer
from gateway_runs import rows as agents_rows
from gateway_runs import run_agents, write_function
from model_server import ModelServer

import rewoo_bench
from rewoo_bench import Example
from rewoo_bench.types import trial_seed

pytestmark = pytest.mark.anyio

QUESTION = [Example("q1", "Which river flows through Paris?", ("Seine",))]


async def ask(server: ModelServer, out: Path, **options: Any) -> Any:
    more = {"api_base": server.api_base, "progress": False, **options}
    return await rewoo_bench.evaluate(QUESTION, ["direct"], model="openai/m", out=out, trials=3, **more)


def seeds(server: ModelServer) -> list[int]:
    return sorted(entry.request["seed"] for entry in server.books)


async def test_each_trial_has_a_seed_of_its_own_and_the_first_one_the_run_s(tmp_path: Path) -> None:
    with ModelServer(lambda _: "Answer: the Seine") as server:
        await ask(server, tmp_path / "a", temperature=1.0, seed=7)
        first = seeds(server)
        await ask(server, tmp_path / "b", temperature=1.0, seed=7)
    assert 7 in first
    assert len(set(first)) == 3
    assert seeds(server) == sorted(first * 2)


async def test_the_rows_have_the_seeds_that_were_sent(tmp_path: Path) -> None:
    with ModelServer(lambda _: "Answer: the Seine") as server:
        await ask(server, tmp_path / "run", temperature=1.0, seed=7)
        sent = seeds(server)
    rows = rewoo_bench.load(tmp_path / "run").sort_values("trial")
    assert [int(seed) for seed in rows["trial_seed"]] == [trial_seed(7, trial) for trial in range(3)]
    assert sorted(map(int, rows["trial_seed"])) == sent


@pytest.mark.usefixtures("own_folder")
def test_the_rows_of_an_external_agent_have_none_since_its_requests_have_none_of_the_run_s() -> None:
    with DialectServer() as provider:
        assert run_agents(provider, [write_function("chat")], "--trials", 2, questions=1) == 0
    assert [entry.body.get("seed") for entry in provider.books] == [None, None]
    assert agents_rows()["trial_seed"].isna().tolist() == [True, True]


async def test_the_answer_of_one_trial_is_not_taken_for_another_s(tmp_path: Path) -> None:
    """Neither from the cache of other runs nor in a replay of the run itself."""
    replies = (f"Answer: {number}" for number in range(100))
    with ModelServer(lambda _: next(replies)) as server:
        first = await ask(server, tmp_path / "a", answer_cache=tmp_path / "cache", temperature=1.0, concurrency=1)
        again = await ask(server, tmp_path / "b", answer_cache=tmp_path / "cache", temperature=1.0, concurrency=1)
        assert len(server.books) == 3
    replayed = await rewoo_bench.evaluate(
        QUESTION, ["direct"], model=f"replay/{tmp_path / 'a'}", out=tmp_path / "c", trials=3, progress=False
    )
    predictions = [sorted(str(each.trajectory.answer) for each in run) for run in (first, again, replayed)]
    assert predictions == [["0", "1", "2"]] * 3
