"""The calculator: one page that answers "plan or loop?" for a task's numbers, without a request to any network."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rewoo_bench.analysis.law import ARCHITECTURES, MOST_DEPTH, Task, compared, default_sizes
from rewoo_bench.config.price_sheets import Tariff, named_tariff

_HERE = Path(__file__).parent
PRICES = (
    *("openai:gpt-5-mini", "openai:gpt-4o", "anthropic:claude-sonnet-4-5", "anthropic:claude-haiku-4-5"),
    *("google:gemini-2.5-flash", "deepseek:deepseek-chat", "none:gpt-5-mini"),
)
"""The prices that can be chosen; each number can be changed."""


def calculator_page() -> str:
    """The page, with the sizes of the bundled architectures and the prices of the shipped sheets."""
    rivals = {"true": compared(Task(reads=True)), "false": compared(Task(reads=False))}
    shown = {design for own in rivals.values() for design in own}
    parts = {
        "LAW": (_HERE / "law.js").read_text("utf-8"),
        "SIZES": json.dumps({design: asdict(sizes) for design, sizes in default_sizes().items() if design in shown}),
        "ARCHITECTURES": json.dumps({design: name for design, name in ARCHITECTURES.items() if design in shown}),
        "COMPARED": json.dumps(rivals),
        "PRICES": json.dumps([price_of(named_tariff(name)) for name in PRICES], ensure_ascii=False),
        "MOST_DEPTH": str(MOST_DEPTH),
    }
    page = (_HERE / "page.html").read_text("utf-8")
    for name, text in parts.items():
        page = page.replace(f"/*{name}*/", text, 1)
    return page


def price_of(tariff: Tariff) -> dict[str, Any]:
    """A price as the page has it, in dollars a token."""
    rule = tariff.rule and {
        "kind": tariff.rule.kind,
        "least": tariff.rule.minimum_prefix_tokens,
        "block": tariff.rule.block_tokens,
        "scope": tariff.rule.scope,
    }
    names = ("input", "output", "cache_read", "cache_write")
    tools = tariff.tools and tariff.tools.model_dump(include={"share", "per_call", "response_schema"})
    return {"name": tariff.name, **{name: getattr(tariff, name) for name in names}, "rule": rule, "tools": tools}
