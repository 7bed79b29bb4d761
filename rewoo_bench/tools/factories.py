"""Tools of other packages: functions or classes that make a tool, called with the objects that their parameters name.

    def make_glossary(documents): ...              # the documents of the question
    def make_reader(pages, model): ...             # the pages of Search; the metered model

    find_factory("Glossary", ToolSettings(factory="my_package:make_glossary"), "[tools.Glossary]").tool(supplies)

The gold answer is no parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.config.named import known_names
from rewoo_bench.config.names import TOOLS
from rewoo_bench.config.plugins import find_plugin
from rewoo_bench.config.specs import ToolSettings, import_object
from rewoo_bench.errors import RewooBenchError, SpecError, unknown
from rewoo_bench.runners.notation.grammars import answer_grammar
from rewoo_bench.runners.notation.replies import answer_in
from rewoo_bench.tools.search import Pages
from rewoo_bench.types import Document, Message, Model, Request, Tool


@dataclass(frozen=True, slots=True)
class Supplies:
    """The objects that a factory may ask for, by the name of a parameter."""

    documents: Sequence[Document]
    """The documents that come with the question."""
    pages: Pages
    """The pages that Search searches: the corpus, else the question's documents."""
    model: Model
    """The question's model; its calls are counted. A tool asks it under the role `tool`."""


SUPPLIES = tuple(field.name for field in fields(Supplies))


@dataclass(frozen=True, slots=True)
class ToolFactory:
    """A function or class that makes a tool, and which of `SUPPLIES` it takes."""

    function: Callable[..., Any]
    parameters: tuple[str, ...]

    def tool(self, supplies: Supplies) -> Tool:
        """A new tool for a question."""
        made: Tool = self.function(**{name: getattr(supplies, name) for name in self.parameters})
        return made

    def check(self, supplies: Supplies, where: str) -> None:
        """Raises `SpecError` that begins with `where` for a factory that makes no tool."""
        try:
            tool = self.tool(supplies)
        except RewooBenchError:
            raise
        except Exception as error:  # of somebody's own function: the architecture can't run
            raise SpecError(f"{where}: the factory raised {type(error).__name__}: {error}") from error
        call = None if inspect.isclass(tool) else getattr(type(tool), "__call__", None)  # noqa: B004
        arguments = getattr(tool, "arguments", None)
        said = [getattr(tool, name, None) for name in ("name", "description")]
        fault = ""
        if not all(isinstance(each, str) and each.strip() for each in said):
            fault = "'name' and 'description' must be texts"
        elif not (inspect.isclass(arguments) and issubclass(arguments, BaseModel)):
            fault = "'arguments' must be a pydantic model class"
        elif call is None or not inspect.iscoroutinefunction(inspect.unwrap(call)):
            fault = "it must have a method `async def __call__(self, arguments)`"
        if fault:
            raise SpecError(f"{where}: the factory returned {tool!r:.80}, which is no tool: {fault}")


def find_factory(name: str, settings: ToolSettings, where: str) -> ToolFactory | None:
    """The factory that architecture.toml names, or the installed one; None for a bundled tool. Raises `SpecError`."""
    if settings.factory:
        function = import_object(settings.factory, where)
    elif settings.mcp or settings.recording or settings.function or settings.world:
        return None
    else:
        function = find_plugin("tools", name)  # also raises for a bundled name that another package has
        if name in TOOLS:
            return None
        if function is None:
            raise SpecError(f"{where}: {unknown('tool', name, known_names('tools'))}; or give it a factory")
    if not callable(function):
        raise SpecError(f"{where}: the factory is {function!r:.80}, expected a function or a class that makes a tool")
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of some built-in classes
        return ToolFactory(function, ())
    for parameter in parameters:
        if parameter.name not in SUPPLIES and parameter.default is parameter.empty and parameter.kind in _NAMED:
            raise SpecError(f"{where}: the factory's {unknown('parameter', parameter.name, SUPPLIES)}")
    return ToolFactory(function, tuple(each.name for each in parameters if each.name in SUPPLIES))


_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class LLMArguments(BaseModel):
    """What is asked of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str = Field(min_length=1)


class LLM:
    """Asks the question's own model for one fact, as in the ReWOO paper's plans: `#E2 = LLM[… #E1]`.

    Its calls are counted under the role `tool`. Raises `ModelError` where the provider failed.
    """

    name = "LLM"
    description = "a language model that reads. It answers a question from the text given with it."
    arguments: type[BaseModel] = LLMArguments
    asks_model = True

    def __init__(self, model: Model, instructions: str, max_tokens: int | None = None) -> None:
        self._model = model
        self._instructions = instructions
        self._max_tokens = max_tokens

    async def __call__(self, arguments: LLMArguments) -> str:
        messages = [Message("system", self._instructions), Message("user", f"Question: {arguments.question}")]
        completion = await self._model.complete(
            Request(messages, role="tool", max_tokens=self._max_tokens, stop=["\nQuestion:"], grammar=answer_grammar())
        )
        return answer_in(completion.text)
