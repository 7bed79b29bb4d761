"""The environment of an agent's process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rewoo_bench.redaction import plain_environment

# Beginnings of variables that an agent gets from its question alone.
_LEFT_OUT = ("OPENAI_", "ANTHROPIC_", "AZURE_", "GEMINI_", "GOOGLE_", "OLLAMA_", "REWOO_BENCH_")


def agent_environment(own: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent: this process's without credentials, then the agent's own, then the session's."""
    plain = {name: value for name, value in plain_environment().items() if not name.upper().startswith(_LEFT_OUT)}
    local = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
    return {**plain, **local, **{name: os.path.expandvars(value) for name, value in own.items()}, **session}
