"""A learned router from a run of the embedded model to a run that uses it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runs import quiet
from routing_runs import where_text_decides

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.config.router import read_router
from rewoo_bench.runs.folder import load

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
SMALL = ("--model", "local/smollm2-135m", "-n", 2)
PARENTS = ("direct", "cot")  # one call each, for the sake of slow machines


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_a_model_and_a_learned_router_choose_on_the_embedded_model(folder: Path) -> None:
    pytest.importorskip("sklearn")
    where_text_decides(folder / "earlier", parents=PARENTS)
    with pytest.raises(SystemExit, match="0"):
        main(["route", "earlier", "--parents", "direct,cot", "--out", "router.json", "--format", "json"])
    router = read_router(Path("router.json"))
    asking = "router?policy=model&parents=direct+cot"
    using = "router?policy=learned&parents=direct+cot&file=router.json"
    assert quiet("--arch", f"direct,cot,{asking},{using}", *SMALL, "--out", "here") == 0
    rows = load("here")
    asked, used = (rows[rows["architecture"] == name] for name in (asking, using))
    assert set(asked["routed_to"]) <= set(PARENTS)
    assert (asked["router_tokens"] > 0).all()
    assert (asked["llm_calls"] == 2).all()
    assert list(used["routed_to"]) == [router.choose(text) for text in used["question"]]
    assert (used["router_tokens"] == 0).all()
    report = rewoo_bench.route("here", parents=PARENTS)
    assert f"model ({asking})" in [way.name for way in report.ways]
    assert report.questions == 2
