"""The forms of gateway_agents.py, and what a test changes in them; without the SDKs, which take seconds to import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

DIALECTS = ("chat", "completion", "responses", "messages")
EACH_WAY = tuple(f"{dialect}{way}" for dialect in DIALECTS for way in ("", "_streamed"))
FORMS = (*EACH_WAY, "gemini", "gemini_streamed")


@dataclass
class Settings:
    """What a test changes in its agents."""

    timeout_s: float = 30.0
    max_retries: int = 2
    calls: int = 1
    """Requests for a question, each different."""
    on_event: Callable[[str, Any], None] = lambda question, event: None
    """Gets each event of a stream as it arrives."""
    include_usage: bool = False


SETTINGS = Settings()


@contextmanager
def with_settings(**values: Any) -> Iterator[None]:
    """Agents with other settings, inside."""
    before = dict(vars(SETTINGS))
    vars(SETTINGS).update(values)
    try:
        yield
    finally:
        vars(SETTINGS).clear()
        vars(SETTINGS).update(before)
