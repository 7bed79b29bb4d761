"""evaluate, bench and what they return, from async code and from plain functions."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench import Example, Message, Result, Results, ScriptedModel, UsageError
from rewoo_bench.cli.main import main
from rewoo_bench.errors import RunStopped
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.types import Request

GOLDEN = Path(__file__).parents[1] / "golden" / "runs" / "finished"

EXAMPLES = [Example(f"q{number}", f"Which river? ({number})", ("Neva",)) for number in range(3)]


def neva(messages: Sequence[Message], role: str) -> str:
    return "Answer: Neva"


def in_a_notebook_cell(**arguments: Any) -> Results:
    """`await evaluate(...)` where an event loop runs, as IPython has one."""

    async def cell() -> Results:
        return await rewoo_bench.evaluate(**{"dataset": "sample", "model": "oracle", "questions": 3, **arguments})

    return asyncio.run(cell())


def test_results_are_a_sequence_of_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    results = in_a_notebook_cell(architectures=["rewoo", "react"])
    assert (results.folder, list(tmp_path.iterdir())) == (None, [])  # its folder was a temporary one
    assert isinstance(results, Sequence)
    assert len(results) == 6
    assert all(isinstance(each, Result) for each in results)
    assert [each.task.architecture.name for each in results[:2]] == ["rewoo", "react"]
    assert repr(results).startswith("<6 results of run '")


def test_a_frame_of_results_is_that_of_their_run(tmp_path: Path) -> None:
    results = in_a_notebook_cell(architectures=["rewoo", "react"], out=tmp_path / "run")
    loaded = rewoo_bench.load(tmp_path / "run").drop(columns="run_folder")
    frame = results.to_frame()
    assert frame.dtypes.to_dict() == loaded.dtypes.to_dict()
    assert frame.to_json(date_format="iso") == loaded.to_json(date_format="iso")
    assert len(results.calls_to_frame()) == frame["llm_calls"].sum() + frame["tool_calls"].sum()


def test_compare_summarise_and_plot_take_results_as_they_are(tmp_path: Path) -> None:
    results = in_a_notebook_cell(architectures=["rewoo", "react"], questions=8)
    ratio = rewoo_bench.compare(results).pairs[0]["total_tokens"].interval.estimate
    frame = results.to_frame()
    assert ratio == rewoo_bench.compare(frame).pairs[0]["total_tokens"].interval.estimate
    assert [each.architecture for each in rewoo_bench.summarise(results)] == ["rewoo", "react"]
    files = rewoo_bench.plot(results, out=tmp_path, only=["ratio", "parts"], formats=["svg"])
    assert [path.name for path in files] == ["ratio.svg", "parts.svg", "captions.md"]


def test_a_run_with_a_folder_is_read_by_everything(tmp_path: Path) -> None:
    results = in_a_notebook_cell(architectures=["rewoo", "react"], out=tmp_path / "run", questions=5)
    assert (results.folder, results.status, results.reason) == (tmp_path / "run", "done", None)
    assert rewoo_bench.check_gate(results, baseline=results).code == 0
    assert any(finding.interval for finding in rewoo_bench.check_claims(results))
    assert rewoo_bench.plot(results, out=tmp_path / "plots", only=["ratio"])
    with pytest.raises(SystemExit) as ended:
        main(["run", "--resume", str(tmp_path / "run"), "-n", "7", "--no-progress"])
    assert ended.value.code == 0
    assert rewoo_bench.load(tmp_path / "run")["example_id"].nunique() == 7


def test_bench_and_evaluate_write_the_same_rows(tmp_path: Path) -> None:
    run = rewoo_bench.bench("direct", out=tmp_path / "bench", questions=4)
    results = in_a_notebook_cell(architectures="direct", questions=4, out=tmp_path / "evaluate")
    same = ["architecture", "example_id", "prediction", "total_tokens", "model", "dataset"]
    assert run.rows[same].to_dict("list") == results.to_frame()[same].to_dict("list")
    own, of_rows = (rewoo_bench.compare(each).to_frame() for each in (run, run.rows))
    paid = ["cost_usd", "usd_per_solved", "cached_input_tokens"]  # rows alone have no price
    own, of_rows = (each[~each["measure"].isin(paid)].drop(columns=["prices"]) for each in (own, of_rows))
    assert own.to_csv(index=False) == of_rows.to_csv(index=False)


def test_a_comparison_has_dollars_at_a_chosen_price_with_an_interval() -> None:
    chosen = rewoo_bench.compare(GOLDEN, prices="anthropic-5m").to_frame()
    default = rewoo_bench.compare(GOLDEN).to_frame()
    dollars = [rows[rows["measure"] == "cost_usd"] for rows in (chosen, default)]
    assert [set(rows["kind"]) for rows in dollars] == [{"mean", "ratio"}] * 2
    assert dollars[0]["estimate"].iloc[0] > dollars[1]["estimate"].iloc[0]
    assert dollars[0]["low"].notna().all()
    tokens = default[(default["measure"] == "total_tokens") & (default["kind"] == "mean")]
    assert ((tokens["low"] <= tokens["estimate"]) & (tokens["estimate"] <= tokens["high"])).all()
    with pytest.raises(UsageError, match=r"prices: they are of a run's calls\.parquet; give the run's folder"):
        rewoo_bench.compare(rewoo_bench.load(GOLDEN), prices="openai")


def test_objects_of_the_caller_are_kept_in_a_folder_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = in_a_notebook_cell(
        dataset=EXAMPLES, architectures="direct", model=ScriptedModel(neva), questions=2, out=tmp_path / "run"
    )
    assert [each.trajectory.answer for each in results] == ["Neva", "Neva"]
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.dataset.name, manifest.dataset.rows, manifest.dataset.examples) == ("examples", 3, 2)
    assert rewoo_bench.load(tmp_path / "run")["exact_match"].tolist() == [True, True]
    with pytest.raises(SystemExit) as ended:
        main(["run", "--resume", str(tmp_path / "run")])
    assert ended.value.code == 2
    assert "Python objects" in capsys.readouterr().err


def test_a_run_with_a_folder_that_ends_early_is_returned(tmp_path: Path) -> None:
    results = in_a_notebook_cell(architectures="direct", questions=50, run_tokens=2000, out=tmp_path / "run")
    assert results.status == "incomplete"
    assert results.reason is not None
    assert "--run-tokens" in results.reason
    assert 0 < len(results) < 50
    assert len(results) == len(rewoo_bench.load(tmp_path / "run"))
    with pytest.raises(RunStopped, match="--run-tokens"):
        in_a_notebook_cell(architectures="direct", questions=50, run_tokens=2000)


class Cancelling:
    """A model that cancels the task that asks it, as a notebook's stop button does."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Request) -> Any:
        self.calls += 1
        if self.calls > 2:
            self.task.cancel()
            await asyncio.sleep(10)
        return await ScriptedModel(neva).complete(request)

    async def evaluate(self, out: Path) -> None:
        self.task: asyncio.Task[Any] = asyncio.ensure_future(
            rewoo_bench.evaluate(EXAMPLES, "direct", model=self, concurrency=1, out=out)
        )
        with pytest.raises(asyncio.CancelledError):
            await self.task


def test_a_cancelled_evaluation_keeps_what_was_finished(tmp_path: Path) -> None:
    asyncio.run(Cancelling().evaluate(tmp_path / "run"))
    assert len(rewoo_bench.load(tmp_path / "run")) == 2
    assert read_manifest(tmp_path / "run").reason == "interrupted"


def test_bench_says_what_to_write_where_an_event_loop_runs(tmp_path: Path) -> None:
    async def cell() -> None:
        rewoo_bench.bench("direct", out=tmp_path / "run")

    with pytest.raises(UsageError, match=r"bench can't run where an event loop runs.*await rewoo_bench.evaluate"):
        asyncio.run(cell())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": -3.0}, "--temperature -3.0: it should be"),
        ({"model": 5}, "model: expected a name or an object"),
        ({"architectures": ["rewoo", 5]}, "architectures: expected"),
        ({"dataset": [EXAMPLES[0], EXAMPLES[0]]}, "dataset: 2 examples have the id 'q0'"),
        ({"max_stepz": 3}, "unknown option 'max_stepz', did you mean 'max_steps'"),
        ({"n": 5}, "unknown option 'n'"),
        ({"scoring": "gsm8k"}, "scoring: it is for examples; the data set '"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        in_a_notebook_cell(**{"architectures": "direct", **wrong})


@pytest.mark.anyio
async def test_evaluate_shows_progress_unless_told_not_to(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [Example("1", "Which river?", ("Neva",)), Example("2", "Which sea?", ("Baltic",))]
    model = ScriptedModel(["Answer: Neva"] * 4)
    await rewoo_bench.evaluate(asked, ["direct"], model=model)
    assert "2/2 answers" in capsys.readouterr().err
    await rewoo_bench.evaluate(asked, ["direct"], model=model, progress=False)
    assert capsys.readouterr().err == ""
