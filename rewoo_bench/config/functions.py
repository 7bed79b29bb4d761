"""A Python function as a tool: its parameters, their type hints and its docstring are what a model reads of it.

    @changes_state
    def update_stock(sku: str, change: int) -> str:
        "Changes the stock of a product by a number, which may be negative."

    --tools my_tools.py                  # the public functions of a file

A result is text, or JSON where it isn't; an exception is the call's error, with its message.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, create_model

from rewoo_bench.config.own_thread import OwnThread
from rewoo_bench.config.specs import load_module
from rewoo_bench.errors import RunStopped, SpecError, ToolError, unknown

Function = TypeVar("Function", bound=Callable[..., Any])

DONE = "Done."
"""The result of a change that returned no text, which would read as if nothing had been found."""
_MARK = "_rewoo_bench_changes_state"
_NO_INPUTS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


def changes_state(function: Function) -> Function:
    """Marks a tool that changes something. Calls of such tools are made one at a time, in the order of the plan."""
    setattr(function, _MARK, True)
    return function


@dataclass(frozen=True)
class FunctionSchema:
    """What a model reads of a function, and whether calls of it change state."""

    name: str
    description: str
    arguments: type[BaseModel]
    changes_state: bool = False
    is_async: bool = False

    @cached_property
    def sha256(self) -> str:
        """A hash of all that a model reads of it."""
        said = [self.name, self.description, self.arguments.model_json_schema()]
        return sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def schema_of(name: str, function: Callable[..., Any], where: str, *, is_method: bool = False) -> FunctionSchema:
    """The schema of a function; of a method without `self`. Raises `SpecError` that begins with `where`."""
    where = f"{where}: {name}"
    parameters = list(inspect.signature(function).parameters.values())[1 if is_method else 0 :]
    try:
        hints = typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception as error:  # a hint in quotes, of somebody's own
        raise SpecError(f"{where}: its type hints can't be read: {type(error).__name__}: {error}") from None
    fields: dict[str, Any] = {}
    for each in parameters:
        if each.kind in _NO_INPUTS:
            raise SpecError(f"{where}: {str(each)!r} is no input that a model can name; give each parameter a name")
        if each.name not in hints:
            raise SpecError(f"{where}: the parameter {each.name!r} has no type hint, and it is what the model reads")
        fields[each.name] = (hints[each.name], ... if each.default is each.empty else each.default)
    try:
        made = create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
        made.model_json_schema()
    except Exception as error:  # a type without a schema
        reason = str(error).partition("\n")[0]
        raise SpecError(f"{where}: its parameters have no JSON schema: {reason}") from None
    said = inspect.cleandoc(function.__doc__ or "").strip() or name.replace("_", " ")
    is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
    return FunctionSchema(name, said, made, bool(getattr(function, _MARK, False)), is_async)


def public_functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that a module itself defines, without those whose names begin with `_`, in its order."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def as_text(result: object) -> str:
    """What a tool returned, as a model reads it. Raises `ToolError` for what neither is text nor JSON."""
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ToolError(f"it returned {type(result).__name__}, expected text or JSON: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} isn't JSON")


@contextmanager
def outliving(what: str) -> Iterator[None]:
    """Around code of the user's: its SystemExit, which would end the run as done, is an error like any other, and so
    is a cancellation that nobody requested.

    A KeyboardInterrupt can't be told from the user's own. It ends the run, in good order: `RunStopped`.
    """
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"it ends the program with {error.code!r}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled, and not by the run") from error
    except KeyboardInterrupt as error:
        raise RunStopped(f"{what} raised KeyboardInterrupt") from error


Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function that isn't async, somewhere that it may take its time."""


class FunctionTool:
    """A function as a `rewoo_bench.types.Tool`. `call` is that of its world; without one it runs in any thread."""

    def __init__(self, schema: FunctionSchema, function: Callable[..., Any], call: Call | None = None) -> None:
        self.schema = schema
        self.name = schema.name
        self.description = schema.description
        self.arguments = schema.arguments
        self.changes_state = schema.changes_state
        self.stateful = self.in_world = call is not None
        self._is_async = schema.is_async
        self._function = function
        self._call = call or _in_a_thread

    async def __call__(self, arguments: BaseModel) -> str:
        given = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        with outliving(self.name):
            if self._is_async:
                text = as_text(await self._function(**given))
            else:
                text = await self._call(lambda: as_text(self._function(**given)))  # before another call changes it
        return text if text.strip() or not self.changes_state else DONE


async def _in_a_thread(function: Callable[[], Any]) -> Any:
    """Anyio's threads would have to end before the command does."""
    thread = OwnThread()
    try:
        return await thread.call(function)
    finally:
        thread.end()


# A file of functions: `--tools my_tools.py`.


def is_tool_file(name: str) -> bool:
    """Whether a name of `--tools` is a Python file, which stands for all its public functions."""
    return name.endswith(".py")


@lru_cache(maxsize=64)
def file_schemas(path: str, where: str) -> Mapping[str, FunctionSchema]:
    """The schemas of a file's public functions. Raises `SpecError` that begins with `where`."""
    found = public_functions(_module(path, where))
    if not found:
        raise SpecError(f"{where}: {path} has no public function; each would be a tool")
    return {name: schema_of(name, function, f"{where}: {path}") for name, function in found.items()}


def file_tool(path: str, name: str, where: str) -> FunctionTool:
    """A function of a file as a tool. Raises `SpecError`."""
    schemas = file_schemas(path, where)
    if name not in schemas:
        raise SpecError(f"{where}: {path}: {unknown('function', name, schemas)}")
    return FunctionTool(schemas[name], getattr(_module(path, where), name))


def _module(path: str, where: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise SpecError(f"{where}: no such file: {path!r}")
    return load_module(file.stem, where, file.parent)
