"""Functions as tools: what is refused before the first question, and what becomes of odd results and exceptions."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from rewoo_bench.config.functions import FunctionTool, changes_state, file_schemas, file_tool, schema_of
from rewoo_bench.config.own_thread import OwnThread
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import RunStopped, SpecError, ToolError
from rewoo_bench.tools.guards import Deadline

pytestmark = pytest.mark.anyio


def no_hint(sku) -> str:  # type: ignore[no-untyped-def]
    return str(sku)


def any_number(*skus: str) -> str:
    return str(skus)


def no_schema(at: os.DirEntry[str]) -> str:
    return str(at)


def unreadable(sku: Sku) -> str:  # type: ignore[name-defined]  # noqa: F821
    return str(sku)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_hint, "the parameter 'sku' has no type hint, and it is what the model reads"),
        (any_number, "\"*skus: 'str'\" is no input that a model can name; give each parameter a name"),
        (no_schema, "its parameters have no JSON schema: Unable to generate pydantic-core schema for "),
        (unreadable, "its type hints can't be read: NameError: name 'Sku' is not defined"),
    ],
)
def test_what_no_model_could_call_is_refused_in_one_line(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(SpecError) as refused:
        schema_of(function.__name__, function, "--world shop.py")
    assert str(refused.value).startswith(f"--world shop.py: {function.__name__}: {reason}")
    assert "\n" not in str(refused.value)


class Order(BaseModel):
    sku: str
    share: float = 1.0


def raising(error: BaseException) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


def raising_async(error: BaseException) -> Callable[[], Any]:
    async def function() -> Any:
        raise error

    return function


@pytest.fixture(params=["any thread", "its world's thread", "the loop"])
async def called(request: pytest.FixtureRequest) -> AsyncIterator[Callable[[Callable[[], Any]], Any]]:
    """Calls a function as a tool with its guards, in each of the places where tools run."""
    thread = OwnThread() if request.param == "its world's thread" else None

    async def call(function: Callable[[], Any]) -> str:
        if request.param == "the loop" and not asyncio.iscoroutinefunction(function):
            sync = function

            async def function() -> Any:
                return sync()

        tool = FunctionTool(schema_of("act", function, ""), function, thread.call if thread else None)
        return await Deadline(tool, ToolSettings(timeout_s=10))(tool.arguments())

    yield call
    if thread:
        thread.end()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is\n", "as it is\n"),
        ({"café": [1, None, True]}, '{"café": [1, null, true]}'),
        ([Order(sku="mug")], '[{"sku": "mug", "share": 1.0}]'),
        (None, "null"),
        (17, "17"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
async def test_a_result_is_text_or_json(called: Callable[[Callable[[], Any]], Any], result: object, text: str) -> None:
    assert await called(lambda: result) == text


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (math.nan, "it returned float, expected text or JSON: Out of range float values"),
        (b"bytes", "it returned bytes, expected text or JSON: bytes isn't JSON"),
        ({(1, 2): 3}, "it returned dict, expected text or JSON: keys must be str"),
    ],
)
async def test_what_is_neither_is_a_failed_call(
    called: Callable[[Callable[[], Any]], Any], result: object, reason: str
) -> None:
    with pytest.raises(ToolError) as failed:
        await called(lambda: result)
    assert str(failed.value).startswith(reason)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (ToolError("say it so"), "say it so"),
        (TimeoutError("of its own"), "timeout"),
        (ValueError("x" * 5000), f"ValueError: {'x' * 300}"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
        (SystemExit(0), "RuntimeError: it ends the program with 0"),
        (StopIteration("end"), "RuntimeError: "),
        (asyncio.CancelledError(), "RuntimeError: it was cancelled, and not by the run"),
    ],
)
@pytest.mark.parametrize("made", [raising, raising_async])
async def test_an_exception_is_the_calls_error_whatever_it_is(
    called: Callable[[Callable[[], Any]], Any],
    made: Callable[[BaseException], Callable[[], Any]],
    error: BaseException,
    text: str,
) -> None:
    with pytest.raises(ToolError) as failed:
        await called(made(error))
    assert str(failed.value).startswith(text)
    assert len(str(failed.value)) < 400


@pytest.mark.parametrize("made", [raising, raising_async])
async def test_an_interrupt_ends_the_run_in_good_order_and_is_no_failed_call(
    called: Callable[[Callable[[], Any]], Any], made: Callable[[BaseException], Callable[[], Any]]
) -> None:
    """It can't be told from the user's own Ctrl-C; a failed call would make a wrong answer of it."""
    with pytest.raises(RunStopped, match="act raised KeyboardInterrupt"):
        await called(made(KeyboardInterrupt()))


async def test_a_real_cancellation_is_not_taken_for_a_failed_call(called: Callable[[Callable[[], Any]], Any]) -> None:
    async def function() -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(called(function))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_mark_stays_under_a_decorator_and_so_does_async() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @logged
    @changes_state
    async def order(sku: str, count: int = 1) -> str:
        """Orders it."""
        return sku * count

    schema = schema_of("order", order, "")
    assert (schema.changes_state, schema.is_async, schema.description) == (True, True, "Orders it.")
    assert list(schema.arguments.model_fields) == ["sku", "count"]


# A file of functions.


def test_public_functions_of_a_file_are_tools_and_nothing_else_is(tmp_path: Path) -> None:
    file = tmp_path / "shop_tools.py"
    file.write_text(
        "from json import dumps\n"
        "def order(sku: str) -> str:\n    return _priced(sku)\n"
        "def _priced(sku: str) -> str:\n    return sku\n"
        "class Shop:\n    def close(self) -> None: ...\n"
        "count = 3\n"
    )
    assert list(file_schemas(str(file), "--tools")) == ["order"]
    with pytest.raises(SpecError, match=r"--tools: .*shop_tools\.py: unknown function '_priced'"):
        file_tool(str(file), "_priced", "--tools")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "no such file: "),
        ("x = 1\n", "has no public function; each would be a tool"),
        ("def f(x: int:\n", "can't import 'bad_tools': SyntaxError: "),
        ("import sys\nsys.exit(0)\n", "can't import 'bad_tools': it ends the program with 0"),
        ("1 / 0\n", "can't import 'bad_tools': ZeroDivisionError: division by zero (bad_tools.py, line 1)"),
        ("def f(x) -> str:\n    return x\n", "bad_tools.py: f: the parameter 'x' has no type hint"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_in_one_line(tmp_path: Path, source: str | None, reason: str) -> None:
    file = tmp_path / "bad_tools.py"
    if source is not None:
        file.write_text(source)
    with pytest.raises(SpecError) as refused:
        file_schemas(str(file), "--tools")
    assert str(refused.value).startswith("--tools: ")
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)
