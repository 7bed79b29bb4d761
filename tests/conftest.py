"""What every test sees: asyncio as the one event loop, and no model or data set hub."""

from __future__ import annotations

import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub, which reads it once


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
