"""The data sets that claims are about: their names in claims.toml, in titles, and as `--dataset` takes them.

title("physics")            # "PhysicsQA"
dataset_flag("sotu")        # "sotu=FILE --corpus PASSAGES": the file is the paper's, and its rows have no pages
"""

from __future__ import annotations

from typing import Literal, get_args

Data = Literal[
    "hotpotqa", "triviaqa", "gsm8k", "strategyqa", "physics", "sports", "sotu", "parallelqa", "chain", "sample", "other"
]
# Recognised by the format of their rows, whatever their files are called.
BY_FORMAT: tuple[Data, ...] = get_args(Data)[:8]
_TITLES: dict[Data, str] = {
    "hotpotqa": "HotpotQA",
    "triviaqa": "TriviaQA",
    "gsm8k": "GSM8K",
    "strategyqa": "StrategyQA",
    "parallelqa": "ParallelQA",
    "physics": "PhysicsQA",
    "sports": "SportsUnderstanding",
    "sotu": "SOTUQA",
    "chain": "Generated chains of look-ups",
}
_FROM_A_FILE: tuple[Data, ...] = ("physics", "sports", "sotu", "parallelqa")
_WITHOUT_PAGES: tuple[Data, ...] = ("triviaqa", "strategyqa", "physics", "sports", "sotu", "parallelqa")


def title(data: Data) -> str:
    """The name that papers use."""
    return _TITLES.get(data, data)


def dataset_flag(data: Data) -> str:
    """The value of `--dataset`, with `--corpus` where its rows have no pages to search.

    FILE stands for the file of a data set that no hub has, PASSAGES for the pages.
    """
    return f"{data}{'=FILE' if data in _FROM_A_FILE else ''}{' --corpus PASSAGES' if data in _WITHOUT_PAGES else ''}"
