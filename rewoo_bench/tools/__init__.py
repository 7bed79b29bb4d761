"""The tools that an agent may call, made anew for every question.

| tool | what it does |
|---|---|
| `Search`, `Lookup` | find and read pages: a question's own documents, or a `Corpus` |
| `Wikipedia` | the same over the live encyclopedia |
| `Calculator` | arithmetic |
| `LLM` | asks the question's own model (factories.py) |
"""

from typing import Any

from rewoo_bench.tools.calculator import Calculator, CalculatorArguments
from rewoo_bench.tools.corpus import Corpus
from rewoo_bench.tools.search import (
    DocumentPages,
    Hit,
    Lookup,
    LookupArguments,
    Pages,
    PageState,
    Search,
    SearchArguments,
)
from rewoo_bench.tools.wikipedia import Wikipedia

BUNDLED: dict[str, Any] = {each.name: each for each in (Search, Lookup, Wikipedia, Calculator)}

__all__ = [
    "BUNDLED",
    "Calculator",
    "CalculatorArguments",
    "Corpus",
    "DocumentPages",
    "Hit",
    "Lookup",
    "LookupArguments",
    "PageState",
    "Pages",
    "Search",
    "SearchArguments",
    "Wikipedia",
]
