"""What every test sees: asyncio as the one event loop, and no model or data set hub."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# A shell starts background jobs with SIGINT ignored, and nohup with SIGHUP ignored. Commands that a test starts and
# interrupts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub, which reads it once

settings.register_profile("any machine", deadline=None)  # a busy one is no fault
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    # litellm hides this one itself when it is imported, but only until the end of the test that did so.
    config.addinivalue_line("filterwarnings", "ignore:Item '.*' on TypedDict class:UserWarning")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
