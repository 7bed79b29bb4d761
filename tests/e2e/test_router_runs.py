"""A model that chooses between two architectures, on the embedded model."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runs import quiet

from rewoo_bench.runs.folder import load

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
SMALL = ("--model", "local/smollm2-135m", "-n", 2)
PARENTS = ("direct", "cot")  # one call each, for the sake of slow machines


@pytest.mark.nightly
def test_a_model_chooses_on_the_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asking = "router?policy=model&parents=direct+cot"
    assert quiet("--arch", f"direct,cot,{asking}", *SMALL, "--out", "here") == 0
    rows = load("here")
    asked = rows[rows["architecture"] == asking]
    assert set(asked["routed_to"]) <= set(PARENTS)
    assert (asked["router_tokens"] > 0).all()
    assert (asked["llm_calls"] == 2).all()
