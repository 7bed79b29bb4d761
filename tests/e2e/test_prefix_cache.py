"""The prefix cache of a local model: an architecture finds its own prompts there, and no other's."""

from __future__ import annotations

from collections import Counter

import pytest

from rewoo_bench.evaluation.api import evaluate
from rewoo_bench.types import Example

pytestmark = [pytest.mark.model, pytest.mark.anyio]

QUESTIONS = [
    Example("q1", "What is the capital of France?", ("Paris",)),
    Example("q2", "What is 12 times 12?", ("144",)),
]


async def found(*architectures: str, concurrency: int = 1) -> Counter[str]:
    """Tokens that each architecture found in the cache."""
    counts: Counter[str] = Counter()
    results = await evaluate(QUESTIONS, architectures, reply_tokens=40, concurrency=concurrency)
    for result in results:
        counts[result.task.architecture.name] += sum(call.usage.cached_input_tokens for call in result.calls)
    return counts


@pytest.mark.slow
async def test_what_an_architecture_finds_does_not_depend_on_the_order_of_the_architectures() -> None:
    one, other = "direct", "direct?max_exemplars=1"
    assert await found(one, other) == await found(other, one)


@pytest.mark.nightly
async def test_nor_on_which_others_run() -> None:
    assert (await found("direct", "cot"))["direct"] == (await found("direct"))["direct"] > 0
