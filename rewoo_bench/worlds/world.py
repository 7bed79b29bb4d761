"""Worlds: tools over a state of their own, made fresh for each question, trial and architecture.

    worlds = WorldFile.read("shop.py")            # checked, before the first question
    async with worlds.opened(example) as world:
        await world.tools["lookup_order"](arguments)
        await world.solved("17")                  # what became of it; None where the world has no check

A file of the user's has one class. Its public methods are the tools (config/functions.py), `__init__(self, row)` gets
the question's row, and `solved(self, answer)`, where there is one, is the score. The file is run anew for each world,
so nothing is left of another one in the class or the module; what it imports is shared.

Where a tool isn't async the world has a thread of its own, so that SQLite is content and a call may hang.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Protocol, TypeVar, get_args

from pydantic import BaseModel

from rewoo_bench.config.functions import FunctionSchema, FunctionTool, outliving, schema_of
from rewoo_bench.config.names import SOLVED
from rewoo_bench.config.own_thread import OwnThread
from rewoo_bench.errors import RewooBenchError, RunStopped, SpecError
from rewoo_bench.types import Example, Tool

T = TypeVar("T")

CHECK = SOLVED
"""The method of a world that says what became of it."""


class WorldFault(RewooBenchError):
    """A world that couldn't be made, or whose check gave no verdict: its question has failed, and isn't wrong."""


@dataclass(frozen=True)
class World:
    """What one question happens in."""

    tools: Mapping[str, Tool]
    check: Callable[[str], Any] | None = None
    """Async; gets the answer."""
    attack: Callable[[str], bool] | None = None
    """Whether an attack has come to its end; gets the answer. None where the task has none."""

    async def solved(self, answer: str, timeout_s: float) -> bool | None:
        """Whether the task is done; None where the world has no check. Raises `WorldFault`."""
        if self.check is None:
            return None
        try:
            async with asyncio.timeout(timeout_s) as limit:
                with outliving(CHECK):
                    verdict = await self.check(answer)
        except RunStopped:
            raise
        except Exception as error:  # of somebody's own code
            if limit.expired():
                raise WorldFault(f"{CHECK} took longer than {timeout_s:g} s") from None
            raise WorldFault(f"{CHECK} raised {type(error).__name__}: {error}") from error
        if not isinstance(verdict, bool):
            raise WorldFault(f"{CHECK} returned {verdict!r:.80}, expected True or False")
        return verdict


class Worlds(Protocol):
    """What makes the worlds of a run. Every question may have other tools."""

    @property
    def name(self) -> str: ...

    @property
    def schemas(self) -> Mapping[str, FunctionSchema]:
        """Every tool that a question may have, by its name."""
        ...

    @property
    def has_check(self) -> bool: ...

    def opened(self, example: Example) -> AbstractAsyncContextManager[World]:
        """A new world of a question. Raises `WorldFault` where it can't be made."""
        ...

    @property
    def manifest(self) -> dict[str, Any]:
        """The facts for a run's manifest."""
        ...


@asynccontextmanager
async def opened_in_time(worlds: Worlds, example: Example, timeout_s: float) -> AsyncIterator[World]:
    """A new world of a question. Raises `WorldFault` where it can't be made in that time."""
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(timeout_s):
                world = await stack.enter_async_context(worlds.opened(example))
        except TimeoutError:
            raise WorldFault(f"it took longer than {timeout_s:g} s to make") from None
        yield world


_number = count(1)


@dataclass(frozen=True)
class WorldFile:
    """The worlds that a Python file makes."""

    path: Path
    code: CodeType
    class_name: str
    schemas: Mapping[str, FunctionSchema]
    has_check: bool
    sha256: str
    own_types: bool = field(repr=False, default=False)
    """Whether a type hint or a default is of a class of the file: then each world has schemas of its own."""

    @classmethod
    def read(cls, named: str) -> WorldFile:
        """The worlds of `shop.py`, or of `shop.py:Shop` where it has several classes. Raises `SpecError`."""
        file, _, class_name = named.partition(".py:")
        path = Path(f"{file}.py" if class_name else named)
        where = f"--world {named}"
        if not path.is_file():
            raise SpecError(f"{where}: no such file")
        source = path.read_bytes()
        try:
            code = compile(source, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise SpecError(f"{where}: {error}") from None
        with _Loaded(path, code, where) as module:
            kind = _world_class(module, class_name, where)
            methods = _tools_of(kind)
            if not methods:
                raise SpecError(f"{where}: the class {kind.__name__} has no public method; each would be a tool")
            schemas = {name: schema_of(name, method, where, is_method=True) for name, method in methods.items()}
            _check_takes(kind, 1, f"{kind.__name__}.__init__ has to take (self, row)", where)
            has_check = callable(getattr(kind, CHECK, None))
            if has_check:
                _check_takes(getattr(kind, CHECK), 2, f"{kind.__name__}.{CHECK} has to take (self, answer)", where)
            inputs = [each for schema in schemas.values() for each in schema.arguments.model_fields.values()]
            own_types = any(_is_of(module, each.annotation) or _is_of(module, each.default) for each in inputs)
            return cls(path, code, kind.__name__, schemas, has_check, sha256(source).hexdigest(), own_types)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def manifest(self) -> dict[str, Any]:
        """The facts for a run's manifest."""
        return {"file": self.path.name, "class": self.class_name, "sha256": self.sha256, "check": self.has_check}

    @asynccontextmanager
    async def opened(self, example: Example) -> AsyncIterator[World]:
        """A new world of a question. Raises `WorldFault` where it can't be made."""
        is_async = all(schema.is_async for schema in self.schemas.values())
        thread = None if is_async else OwnThread()
        call = thread.call if thread else _at_once
        loaded = _Loaded(self.path, self.code, f"--world {self.path}")
        try:
            made = f"{self.class_name}({{…}})" if example.row else f"{self.class_name}({{}})"
            try:
                with outliving(made):
                    module = await call(loaded.__enter__)
                    world = await call(lambda: getattr(module, self.class_name)(deepcopy(example.row)))
            except RunStopped:
                raise
            except Exception as error:  # of somebody's own code
                raise WorldFault(f"{made} raised {type(error).__name__}: {error}") from error
            yield World(
                {name: FunctionTool(schema, getattr(world, name), call) for name, schema in self._schemas(world)},
                _check_of(world, partial(thread.call, waits=True) if thread else call) if self.has_check else None,
            )
        finally:
            if thread:
                thread.end()
            loaded.__exit__(None, None, None)

    def _schemas(self, world: object) -> list[tuple[str, FunctionSchema]]:
        if not self.own_types:
            return list(self.schemas.items())
        methods = _tools_of(type(world))
        return [(name, schema_of(name, each, str(self.path), is_method=True)) for name, each in methods.items()]


def _check_of(world: Any, call: Callable[[Callable[[], Any]], Any]) -> Callable[[str], Any]:
    async def check(answer: str) -> Any:
        if inspect.iscoroutinefunction(world.solved):
            return await world.solved(answer)
        return await call(lambda: world.solved(answer))

    return check


class _Loaded:
    """A new module of a file's code, known to Python as long as it lasts. Raises `SpecError`."""

    def __init__(self, path: Path, code: CodeType, where: str) -> None:
        self._path, self._code, self._where = path, code, where
        self._name = f"{path.stem}@{next(_number)}"  # no name of a file beside it

    def __enter__(self) -> ModuleType:
        folder = str(self._path.resolve().parent)
        if folder not in sys.path:
            sys.path.append(folder)  # it may import the files beside it
        module = ModuleType(self._name)
        module.__file__ = str(self._path)
        sys.modules[self._name] = module  # where a dataclass looks for its own
        try:
            exec(self._code, module.__dict__)
        except BaseException as error:  # SystemExit would end the run as done
            del sys.modules[self._name]
            if isinstance(error, KeyboardInterrupt):
                raise
            raise SpecError(f"{self._where}: can't be run: {type(error).__name__}: {error}") from error
        return module

    def __exit__(self, *_: object) -> None:
        sys.modules.pop(self._name, None)


def _world_class(module: ModuleType, wanted: str, where: str) -> type:
    """The class of that name, or the only one that has public methods and isn't a mere record."""
    own = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    own = [each for each in own if not (each.__name__.startswith("_") or issubclass(each, BaseModel))]
    worlds = {each.__name__: each for each in own if _tools_of(each)}
    if wanted:
        if (named := getattr(module, wanted, None)) is None or not inspect.isclass(named):
            raise SpecError(f"{where}: there is no class {wanted!r}; there are: {', '.join(worlds) or 'none'}")
        return named
    if len(worlds) != 1:
        if worlds:
            names = " and ".join(worlds)
            one = f"{module.__file__}:{next(iter(worlds))}"
            raise SpecError(f"{where}: it has the classes {names}; name one, as in {one}")
        reason = "it has no class with public methods; each of these would be a tool; --tools takes functions"
        raise SpecError(f"{where}: {reason}")
    return next(iter(worlds.values()))


def _is_of(module: ModuleType, hint: object) -> bool:
    """Whether a type hint names a class of the module, or a value is of one."""
    return getattr(hint, "__module__", "") == module.__name__ or any(_is_of(module, each) for each in get_args(hint))


def _tools_of(kind: type) -> dict[str, Callable[..., Any]]:
    """The public methods of a class, inherited ones first, in the order of their definition."""
    found: dict[str, Callable[..., Any]] = {}
    for each in reversed(kind.__mro__[:-1]):
        own = {name: value for name, value in vars(each).items() if inspect.isfunction(value)}
        found |= {name: value for name, value in own.items() if not name.startswith("_") and name != CHECK}
    return found


def _check_takes(function: Callable[..., Any], values: int, expected: str, where: str) -> None:
    """Raises `SpecError` for what can't be called with so many values."""
    try:
        inspect.signature(function).bind(*[None] * values)
    except TypeError:
        raise SpecError(f"{where}: {expected}") from None


async def _at_once(function: Callable[[], T]) -> T:
    return function()
