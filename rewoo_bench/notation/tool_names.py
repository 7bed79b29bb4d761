"""Names of tools in what a model writes: `Search`, and as servers have them `web-search`, `fs.read`, `ns/tool`.

spellings({"web_search": …})            {"web_search": "web_search"}
spelt("Web-Search", spellings(tools))   "web_search"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from rewoo_bench.types import Tool

NO_TOOLS: Mapping[str, Tool] = MappingProxyType({})

_NAME = r"[^\W\d][^\s*`\[\](){}=#\"',;<>|]{0,199}+"
_ANY_NAME = re.compile(_NAME)


def odd_names(tools: Iterable[str]) -> tuple[str, ...]:
    """The names that only one who knows the tools takes for names, such as `3d`."""
    return _odd_names(tuple(tools))


@lru_cache(maxsize=64)
def _odd_names(tools: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in tools if not _ANY_NAME.fullmatch(name))


def name_pattern(odd: Iterable[str] = ()) -> str:
    """A regular expression for names of tools, known or not."""
    return "|".join([*map(re.escape, sorted(odd, key=len, reverse=True)), _NAME])


def spellings(tools: Iterable[str]) -> Mapping[str, str]:
    """The tools' names by any spelling that means one of them."""
    return _spellings(tuple(tools))


@lru_cache(maxsize=64)
def _spellings(tools: tuple[str, ...]) -> Mapping[str, str]:
    exact = {name: name for name in tools}
    folded: dict[str, list[str]] = {}
    for name in exact:
        folded.setdefault(_fold(name), []).append(name)
    return {fold: names[0] for fold, names in folded.items() if len(names) == 1} | exact


def spelt(written: str, known: Mapping[str, str]) -> str:
    """The tool's own spelling of a name, or the name as it is written."""
    return known.get(written) or known.get(_fold(written), written)


def _fold(name: str) -> str:
    """`web-search` and `Web_Search` are meant alike."""
    return re.sub(r"\W+", "_", name).casefold()
