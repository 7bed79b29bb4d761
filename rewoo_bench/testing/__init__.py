"""For your own tests: a model server that records its requests, a model with scripted replies, pytest's fixtures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewoo_bench.testing.scripted_model import ScriptedModel
    from rewoo_bench.testing.server import ModelServer


_MODULES = {"ModelServer": "server", "ScriptedModel": "scripted_model"}
__all__ = ["ModelServer", "ScriptedModel"]


def __getattr__(name: str) -> Any:
    """A class, imported when it is first used: every pytest loads this package, for its plugin."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
