"""An agent's own token count, from its standard error."""

from __future__ import annotations

import pytest

from rewoo_bench.agents.runner import read_own_count

COUNT = {"input": 812, "output": 40, "calls": 3}
LINE = '{"own_count": {"input": 812, "output": 40, "calls": 3}}'


def test_the_last_count_of_a_log_is_the_agents() -> None:
    assert read_own_count(f'{{"own_count": {{"input": 1}}}}\nwarning: slow\n{LINE}\ngoodbye\n', "q-1") == COUNT


def test_of_a_workers_log_only_the_line_of_the_question_counts() -> None:
    log = "\n".join(f'{{"id": "{key}", "own_count": {{"input": {count}}}}}' for key, count in [("q-1", 5), ("q-2", 7)])
    assert read_own_count(log, "q-1") == {"input": 5}
    assert read_own_count(log, "q-3") is None


@pytest.mark.parametrize("log", ["", "own_count: 3", '{"own_count": 3}', '["own_count"]', '{"own_count": {"in'])
def test_other_lines_are_no_count(log: str) -> None:
    assert read_own_count(log, "q-1") is None
