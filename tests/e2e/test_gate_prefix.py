"""A prefix cache that a change breaks: the gate says where the prompts of different questions begin to differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from command_runs import quiet

from rewoo_bench.config.names import bundled_folder
from rewoo_bench.gate.check import check_run
from rewoo_bench.gate.verdict import Verdict

pytestmark = pytest.mark.usefixtures("own_folder")


def judged(monkeypatch: pytest.MonkeyPatch, name: str, runner: str, how: str, *, reports_cache: bool = True) -> Verdict:
    """A run whose prompts are broken against one whose prompts aren't, both of the same architecture and oracle."""
    shutil.copytree(bundled_folder("architectures") / name, "mine")
    spec = Path("mine/architecture.toml")
    own = spec.read_text().replace(f'runner = "{name}"', f'runner = "broken_prefixes:{runner}"')
    spec.write_text(own.replace('"../', f'"{bundled_folder("architectures")}/'))
    for out, broken in (("before", ""), ("now", how)):
        monkeypatch.setenv("PREFIX", broken)
        assert quiet("--arch", "./mine", "--model", "oracle", "-n", 8, "--out", out) == 0
        for table in () if reports_cache else ("calls", "questions"):
            zeroed(Path(out, f"{table}.parquet"), "cached_input_tokens")
    return check_run("now", baseline="before")


def zeroed(path: Path, *columns: str) -> None:
    table = pq.read_table(path)
    for name in columns:
        place, kind = table.schema.get_field_index(name), table.schema.field(name).type
        table = table.set_column(place, name, pc.if_else(pc.is_null(table[name]), None, 0).cast(kind))
    pq.write_table(table, path)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("name", "runner", "how", "cause"),
    [
        ("react", "Broken", "time", "in the instructions"),
        ("react", "Broken", "tools in any order", "in the tool list"),
        ("react-native", "BrokenNative", "time", "in the instructions"),
        ("react-native", "BrokenNative", "tools in any order", "in the tool list"),
    ],
)
def test_prompts_that_begin_differently_fail_with_the_part_in_which_they_do(
    monkeypatch: pytest.MonkeyPatch, name: str, runner: str, how: str, cause: str
) -> None:
    verdict = judged(monkeypatch, name, runner, how)
    (check,) = [check for check in verdict.failures if check.metric == "shared_prefix_tokens"]
    assert check.text.startswith("the shared prefix of the agent's prompts ends ")
    assert f" tokens earlier, {cause} (" in check.text


def test_a_trace_behind_a_text_that_changes_fails_though_the_provider_reports_no_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdict = judged(monkeypatch, "react", "Broken", "step", reports_cache=False)
    (check,) = [check for check in verdict.failures if check.kind == "prefix cache"]
    assert check.name == "cacheable_tokens"
    assert "input tokens a question can't be cached instead of" in check.text


def test_the_same_prompts_share_the_same_prefix_whatever_runs_at_once() -> None:
    for out, concurrency in (("one", 1), ("eight", 8)):
        assert quiet("--arch", "react", "--model", "oracle", "-n", 8, "--concurrency", concurrency, "--out", out) == 0
    one, eight = (json.loads(Path(out, "run.json").read_text())["shared_prefixes"] for out in ("one", "eight"))
    assert one == eight
    assert one["react"]["agent"]["ends_in"] == "question"
    assert one["react"]["agent"]["tokens"] > 1000
