"""What a router sees of a question: its words, the names in it, and both as numbers.

    words_of("Is Oslo older than Bergen?")        ["is", "oslo", "older", "than", "bergen"]
    count_names("Is Oslo older than Bergen?")     2
    features_of("Is Oslo older than Bergen?")     {"length": 0.5, "names": 0.67, "first=is": 1.0, "word=older": 1.0, …}

Only the text of the question: an architecture is told neither its type nor its answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_PER_WORD, _PER_NAME = 0.1, 1 / 3  # so that most lengths and numbers of names are between 0 and about 3, as words are
_LONGEST_WORD = 40  # characters; a longer word is no word
NUMBERS = ("length", "names")
"""Names of the features that aren't words."""


def words_of(question: str) -> list[str]:
    """The words of a question in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(question)]


def count_names(question: str) -> int:
    """The number of names: runs of words that begin with a capital letter.

    The first word alone is no name, since every sentence begins with a capital letter.
    """
    runs: list[list[int]] = []
    for place, word in enumerate(_WORD.findall(question)):
        if not word[0].isupper():
            continue
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return sum(run != [0] for run in runs)


def contains(words: Sequence[str], phrase: str) -> bool:
    """Whether the words of a phrase follow each other in `words`."""
    wanted = words_of(phrase)
    starts = range(len(words) - len(wanted) + 1)
    return any(list(words[start : start + len(wanted)]) == wanted for start in starts)


def features_of(question: str) -> dict[str, float]:
    """The features of a learned router: length, number of names, the first word, and each word that occurs."""
    words = words_of(question)
    features = {"length": _PER_WORD * len(words), "names": _PER_NAME * count_names(question)}
    if words and len(words[0]) <= _LONGEST_WORD:
        features[f"first={words[0]}"] = 1.0
    features |= {f"word={word}": 1.0 for word in words if len(word) <= _LONGEST_WORD}
    return features
