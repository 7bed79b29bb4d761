"""A user's own model: by its import path, or by the name of an installed package's entry point.

    rewoo-bench run --model my_package:MyModel      # a class, a function that returns a model, or a model
    rewoo-bench run --model my-model                # [project.entry-points."rewoo_bench.models"] my-model = "…"

A class or function is called without arguments. The model needs `async complete(request)`, as
`rewoo_bench.types.Model` has it; `name`, `max_output_tokens` and `async aclose()` are optional. Its price is unknown,
and the flags that set temperature or output length are its own affair. A model with `with_gold` is given each
question's gold, as the oracle is, and the manifest says so (`sees_gold`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction, signature
from typing import Any

from anyio import CancelScope

from rewoo_bench.config.names import LOCAL, REPLAY, is_oracle
from rewoo_bench.config.plugins import find_plugin
from rewoo_bench.config.specs import import_object
from rewoo_bench.errors import UsageError
from rewoo_bench.models.hosted.providers import is_provider_name
from rewoo_bench.types import GoldAware, Model

_OTHER_SIGNATURE = """'complete' gets one argument, the request. Change it to
    from rewoo_bench.types import Request
    async def complete(self, request: Request):
        messages, role, stop = request.messages, request.role, request.stop     # and max_tokens, tools, schema, …"""
_IMPORT_PATH = re.compile(r"(?!ft:)[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")  # "ft:…" is OpenAI's


def is_own_model(name: str) -> bool:
    """Whether a name is an import path, or one that an installed package has given to a model."""
    if name.startswith((LOCAL, REPLAY)) or is_oracle(name):
        return False
    if _IMPORT_PATH.fullmatch(name):
        return True
    return not is_provider_name(name) and find_plugin("models", name) is not None


@asynccontextmanager
async def open_own_model(name: str) -> AsyncIterator[Model]:
    """The model of that name, closed in the end.

    Raises `UsageError` where it can't be imported or made, or has no `async complete`.
    """
    where = f"--model: {name!r}"
    source = import_object(name, "--model") if _IMPORT_PATH.fullmatch(name) else find_plugin("models", name)
    model: Any = source
    if isinstance(source, type) or not hasattr(source, "complete"):
        if not callable(source):
            raise UsageError(f"{where} is neither a model nor a function or class that makes one")
        try:
            model = source()
        except Exception as error:  # of the user's own code
            raise UsageError(f"{where} can't be made without arguments: {type(error).__name__}: {error}") from error
    if not iscoroutinefunction(getattr(model, "complete", None)):
        raise UsageError(f"{where} is no model: {type(model).__name__} has no method 'async def complete(…)'")
    if len(signature(model.complete).parameters) != 1:
        raise UsageError(f"{where}: {_OTHER_SIGNATURE}")
    try:
        yield model
    finally:
        if iscoroutinefunction(close := getattr(model, "aclose", None)):
            with CancelScope(shield=True):
                await close()


def own_manifest(name: str, model: Model) -> dict[str, Any]:
    """What exactly answers, JSON-ready."""
    kind = type(model)
    facts: dict[str, Any] = {
        "name": name,
        "import_path": name if _IMPORT_PATH.fullmatch(name) else f"{kind.__module__}:{kind.__qualname__}",
        "own_name": str(getattr(model, "name", kind.__name__)),
    }
    return {**facts, "sees_gold": True} if isinstance(model, GoldAware) else facts
