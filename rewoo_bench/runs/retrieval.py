"""Which of a question's gold pages an agent saw: retrieval, separated from reasoning.

    gold_pages_found(example.chain, trajectory.steps)    # 0.5: one of two gold pages was shown

A page counts as seen where a line of an observation begins with its title and a colon, the form of the search tools
(tools/search.py). Pages of a tool with another form don't count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewoo_bench.text.words import clean_title, fold
from rewoo_bench.types import Hop, Step


def gold_pages_found(chain: Sequence[Hop], steps: Iterable[Step]) -> float | None:
    """The share of the gold pages (0 to 1) that some observation showed; None where no gold page is known."""
    starts = {f"{fold(clean_title(hop.title))}:" for hop in chain if hop.tool == "Search"}
    if not starts:
        return None
    shown = {start for step in steps for start in _shown(starts, step.observation)}
    return len(shown) / len(starts)


def _shown(starts: Iterable[str], observation: str) -> Iterable[str]:
    lines = [fold(line) for line in observation.splitlines()]
    return (start for start in starts if any(line.startswith(start) for line in lines))
