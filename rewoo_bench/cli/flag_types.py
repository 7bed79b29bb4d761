"""Types of flags that click lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rewoo_bench.errors import unknown

NO_CAP = "none"

# Fields of a request that a flag or the harness sets.
_OWN_FIELDS = {
    "model": "--model",
    "messages": None,
    "prompt": None,
    "stream": None,
    "n": None,
    "tools": None,
    "stop": None,
    "temperature": "--temperature",
    "seed": "--seed",
    "max_tokens": "--reply-tokens",
    "max_completion_tokens": "--reply-tokens",
    "reasoning_effort": "--reasoning-effort",
}
_DROPPABLE = (
    *("temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens", "tools", "response_format"),
    *("grammar", "json_schema", "reasoning_effort", "cache_control", "system"),
)


class Number(click.FloatRange):
    """A number. `--help` shows its range and `RunOptions` checks it, so that Python has the same error message."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return click.FLOAT.convert(value, parameter, context)


class Whole(click.IntRange):
    """The same for a whole number."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return click.INT.convert(value, parameter, context)


class AmountOrDropped(Number):
    """The same for a cap of a run; with `none` a resumed run drops the cap that it has."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return None if value == NO_CAP else super().convert(value, parameter, context)


class CountOrDropped(Whole):
    """The same for a whole number."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return None if value == NO_CAP else super().convert(value, parameter, context)


class IdsFile(click.ParamType[Any]):
    """A file of ids, one a line, as the tuple of its ids; a list of ids is taken as it is (`--from`)."""

    name = "file"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        from rewoo_bench.evaluation.question_choice import read_ids  # 0.2 s, which `run --help` needn't take

        return tuple(map(str, value)) if isinstance(value, list | tuple) else read_ids(Path(value))

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def extra_fields(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Fields for every request, as the text of a JSON object. Raises for a field that a flag or the harness sets."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{value!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"expected a JSON object such as '{{\"top_p\": 0.9}}', got {value!r}")
    for name in found:
        if name in _OWN_FIELDS:
            flag = _OWN_FIELDS[name]
            raise click.BadParameter(f"{name!r} is set by {flag}" if flag else f"{name!r} is set by the harness itself")
    return value


def dropped_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names of parameters, from repeated flags or lists with commas."""
    names = _listed(values, "parameter")
    for name in names:
        if name not in _DROPPABLE:
            raise click.BadParameter(unknown("parameter", name, _DROPPABLE))
    return names


def tool_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names of tools, from repeated flags or lists with commas; the run checks them."""
    return _listed(values, "tool")


def _listed(values: tuple[str, ...], what: str) -> tuple[str, ...]:
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    if values and not names:
        raise click.BadParameter(f"expected the name of a {what}")
    return names


def share(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """`2%` or `0.02` as a share. A whole number without a percent sign is ambiguous and refused."""
    if value is None:
        return None
    percent = value.strip().endswith("%")
    try:
        number = float(value.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < (float("inf") if percent else 1):
        raise click.BadParameter(f"{value!r} is neither a percentage (2%) nor a fraction below 1 (0.02)")
    return number
