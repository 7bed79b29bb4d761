"""Which tools an architecture gets for a data set: those that the questions need and that it can use.

tools_for({"Search": …, "Lookup": …}, ["Calculator", "LLM"])       # ReAct: Calculator
tools_for({"Search": …, "LLM": …}, ["Calculator", "LLM"])          # ReWOO: Calculator, LLM
tools_for({"Search": …, "LLM": …}, ["my_module:make_tool"])        # a tool of your own, by its import path
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from rewoo_bench.config.specs import ToolSettings, import_object
from rewoo_bench.errors import SpecError, unknown
from rewoo_bench.plugins import installed_plugins
from rewoo_bench.short_names import TOOLS

NO_TOOLS = "none"
"""The name of no tool: alone, it leaves every architecture without tools."""


def checked_tools(names: Sequence[str], where: str) -> tuple[str, ...]:
    """The names of tools, bundled or installed, or import paths, or `none` alone.

    Raises `SpecError` that begins with `where`.
    """
    if tuple(names) == (NO_TOOLS,):
        return (NO_TOOLS,)
    known = {*TOOLS, *(each.name for each in installed_plugins("tools"))} if names else set()
    for name in names:
        if ":" in name:
            named_settings(name, where)
        elif name not in known:
            raise SpecError(f"{where}: {unknown('tool', name, known)}; or give an import path 'module:function'")
        if names.count(name) > 1:
            raise SpecError(f"{where}: {name} is named twice")
    return tuple(names)


def named_settings(name: str, where: str) -> tuple[str, ToolSettings]:
    """The name of a tool as architectures have it, and its settings: `my_module:make_tool` is imported.

    Its name is that of the class, or of the tool that a function without parameters makes, else the function's.
    Raises `SpecError` that begins with `where`.
    """
    if ":" not in name:
        return name, ToolSettings()
    made = import_object(name, where)
    try:
        if inspect.isroutine(made) and not inspect.signature(made).parameters:
            made = made()
    except Exception as error:  # of somebody's own function
        raise SpecError(f"{where}: {name!r} raised {type(error).__name__}: {error}") from error
    own = getattr(made, "name", None) or getattr(made, "__name__", None)
    return own if isinstance(own, str) else name.rpartition(":")[2], ToolSettings(factory=name)


def tools_for(own: Mapping[str, ToolSettings], wanted: Sequence[str]) -> dict[str, ToolSettings]:
    """The tools `wanted` by a data set in the place of an architecture's `own`, with its own settings.

    - None are wanted, or it has none: its own stay. `none` is wanted: it gets none.
    - LLM only where it has it: a loop that calls the model after each observation needs no model as a tool.
    - Wikipedia in the place of Search, where it has that and no Search; Lookup with either, where it has that.
    - Tools of its own that aren't bundled ones stay.
    """
    if not wanted or not own:
        return dict(own)
    if tuple(wanted) == (NO_TOOLS,):
        return {}
    names: list[str] = []
    for name in wanted:
        if name == "LLM" and name not in own:
            continue
        search = "Wikipedia" if name == "Search" and "Wikipedia" in own and "Search" not in own else name
        names += [search, "Lookup"] if name == "Search" and "Lookup" in own else [search]
    names += [name for name in own if name not in TOOLS]
    made = dict(named_settings(name, "--tools") for name in dict.fromkeys(names))
    return {name: own.get(name, settings) for name, settings in made.items()}
