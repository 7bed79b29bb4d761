"""BM25 as in Lucene, for a handful of texts: ten paragraphs, the sentences of one page.

bm25(["tower", "height"], [Counter({"tower": 2}), Counter({"river": 1})])   ->  [0.95, 0.0]

In plain Python, since for so few texts an index of bm25s takes several times as long.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

K1, B = 1.5, 0.75  # BM25's saturation and length normalisation, the same as the corpus's index


def bm25(query: Sequence[str], texts: Sequence[Counter[str]]) -> list[float]:
    """The score of every text: the sum over terms of idf * tf / (tf + k1 * (1 - b + b * length / mean))."""
    lengths = [counts.total() for counts in texts]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(lengths)
    for term in query:
        frequency = sum(term in counts for counts in texts)
        if frequency:
            idf = math.log(1 + (len(lengths) - frequency + 0.5) / (frequency + 0.5))
            for page, counts in enumerate(texts):
                if tf := counts[term]:
                    scores[page] += idf * tf / (tf + K1 * (1 - B + B * lengths[page] / mean))
    return scores
