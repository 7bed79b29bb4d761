"""The tasks of a run as questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import imported, said

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import load_dataset_examples

pytestmark = pytest.mark.anyio


async def test_a_task_is_what_the_recorded_agent_was_told_and_keeps_its_id(tmp_path: Path) -> None:
    dataset = load_dataset_examples(str(await imported(tmp_path)))
    asked = {example.id: example.question for example in dataset.examples}
    assert asked == {"t1": "Be polite.\n\nHow many seats are left to Oslo?\n\nYes, one.", "t2": "Is it late?"}
    assert dataset.name == "airline"
    assert dataset.scoring == "recorded"
    assert not any(example.answers for example in dataset.examples)


async def test_instructions_can_be_left_out(tmp_path: Path) -> None:
    folder = await imported(tmp_path)
    dataset = load_dataset_examples(f"{folder}?system=no")
    assert dataset.examples[0].question == "How many seats are left to Oslo?\n\nYes, one."
    whole = load_dataset_examples(str(folder))
    assert dataset.manifest["source"]["tasks_sha256"] != whole.manifest["source"]["tasks_sha256"]
    for options in ("system=maybe", "systen=no", "objectives=2"):
        with pytest.raises(DataError, match=r"leaves? (objectives )?out"):
            load_dataset_examples(f"{folder}?{options}")


async def test_a_limit_takes_a_sample_as_of_every_data_set(tmp_path: Path) -> None:
    records = [{"id": f"q{number}", "messages": said(f"Question {number}?")} for number in range(9)]
    folder = str(await imported(tmp_path, records))
    all_, some = load_dataset_examples(folder), load_dataset_examples(folder, limit=4, seed=5)
    assert (len(all_.examples), all_.manifest["seed"]) == (9, None)
    assert (len(some.examples), some.manifest["limit"]) == (4, 4)
    assert some.examples == load_dataset_examples(folder, limit=7, seed=5).examples[:4]


async def test_tasks_of_an_own_run_have_its_answers_its_scorer_and_its_types(tmp_path: Path) -> None:
    model = ScriptedModel(lambda messages, role: "Answer: Oslo")
    await rewoo_bench.evaluate("sample", "direct", model=model, questions=3, out=tmp_path / "own")
    own, sample = load_dataset_examples(str(tmp_path / "own")), load_dataset_examples("sample", limit=3)
    facts = [(each.id, each.question, each.answers, each.kind) for each in sample.examples]
    assert sorted((each.id, each.question, each.answers, each.kind) for each in own.examples) == sorted(facts)
    assert (own.name, own.scoring, own.style) == (sample.name, sample.scoring, sample.style)


async def test_a_run_can_name_no_code(tmp_path: Path) -> None:
    model = ScriptedModel(lambda messages, role: "Answer: Oslo")
    await rewoo_bench.evaluate("sample", "direct", model=model, questions=1, out=tmp_path / "own")
    change(tmp_path / "own", scoring="os:system")
    with pytest.raises(DataError, match="which a run can't name"):
        load_dataset_examples(str(tmp_path / "own"))


async def test_damaged_and_published_runs_are_refused_in_a_line(tmp_path: Path) -> None:
    folder = await imported(tmp_path)
    traces = folder / "traces.jsonl"
    whole = traces.read_text()
    for text, fault in (
        ("{\n", "not the traces of questions"),
        ("", "no texts of its questions"),
    ):
        traces.write_text(text)
        with pytest.raises(DataError, match=fault):
            load_dataset_examples(str(folder))
    traces.write_text("".join(json.dumps({**json.loads(line), "question": None}) + "\n" for line in whole.splitlines()))
    with pytest.raises(DataError, match="published without them"):
        load_dataset_examples(str(folder))
    traces.unlink()
    with pytest.raises(DataError, match=r"it has no traces\.jsonl"):
        load_dataset_examples(str(folder))


def change(folder: Path, **facts: Any) -> None:
    """Writes facts of the data set into the manifest."""
    path = folder / "run.json"
    manifest = json.loads(path.read_text())
    manifest["dataset"] |= facts
    path.write_text(json.dumps(manifest))
