"""Finds a page's number by its title, exactly or nearly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property

from rewoo_bench.text.words import clean_title, title_key, without_disambiguation

LONGEST_TITLE = 300  # characters; Wikipedia allows 255 bytes
_SIMILARITY = 0.75  # difflib's ratio; lets through one wrong letter in four
_SAME_BEGINNING = 3  # letters that near titles of a big store must share, to have few to compare


def _group(pairs: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    groups: dict[str, tuple[int, ...]] = {}
    for key, page in pairs:
        groups[key] = (*groups.get(key, ()), page)
    return groups


class Titles:
    """Cleaned titles of pages, in the pages' order. `keys` are their `title_key`s where known already."""

    def __init__(self, titles: Sequence[str], keys: Sequence[str] | None = None) -> None:
        self._titles = titles
        keys = keys if keys is not None else [title_key(title) for title in titles]
        self._by_key = _group(zip(keys, range(len(titles)), strict=True))
        disambiguated = (page for page, title in enumerate(titles) if title.endswith(")"))
        self._by_short_key = _group((title_key(without_disambiguation(titles[page])), page) for page in disambiguated)

    def find(self, title: str) -> int | None:
        """The page with the same letters and digits, the exact spelling first; or None.

        Without one, the only page that has this title with a disambiguation in parentheses.
        """
        if len(title) > LONGEST_TITLE:
            return None
        key = title_key(title)
        pages = self._by_key.get(key, ())
        for page in pages:
            if self._titles[page] == clean_title(title):
                return page
        if pages:
            return pages[0]
        shortened = self._by_short_key.get(key, ())
        return shortened[0] if len(shortened) == 1 else None

    def similar(self, title: str, k: int) -> list[int]:
        """Up to k pages with almost the same title, nearest first."""
        key = title_key(title)
        if len(title) > LONGEST_TITLE or not key:
            return []
        near = get_close_matches(key, self._neighbours(key), n=k, cutoff=_SIMILARITY)
        return [self._by_key[name][0] for name in near]

    def _neighbours(self, key: str) -> Sequence[str]:
        """The keys worth a comparison: all of a small store, else those with the same beginning."""
        if len(self._titles) <= 1000:
            return self._sorted_keys
        beginning = key[:_SAME_BEGINNING]
        start = bisect_left(self._sorted_keys, beginning)
        return self._sorted_keys[start : bisect_left(self._sorted_keys, beginning + "\U0010ffff")]

    @cached_property
    def _sorted_keys(self) -> list[str]:
        return sorted(self._by_key)
