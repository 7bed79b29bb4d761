"""ATIF: documents as Harbor writes them, files of sub-agents, and broken ones."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq

from rewoo_bench.imports.atif import read_atif
from rewoo_bench.imports.formats import Found, read_files
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn
from rewoo_bench.imports.write import ImportChoices, import_run
from rewoo_bench.types import Usage


def tool_step(number: int, name: str, result: str | None, tokens: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    given, written, cached = tokens
    results = [] if result is None else [{"source_call_id": f"c{number}", "content": result}]
    return {
        "step_id": number, "source": "agent", "message": f"I call {name}.",
        "tool_calls": [{"tool_call_id": f"c{number}", "function_name": name, "arguments": {"x": number}}],
        "observation": {"results": results},
        "metrics": {
            "prompt_tokens": given, "completion_tokens": written, "cached_tokens": cached, "cost_usd": 0.25,
            "extra": {"reasoning_tokens": 2, "cache_creation_input_tokens": 3},
        },
        **more,
    }  # fmt: skip


def document(**more: Any) -> dict[str, Any]:
    steps = [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": "2 + 2?"},
        tool_step(3, "add", "4", (100, 10, 40)),
        {"step_id": 4, "source": "user", "message": "Go on."},
        {"step_id": 5, "source": "agent", "message": "It is 4.", "model_name": "big",
         "metrics": {"prompt_tokens": 150, "completion_tokens": 5}, "reasoning_content": "Easy."},
    ]  # fmt: skip
    about = {
        "name": "adder",
        "version": "1",
        "model_name": "small",
        "tool_definitions": [{"function": {"name": "add"}}],
    }
    return {"schema_version": "ATIF-v1.7", "session_id": "s1", "agent": about, "steps": steps, **more}


def read(folder: Path, *documents: Any) -> list[Found]:
    for number, each in enumerate(documents):
        (folder / f"{number}.json").write_text(json.dumps(each))
    return [*read_files([folder])]


def only(found: list[Found]) -> RecordedTrajectory:
    (one,) = found
    assert one.trajectory is not None, one.fault
    assert one.format == "atif"
    return one.trajectory


def test_steps_are_calls_and_prompts_are_rebuilt(tmp_path: Path) -> None:
    found = only(read(tmp_path, document()))
    assert (found.task, found.agent, found.question, found.system) == ("s1", "adder", "2 + 2?", "Be brief.")
    first, use, turn, last = found.events
    assert isinstance(first, ModelCall)
    assert isinstance(use, ToolUse)
    assert isinstance(last, ModelCall)
    assert turn == Turn("Go on.")
    assert first.usage is not None
    assert (first.model, last.model, last.thoughts) == ("small", "big", "Easy.")
    assert (first.usage.input_tokens, first.usage.cached_input_tokens, first.usage.output_tokens) == (100, 40, 10)
    assert (first.usage.reasoning_tokens, first.usage.cache_write_tokens) == (2, 3)
    assert (use.name, use.arguments, use.result, use.failed) == ("add", {"x": 3}, "4", False)
    assert last.messages is not None
    assert [each.role for each in last.messages] == ["system", "user", "assistant", "tool", "user"]
    assert (found.answer, found.solved, found.cost_usd) == ("It is 4.", None, None)
    assert first.times is None  # a timestamp alone is no duration


def test_what_wasnt_recorded_isnt_measured(tmp_path: Path) -> None:
    whole = document()
    for step in whole["steps"]:
        step.pop("metrics", None)
        step["timestamp"] = "2026-11-26T09:00:00Z"
    whole["steps"][2]["observation"] = None
    (tmp_path / "a.json").write_text(json.dumps(whole))
    done = anyio.run(partial(import_run, [tmp_path / "a.json"], tmp_path / "run", ImportChoices()))
    assert set(done.lacks) == {"usage", "times", "solved", "results"}
    (row,) = pq.read_table(tmp_path / "run/questions.parquet").to_pylist()
    assert (row["usage_source"], row["latency_s"], row["cost_usd"]) == ("estimated", None, None)


def sub_agent(**more: Any) -> dict[str, Any]:
    steps = [{"step_id": 1, "source": "user", "message": "Look it up."}, tool_step(2, "search", "found", (30, 3, 0))]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "helper", "version": "1"}, "steps": steps, **more}


def with_reference(**reference: Any) -> dict[str, Any]:
    whole = document()
    whole["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = [reference]
    return whole


LEDGER = [("", 100), ("helper", 30), ("", 150)]


def calls(found: RecordedTrajectory) -> list[tuple[str, int]]:
    return [(call.agent, call.usage.input_tokens if call.usage else -1) for call in found.calls]


def test_embedded_sub_agents_count_for_the_trajectory(tmp_path: Path) -> None:
    whole = with_reference(trajectory_id="t1") | {"subagent_trajectories": [sub_agent(trajectory_id="t1")]}
    found = only(read(tmp_path, whole))
    assert calls(found) == LEDGER
    assert [event.agent for event in found.events if isinstance(event, ToolUse)] == ["", "helper"]
    assert found.answer == "It is 4."


def test_an_embedded_sub_agent_without_a_reference_counts_too(tmp_path: Path) -> None:
    found = only(read(tmp_path, document(subagent_trajectories=[sub_agent(trajectory_id="t1")])))
    assert sorted(calls(found)) == sorted(LEDGER)


def test_sub_agents_and_continuations_in_files_beside_it_are_no_trajectories_of_their_own(tmp_path: Path) -> None:
    first = with_reference(trajectory_path="/elsewhere/1.json", session_id="s2") | {
        "continued_trajectory_ref": "2.json"
    }
    copied = {"step_id": 1, "source": "user", "message": "2 + 2?", "is_copied_context": True}
    more = {**document(), "steps": [copied, tool_step(2, "add", "9", (70, 7, 0))]}
    found = only(read(tmp_path, first, sub_agent(session_id="s2"), more))
    assert calls(found) == [*LEDGER, ("", 70)]


def saved(file: Path, document_: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document_))
    return file


def test_sub_agents_in_folders_below_are_found_by_their_paths(tmp_path: Path) -> None:
    main = tmp_path / "at/trajectory.json"
    saved(main, with_reference(trajectory_path="sub/trajectory.json"))
    saved(tmp_path / "at/sub/trajectory.json", sub_agent() | {"continued_trajectory_ref": "more/trajectory.json"})
    more = sub_agent() | {"steps": [tool_step(1, "search", "found", (40, 4, 0))]}
    saved(tmp_path / "at/sub/more/trajectory.json", more)
    ledger = [*LEDGER[:2], ("helper", 40), LEDGER[2]]
    for given in (main, tmp_path / "at", tmp_path):
        assert calls(only([*read_files([given])])) == ledger


def test_a_reference_leads_to_no_file_above(tmp_path: Path) -> None:
    saved(tmp_path / "sub.json", sub_agent())
    for name in ("../sub.json", str(tmp_path / "sub.json")):
        main = saved(tmp_path / "at/trajectory.json", with_reference(trajectory_path=name))
        assert calls(only([*read_files([main])])) == [LEDGER[0], LEDGER[2]]


def test_files_that_refer_to_each_other_are_each_read_once(tmp_path: Path) -> None:
    def referring(*names: str) -> dict[str, Any]:
        whole = with_reference()
        whole["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = [
            {"trajectory_path": n} for n in names
        ]
        return whole

    ring = [referring("a/1.json"), *(referring(*(f"{n}/{other}.json" for n in range(3))) for other in (2, 3, 1))]
    (found,) = read(tmp_path, *ring)
    assert found.trajectory is not None
    assert len(calls(found.trajectory)) == 4 * 2


def test_task_and_reward_of_harbors_folder(tmp_path: Path) -> None:
    (tmp_path / "trial/agent").mkdir(parents=True)
    (tmp_path / "trial/agent/trajectory.json").write_text(json.dumps(document()))
    result = {"task_name": "hello-world", "verifier_result": {"rewards": {"reward": 1.0}}}
    (tmp_path / "trial/result.json").write_text(json.dumps(result))
    found = only([*read_files([tmp_path / "trial/agent"])])
    assert (found.task, found.solved) == ("hello-world", True)


def test_a_step_without_a_model_call_is_its_tools_alone(tmp_path: Path) -> None:
    whole = document()
    whole["steps"][2] = {**tool_step(3, "add", "4", (0, 0, 0)), "llm_call_count": 0}
    whole["steps"][4]["llm_call_count"] = 3
    found = only(read(tmp_path, whole))
    assert [type(event) for event in found.events] == [ToolUse, Turn, ModelCall]
    assert found.notes == {"merged_calls": 3}


def test_totals_alone_are_the_tokens_of_the_trajectory() -> None:
    """Some of Harbor's agents write `final_metrics` and no metrics of steps."""
    said = [{"source": "user", "message": "How deep is it?"}, {"source": "agent", "message": "230 metres"}]
    metrics = {"total_prompt_tokens": 1000, "total_completion_tokens": 50, "total_cached_tokens": 400}
    record = {"schema_version": "ATIF-v1.6", "agent": {"name": "a"}, "steps": said, "final_metrics": metrics}
    (found,) = read_atif(record, "t")
    assert found.usage == Usage(input_tokens=1000, cached_input_tokens=400, output_tokens=50)
    assert found.is_cached_known


def test_a_call_whose_tokens_are_not_known_bounds_no_later_one(tmp_path: Path) -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": "2 + 2? " * 100},
        tool_step(2, "add", "4", (500, 10, 0)),
        tool_step(3, "add", "5", (0, 10, 0)),
        tool_step(4, "add", "6", (700, 10, 0)),
    ]
    (tmp_path / "a.json").write_text(json.dumps(document(steps=steps)))
    anyio.run(import_run, [tmp_path / "a.json"], tmp_path / "run")
    calls = pq.read_table(tmp_path / "run" / "calls.parquet").to_pylist()
    (last,) = (call for call in calls if call["kind"] == "model" and call["input_tokens"] == 700)
    assert last["shared_marked_tokens"] >= last["shared_question_tokens"] >= 500
