"""Tools against budgets and an earlier count: what their schemas take of each prompt, without a run.

[[tools]]                               # of budgets.toml
server = "uvx mcp-server-time"          # without it: all tools of the command
total_tokens = { max = 2000 }
tokens_per_tool = { max = 400 }
number_of_tools = { max = 12 }
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.gate.count_checks import ROUNDING, percent
from rewoo_bench.gate.verdict import Check, Group, Verdict
from rewoo_bench.text.counts import counted
from rewoo_bench.text.prompt_parts import ToolSize
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.tokens import TOKENIZER

_GROUP = Group("tools", "schemas", TOKENIZER)
_ALL = "all tools"  # no function's name has a space
_SHOWN = 5


class Most(BaseModel):
    """The largest number that is allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max: int = Field(ge=0, strict=True)


class ToolBudget(BaseModel):
    """A `[[tools]]`: limits of the tools of one MCP server, or of all tools of the command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str | None = None
    total_tokens: Most | None = None
    tokens_per_tool: Most | None = None
    number_of_tools: Most | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> ToolBudget:
        if self.total_tokens is self.tokens_per_tool is self.number_of_tools is None:
            raise ValueError("a budget of tools limits nothing")
        return self


def check_tools(
    sizes: Sequence[ToolSize], budgets: Sequence[ToolBudget], before: Sequence[ToolSize] | None, margin: float
) -> Verdict:
    """Tools, the largest first, against budgets and those `before`. Raises `UsageError` for an unknown server."""
    checks = [check for budget in budgets for check in _within(budget, sizes)]
    return Verdict((*checks, *(_growth(sizes, before, margin) if before is not None else ())))


def _within(budget: ToolBudget, sizes: Sequence[ToolSize]) -> Iterator[Check]:
    if budget.server is not None:
        sources = dict.fromkeys(size.source for size in sizes)
        if budget.server not in sources:
            raise UsageError(f"[[tools]]: {unknown('server', budget.server, sources)}")
        sizes = [size for size in sizes if size.source == budget.server]
    of = f" of {budget.server}" if budget.server else ""
    largest = ", ".join(f"{size.name} {size.schema:,}" for size in sizes[:_SHOWN])
    if budget.total_tokens is not None:
        total = sum(size.schema for size in sizes)
        yield _check(f"total_tokens{of}", total, budget.total_tokens.max, f"the largest: {largest}")
    if budget.tokens_per_tool is not None:
        limit = budget.tokens_per_tool.max
        over = ", ".join(f"{size.name} {size.schema:,}" for size in sizes if size.schema > limit)
        yield _check(f"tokens_per_tool{of}", max((size.schema for size in sizes), default=0), limit, over)
    if budget.number_of_tools is not None:
        names = ", ".join(size.name for size in sizes)
        yield _check(f"number_of_tools{of}", len(sizes), budget.number_of_tools.max, names)


def _check(name: str, measured: int, limit: int, more: str) -> Check:
    over = measured > limit
    text = f"{name}: {measured:,} is {'over' if over else 'within'} the limit of {limit:,}" + (
        f" ({more})" if over else ""
    )
    return Check("budget", "fail" if over else "pass", _GROUP, name, text, float(measured), float(limit))


def _growth(sizes: Sequence[ToolSize], before: Sequence[ToolSize], margin: float) -> Iterator[Check]:
    """The tokens of all schemas; what grew is named, new tools too."""
    old, new = ({size.name: size.schema for size in side} for side in (before, sizes))
    total, was = sum(new.values()), sum(old.values())
    grown = {name: tokens - old.get(name, 0) for name, tokens in new.items() if tokens > old.get(name, 0)}
    named = [
        f"{name} +{grown[name]:,} ({f'{old[name]:,} -> {new[name]:,}' if name in old else 'new'})"
        for name in sorted(grown, key=lambda name: (-grown[name], name))
    ]
    share = f" ({total / was - 1:+,.1%})" if was else ""
    text = f"tokens of {counted(len(new), 'tool schema')} {was:,} -> {total:,}{share}"
    fails = total > was * (1 + margin) * (1 + ROUNDING)
    text += f", {percent(margin)} is allowed: {', '.join(named)}" if fails else ""
    yield Check(
        "growth", "fail" if fails else "pass", _GROUP, "total_tokens", text, total, was * (1 + margin), float(was)
    )


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
