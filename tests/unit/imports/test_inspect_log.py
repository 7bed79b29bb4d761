"""Logs that inspect_ai itself writes, of its own agents on a scripted model: rows equal a ledger of the model."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.publish import publish_logs
from rewoo_bench.imports.write import ImportChoices, import_run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # at the import of what inspect_ai needs
    pytest.importorskip("inspect_ai", reason="needs inspect_ai (pip install 'rewoo-bench[inspect]')")
    from inspect_ai import Task, eval
    from inspect_ai.agent import as_tool, react
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
    from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, Target, accuracy, includes, scorer
    from inspect_ai.solver import Generate, TaskState, generate, solver
    from inspect_ai.tool import tool
pytestmark = pytest.mark.filterwarnings("ignore")

MODEL = "mockllm/model"


@tool  # type: ignore[untyped-decorator]
def add() -> Any:
    async def execute(x: int, y: int) -> str:
        """Add two numbers.

        Args:
            x: The first.
            y: The second.
        """
        if x < 0:
            raise ValueError("negative")
        return str(x + y)

    return execute


def called(name: str, arguments: dict[str, Any], *tokens: int) -> Any:
    output = ModelOutput.for_tool_call(MODEL, name, arguments)
    return with_usage(output, *tokens)


def with_usage(output: Any, given: int, written: int, read: int = 0, stored: int = 0, thought: int = 0) -> Any:
    output.usage = ModelUsage(
        input_tokens=given, output_tokens=written, total_tokens=given + written + read + stored,
        input_tokens_cache_read=read, input_tokens_cache_write=stored, reasoning_tokens=thought, total_cost=0.5,
    )  # fmt: skip
    return output


SCRIPT: list[tuple[str, str, dict[str, Any], tuple[int, ...]]] = [
    ("", "helper", {"input": "what is 1 + 1?"}, (100, 10, 20, 5, 3)),
    ("helper", "add", {"x": 1, "y": 1}, (50, 7)),
    ("helper", "submit", {"answer": "2"}, (60, 8, 30)),
    ("", "submit", {"answer": "2"}, (120, 9, 0, 64, 2)),
]
"""The ledger: sub-agent, tool, its arguments, and tokens (input beside the cache, output, read, written, reasoning)."""


def outputs() -> Iterator[Any]:
    while True:
        for _, name, arguments, tokens in SCRIPT:
            yield called(name, arguments, *tokens)


def ask(folder: Path, task: Any, outs: Iterator[Any], **options: Any) -> Any:
    """A real run of inspect_ai."""
    model = get_model(MODEL, custom_outputs=outs)
    (log,) = eval(task, model=model, log_dir=str(folder / "logs"), display="none", max_samples=1, **options)
    return log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Any:
    helper = react(name="helper", description="adds", prompt="You add.", tools=[add()])
    main = react(name="main", prompt="Solve it.", tools=[as_tool(helper)])
    samples = [Sample(id="q1", input="1 + 1?", target="2"), Sample(id="q2", input="1 + 2?", target=["3", "three"])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(
            tmp_path_factory.mktemp("inspect"), Task(samples, solver=main, scorer=includes(), epochs=2), outputs()
        )


def imported(files: list[Path], out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Any]:
    done = anyio.run(partial(import_run, files, out, ImportChoices()))
    return *(pq.read_table(out / f"{name}.parquet").to_pylist() for name in ("questions", "calls")), done


def test_rows_equal_the_ledger(log: Any, tmp_path: Path) -> None:
    questions, calls, done = imported([Path(log.location)], tmp_path / "run")
    assert (done.rows, done.unreadable, dict(done.formats)) == (4, 0, {"inspect": 4})
    assert {(row["example_id"], row["trial"]) for row in questions} == {(q, t) for q in ("q1", "q2") for t in (0, 1)}
    total = [sum(column) for column in zip(*((*tokens, 0, 0, 0)[:5] for *_, tokens in SCRIPT), strict=True)]
    for row in questions:
        assert row["architecture"] == "main"
        assert (row["llm_calls"], row["tool_calls"]) == (4, 4)
        assert row["input_tokens"] == total[0] + total[2] + total[3]
        assert [row[f"{name}_tokens"] for name in ("output", "cached_input", "cache_write", "reasoning")] == total[1:]
        assert row["cost_usd"] == 4 * 0.5
        assert row["usage_source"] == "provider"
        assert row["exact_match"] is (row["example_id"] == "q1")
        assert row["answers"] == (["2"] if row["example_id"] == "q1" else ["3", "three"])
        assert row["latency_s"] > 0
        mine = [c for c in calls if (c["example_id"], c["trial"]) == (row["example_id"], row["trial"])]
        models = [call for call in mine if call["kind"] == "model"]
        assert [call["input_tokens"] for call in models] == [125, 50, 90, 184]
        assert [call["place"] for call in models] == ["turn 1", "helper/turn 2", "helper/turn 3", "turn 4"]
        assert [call["name"] for call in mine if call["kind"] == "tool"] == [name for _, name, *_ in SCRIPT]
        assert all(call["latency_s"] is not None for call in mine)


def test_an_imported_run_is_published_with_its_costs_and_sub_agents(log: Any, tmp_path: Path) -> None:
    before, calls_before, _ = imported([Path(log.location)], tmp_path / "run")
    publish_logs(tmp_path / "run", tmp_path / "out", texts=True)
    after, calls_after, _ = imported([tmp_path / "out"], tmp_path / "again")
    told = ["example_id", "trial", "exact_match", "prediction", "stop_reason", "llm_calls", "tool_calls", "cost_usd"]
    told += [f"{name}_tokens" for name in ("input", "output", "cached_input", "cache_write", "reasoning")]
    assert [{name: row[name] for name in told} for row in ordered(before)] == [
        {name: row[name] for name in told} for row in ordered(after)
    ]
    told = ["kind", "name", "status", "input_tokens", "output_tokens"]
    assert [{name: row[name] for name in told} for row in ordered(calls_before)] == [
        {name: row[name] for name in told} for row in ordered(calls_after)
    ]


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["example_id"], row["trial"], row.get("call_index")))


def test_prompts_are_those_that_inspect_sent(log: Any) -> None:
    first = next(each.trajectory for each in read_files([Path(log.location)]) if each.trajectory)
    whole = read_eval_log(log.location, resolve_attachments=True)
    sent = [event.input for event in whole.samples[0].events if event.event == "model"]
    for call, messages in zip(first.calls, sent, strict=True):
        assert call.messages is not None
        assert [(each.role, each.content) for each in call.messages] == [(each.role, each.text) for each in messages]
        assert {tool_["name"] for tool_ in call.tools} >= {"submit"}
    assert [each.tool_calls[0].name for each in first.calls] == [name for _, name, *_ in SCRIPT]


def test_the_json_form_gives_the_same_trajectories(log: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    write_eval_log(log, str(path), format="json")
    assert [each.trajectory for each in read_files([path])] == [
        each.trajectory for each in read_files([Path(log.location)])
    ]


@solver  # type: ignore[untyped-decorator]
def fails() -> Any:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == "bad":
            raise RuntimeError("the tool broke\nin two lines")
        return await generate(state)

    return solve


def test_errors_and_limits_are_said(tmp_path: Path) -> None:
    samples = [Sample(id="bad", input="?", target="4"), Sample(id="long", input="2 + 2?", target="4")]
    task = Task(samples, solver=[fails(), generate()], scorer=includes())
    outs = (with_usage(ModelOutput.from_content(MODEL, "4"), 90, 20) for _ in iter(int, 1))
    log = ask(tmp_path, task, outs, token_limit=100, fail_on_error=False)
    questions, _, done = imported([Path(log.location)], tmp_path / "run")
    bad, long = sorted(questions, key=lambda row: str(row["example_id"]))
    assert done.unreadable == 0
    assert (bad["stop_reason"], bad["error"], bad["exact_match"]) == (
        "agent_failed",
        "RuntimeError('the tool broke\\nin two lines')",
        None,
    )
    assert (long["stop_reason"], long["error"]) == ("token_limit", "limit: token (100)")


@scorer(metrics=[accuracy()])  # type: ignore[untyped-decorator]
def asks_a_model() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        await get_model().generate("Is it right?", config=GenerateConfig())
        return Score(value="P", answer="four")

    return score


def test_calls_of_a_scorer_arent_the_agents(tmp_path: Path) -> None:
    outs = (with_usage(ModelOutput.from_content(MODEL, "4"), 90, 20) for _ in iter(int, 1))
    log = ask(
        tmp_path, Task([Sample(id=1, input="2 + 2?", target="4")], solver=generate(), scorer=asks_a_model()), outs
    )
    (found,) = read_files([Path(log.location)])
    assert found.trajectory is not None
    assert len(list(found.trajectory.calls)) == 1
    assert found.trajectory.notes["scorer_calls"] == 1
    assert (found.trajectory.task, found.trajectory.answer) == ("1", "four")
    assert (found.trajectory.solved, found.trajectory.f1) == (False, None)


def test_a_log_that_is_cut_off_is_a_line(log: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut.eval"
    path.write_bytes(Path(log.location).read_bytes()[:5000])
    with pytest.raises(DataError, match=r"^cut\.eval: inspect_ai can't read it: ") as refused:
        list(read_files([path]))
    assert "\n" not in str(refused.value)


def test_a_sample_that_unpacks_to_more_than_64_mb_is_a_line(log: Any, tmp_path: Path) -> None:
    whole: EvalLog = read_eval_log(log.location)
    large = whole.samples[0].model_copy(update={"id": "large", "metadata": {"text": "word " * 14_000_000}})
    whole.samples = [large, whole.samples[1]]
    whole.eval.dataset.sample_ids = [each.id for each in whole.samples]
    write_eval_log(whole, str(tmp_path / "log.eval"))
    assert (tmp_path / "log.eval").stat().st_size < 1_000_000
    with pytest.raises(DataError, match=r"^log\.eval: samples/large_epoch_1\.json in it has more than 64 MB$"):
        list(read_files([tmp_path / "log.eval"]))


def test_without_inspect_ai_it_says_what_to_install(log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(UsageError, match=r"need it: pip install 'rewoo-bench\[inspect\]'"):
        imported([Path(log.location)], tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()
