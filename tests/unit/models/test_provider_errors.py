"""Failed calls as errors of a model."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from rewoo_bench.models.hosted.http_endpoint import HTTPFailure
from rewoo_bench.models.hosted.provider_errors import expected, to_model_error


@pytest.mark.parametrize("package", ["openai", "httpx", "aiohttp"])
def test_a_call_may_fail_while_another_threads_import_is_half_done(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, ModuleType(package))
    failure = HTTPFailure(429, '{"error": {"message": "slow down"}}', {})
    assert isinstance(failure, expected())
    error = to_model_error(failure, "openai/x", timeout=60)
    assert (error.status, error.retryable) == (429, True)
