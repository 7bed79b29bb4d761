"""Tokens of tool schemas, which are sent with every model call, against a budget (`[[tools]]`) or an earlier count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.gate.budgets import ToolBudget
from rewoo_bench.gate.count_checks import ROUNDING, percent
from rewoo_bench.gate.verdict import Check, Group, Status, Verdict
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.tokens import TOKENIZER, ToolSize
from rewoo_bench.text.words import counted

_SCHEMAS = Group("tools", "schemas", TOKENIZER)
_ALL = "all tools"  # no function's name has a space


def check_tools(
    sizes: Sequence[ToolSize], budgets: Sequence[ToolBudget], before: Sequence[ToolSize] | None, margin: float
) -> Verdict:
    """Tools, the largest first, against budgets and those `before`. Raises `UsageError` for an unknown server."""
    checks = []
    for budget in budgets:
        sources = dict.fromkeys(size.source for size in sizes)
        if budget.server is not None and budget.server not in sources:
            raise UsageError(f"[[tools]]: {unknown('server', budget.server, sources)}")
        own = [size for size in sizes if budget.server in (None, size.source)]
        schemas, names = [f"{size.name} {size.schema:,}" for size in own], ", ".join(size.name for size in own)
        per_tool = budget.tokens_per_tool.max if budget.tokens_per_tool else 0
        larger = ", ".join(schemas[: sum(size.schema > per_tool for size in own)])
        measures = {
            "total_tokens": (sum(size.schema for size in own), f"the largest: {', '.join(schemas[:5])}"),
            "tokens_per_tool": (max((size.schema for size in own), default=0), larger),
            "number_of_tools": (len(own), names),
        }
        for key, (measured, more) in measures.items():
            if (limit := getattr(budget, key)) is None:
                continue
            name = key + (f" of {budget.server}" if budget.server else "")
            over = measured > limit.max
            text = f"{name}: {measured:,} is {'over' if over else 'within'} the limit of {limit.max:,}"
            text += f" ({more})" if over else ""
            status: Status = "fail" if over else "pass"
            checks.append(Check("budget", status, _SCHEMAS, name, text, float(measured), float(limit.max)))
    if before is not None:
        checks.append(_tool_growth(sizes, before, margin))
    return Verdict(tuple(checks))


def _tool_growth(sizes: Sequence[ToolSize], before: Sequence[ToolSize], margin: float) -> Check:
    """The tokens of all schemas; what grew is named, new tools too."""
    old, new = ({size.name: size.schema for size in side} for side in (before, sizes))
    total, was = sum(new.values()), sum(old.values())
    share = f" ({total / was - 1:+,.1%})" if was else ""
    text = f"tokens of {counted(len(new), 'tool schema')} {was:,} -> {total:,}{share}"
    limit = was * (1 + margin)
    status: Status = "pass"
    if total > limit * (1 + ROUNDING):
        grown = sorted((old.get(name, 0) - tokens, name) for name, tokens in new.items() if tokens > old.get(name, 0))
        named = [
            f"{name} +{-less:,} ({f'{old[name]:,} -> {new[name]:,}' if name in old else 'new'})" for less, name in grown
        ]
        text, status = f"{text}, {percent(margin)} is allowed: {', '.join(named)}", "fail"
    return Check("growth", status, _SCHEMAS, "total_tokens", text, total, limit, float(was))


def tool_table(sizes: Sequence[ToolSize]) -> str:
    """A row for each tool, the largest first, and their sums; the server of each where there are several sources."""
    rows = [(size.name, f"{size.schema:,}", f"{size.line:,}", size.source) for size in sizes]
    sums = (f"{sum(size.schema for size in sizes):,}", f"{sum(size.line for size in sizes):,}")
    several = 4 if len({size.source for size in sizes}) > 1 else 3
    cells = [row[:several] for row in (("tool", "schema", "line of text", "of"), *rows, (_ALL, *sums, ""))]
    title = f"{counted(len(sizes), 'tool')}: tokens of each model call that is given them ({TOKENIZER})"
    return "\n".join([title, "", *text_table(cells)])


def tool_points(sizes: Sequence[ToolSize]) -> str:
    """Tokens of each schema, as github-action-benchmark takes them; `read_tool_points` reads them again."""
    total = ToolSize(_ALL, "", sum(size.schema for size in sizes), 0)
    points = [{"name": size.name, "unit": "tokens", "value": size.schema} for size in (*sizes, total)]
    return json.dumps(points, indent=2, ensure_ascii=False) + "\n"


class _Point(BaseModel):
    name: str
    value: int = Field(ge=0, strict=True)


def read_tool_points(path: Path) -> list[ToolSize]:
    """The tools of an earlier `gate --mcp … --json FILE`. Raises `DataError`."""
    try:
        points = TypeAdapter(list[_Point]).validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        cause = error.errors()[0]["msg"] if isinstance(error, ValidationError) else getattr(error, "strerror", error)
        raise DataError(
            f"{str(path)!r} is no count of tools: {cause}; write one with `gate --mcp … --json FILE`"
        ) from None
    return [ToolSize(point.name, "", point.value, 0) for point in points if point.name != _ALL]
