"""The tools that an agent may call, made anew for every question.

| tool | what it does |
|---|---|
| `Search`, `Lookup` | find and read pages: a question's own documents, or a `Corpus` |
| `Wikipedia` | the same over the live encyclopedia |
| `Calculator` | arithmetic |
| `LLM` | asks the question's own model (factories.py) |
"""

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

__all__ = [
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
