"""Writes the keywords of `evaluate` and `bench` for editors and type checkers, from the options of a run.

python scripts/option_keywords.py     # rewoo_bench/runs/option_keywords.pyi
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

from rewoo_bench.runs.options import OPTIONS, RunOptions

STUB = Path(__file__).parents[1] / "rewoo_bench" / "runs" / "option_keywords.pyi"
_NAMED = ("architectures", "dataset", "model", "resume")  # arguments of `evaluate`, and what Python has no use for
_HEAD = '''# Written by scripts/option_keywords.py.
from pathlib import Path
from typing import Literal, TypedDict

class OptionKeywords(TypedDict, total=False):
    """`RunOptions` as keywords of `evaluate`."""

'''
_WIDER = {"tuple[str, ...]": "str | list[str] | tuple[str, ...]", "Path": "str | Path"}


def stub() -> str:
    """The text of the stub."""
    kinds = get_type_hints(RunOptions)
    lines = []
    for name in OPTIONS:
        if name not in _NAMED:
            kind = kinds[name]
            text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
            text = text.replace("typing.", "").replace("pathlib.", "").replace("'", '"')
            text = re.sub(r"Optional\[(\w+)\]", r"\1 | None", text)
            for narrow, wide in _WIDER.items():
                text = text.replace(narrow, wide)
            lines.append(f"    {name}: {text}\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
