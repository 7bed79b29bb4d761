"""Which tools an architecture gets for a data set: those that the questions need and that it can use.

tools_for({"Search": …, "Lookup": …}, ["Calculator", "LLM"])       # ReAct: Calculator
tools_for({"Search": …, "LLM": …}, ["Calculator", "LLM"])          # ReWOO: Calculator, LLM
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import SpecError, unknown
from rewoo_bench.plugins import installed_plugins
from rewoo_bench.short_names import TOOLS


def checked_tools(names: Sequence[str], where: str) -> tuple[str, ...]:
    """The names of tools, bundled or installed. Raises `SpecError` that begins with `where`."""
    known = {*TOOLS, *(each.name for each in installed_plugins("tools"))} if names else set()
    for name in names:
        if name not in known:
            raise SpecError(f"{where}: {unknown('tool', name, known)}")
        if names.count(name) > 1:
            raise SpecError(f"{where}: {name} is named twice")
    return tuple(names)


def tools_for(own: Mapping[str, ToolSettings], wanted: Sequence[str]) -> dict[str, ToolSettings]:
    """The tools `wanted` by a data set in the place of an architecture's `own`, with its own settings.

    - None are wanted, or it has none: its own stay.
    - LLM only where it has it: a loop that calls the model after each observation needs no model as a tool.
    - Wikipedia in the place of Search, where it has that and no Search; Lookup with either, where it has that.
    - Tools of its own that aren't bundled ones stay.
    """
    if not wanted or not own:
        return dict(own)
    names: list[str] = []
    for name in wanted:
        if name == "LLM" and name not in own:
            continue
        search = "Wikipedia" if name == "Search" and "Wikipedia" in own and "Search" not in own else name
        names += [search, "Lookup"] if name == "Search" and "Lookup" in own else [search]
    names += [name for name in own if name not in TOOLS]
    return {name: own.get(name, ToolSettings()) for name in dict.fromkeys(names)}
