"""The oracle: the way to each answer in every architecture's form, and the same tokens every time."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.config.names import bundled_names
from rewoo_bench.errors import DataError, ModelError, UsageError
from rewoo_bench.evaluation.folder import Result, Results
from rewoo_bench.loaders.load import load_dataset_examples, with_chain, with_chains
from rewoo_bench.models.oracle.model import Oracle, open_oracle
from rewoo_bench.runs.manifest import DatasetFacts, read_manifest
from rewoo_bench.tools import DocumentPages
from rewoo_bench.types import Document, Example, Hop, Message, Request

pytestmark = pytest.mark.anyio

ALL = bundled_names("architectures")
SEARCHING = [name for name in ALL if name not in ("direct", "cot")]
PAGES = (
    Document("Kyiv", "Kyiv is a city on the Dnieper."),
    Document("Dnieper", "The Dnieper flows into the Black Sea."),
    Document("Lviv", "Lviv lies far from any sea."),
)
CHAIN = (Hop("Kyiv", "Dnieper", "the river"), Hop("Dnieper", "Black Sea", "the sea", needs=(0,)))
BRIDGE = Example("q1", "Which sea does Kyiv's river flow into?", ("Black Sea",), PAGES, chain=CHAIN)
SIDE_BY_SIDE = replace(BRIDGE, id="q2", chain=(Hop("Kyiv", ""), Hop("Lviv", "")), answers=("Kyiv",))
UNFORESEEN = replace(BRIDGE, id="q3", chain=(CHAIN[0], replace(CHAIN[1], foreseen=False)))


async def put(example: Example, *architectures: str, model: str = "oracle", **more: Any) -> Results:
    return await rewoo_bench.evaluate([example], architectures, model=model, **more)


async def only(example: Example, architecture: str, model: str = "oracle") -> Result:
    (result,) = await put(example, architecture, model=model)
    return result


def calls(result: Result, role: str) -> int:
    return sum(call.kind == "model" and call.role == role for call in result.calls)


def searched(result: Result) -> list[str]:
    return [step.argument for step in result.trajectory.steps if step.tool == "Search"]


@pytest.mark.parametrize("example", [BRIDGE, SIDE_BY_SIDE], ids=["bridge", "comparison"])
@pytest.mark.parametrize("architecture", ALL)
async def test_every_architecture_reaches_the_answer_in_its_own_form(architecture: str, example: Example) -> None:
    result = await only(example, architecture)
    assert (result.trajectory.answer, result.trajectory.stop_reason) == (example.answers[0], "answered")
    assert not any(step.failed for step in result.trajectory.steps)
    if architecture in SEARCHING:
        assert searched(result) == [hop.title for hop in example.chain]


async def test_a_page_whose_title_isnt_known_yet_is_named_by_what_a_step_reads() -> None:
    plan = (await only(BRIDGE, "rewoo")).trajectory.plan
    assert plan is not None
    assert [(step["tool"], step["args"]) for step in plan] == [
        ("Search", "Kyiv"), ("LLM", "The river? Context: {{E1}}"), ("Search", "{{E2}}"),
    ]  # fmt: skip


async def test_what_cant_be_foreseen_defeats_a_plan_and_no_agent_that_adapts() -> None:
    adapting = ["react", "react-code", "react-json", "react-native", "rewoo-code", "rewoo-react", "plan-execute"]
    adapting.append("llmcompiler?max_replans=1")
    results = await put(UNFORESEEN, "rewoo", "rewoo-json", "rewoo-lazy", *adapting)
    answers = {result.task.architecture.name: result.trajectory.answer for result in results}
    assert {answers.pop(name) for name in ("rewoo", "rewoo-json", "rewoo-lazy")} == {"unknown"}
    assert set(answers.values()) == {"Black Sea"}


async def test_a_second_plan_has_what_the_first_could_not_foresee() -> None:
    (result,) = await put(UNFORESEEN, "llmcompiler?max_replans=1")
    assert (result.trajectory.answer, searched(result), result.trajectory.replans) == (
        "Black Sea", ["Kyiv", "Dnieper"], 1
    )  # fmt: skip
    assert [draft["text"] for draft in result.trajectory.notes["drafts"]] == [
        '1. Search("Kyiv")\n2. join()', '2. Search("Dnieper")\n3. join()'
    ]  # fmt: skip
    (bounded,) = await put(UNFORESEEN, "llmcompiler")
    assert bounded.trajectory.answer == "unknown"


async def test_a_wrong_title_costs_react_a_turn_and_rewoo_the_answer() -> None:
    model = "oracle?wrong_title=1"
    react, rewoo = await only(BRIDGE, "react", model), await only(BRIDGE, "rewoo", model)
    assert searched(react) == ["Lviv", "Kyiv", "Dnieper"]  # the same wrong title twice is asked for once
    assert (react.trajectory.answer, rewoo.trajectory.answer) == ("Black Sea", "unknown")


async def test_reasoning_is_in_the_usage_of_every_reply_but_that_of_a_tool() -> None:
    for architecture in ("rewoo", "react-native"):
        plain, reasoned = await only(BRIDGE, architecture), await only(BRIDGE, architecture, "oracle?reasoning=200")
        for before, after in zip(plain.calls, reasoned.calls, strict=True):
            added = 200 if before.kind == "model" and before.role != "tool" else 0
            assert after.usage == replace(
                before.usage, output_tokens=before.usage.output_tokens + added, reasoning_tokens=added
            )


async def test_extra_steps_and_verbosity_cost_what_they_say() -> None:
    plain = await only(BRIDGE, "react")
    more = await only(BRIDGE, "react", "oracle?extra_steps=2")
    wordy = await only(BRIDGE, "react", "oracle?verbosity=2")
    assert len(searched(more)) == len(searched(plain)) + 2
    for step, longer in zip(plain.trajectory.steps, wordy.trajectory.steps, strict=True):
        assert len(longer.thought.split()) == 2 * len(step.thought.split())


async def test_a_prefix_cache_would_have_what_is_the_same_for_every_question_and_what_was_sent() -> None:
    first, second, *_ = (call.usage for call in (await only(BRIDGE, "react")).calls if call.kind == "model")
    assert 0 < first.cached_input_tokens < first.input_tokens
    assert second.cached_input_tokens == first.input_tokens


async def test_a_form_that_it_doesnt_know_is_named() -> None:
    with pytest.raises(ModelError, match="can't answer this call of 'critic'"):
        await Oracle().with_gold(BRIDGE).complete(Request([Message("user", "?")], role="critic"))
    for schema in ({"type": "object"}, {"title": "Verdict"}, {"title": ["Plan"]}):
        with pytest.raises(ModelError, match="can't answer this call of 'critic'"):
            await Oracle().with_gold(BRIDGE).complete(Request([Message("user", "?")], role="critic", schema=schema))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("oracle?extra_stps=1", "unknown key 'extra_stps', did you mean 'extra_steps'?"),
        ("oracle?wrong_title=2", "less than or equal to 1"),
        ("oracle?extra_steps", "'extra_steps' isn't a list of options"),
        ("oracle?extra_steps=many", "extra_steps: Input should be a valid integer"),
        ("oracle?extra_steps=1&&", "isn't a list of options, expected name?key=value"),
    ],
)
def test_a_wrong_setting_is_one_line(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as error:
        open_oracle(name)
    assert "\n" not in str(error.value)


def test_a_trivia_question_has_one_look_up_the_page_that_shows_its_answer() -> None:
    question = Example("t1", "Which sea does the Dnieper flow into?", ("Euxine", "Black Sea"))
    pages = DocumentPages((*PAGES, Document("Black Sea", "The Black Sea is a sea.")))
    found = with_chain(question, pages)
    assert found is not None
    assert found.chain == (Hop("Dnieper", "Black Sea", "what the question asks for"),)
    assert with_chain(replace(question, answers=("Baltic",)), pages) is None


def test_questions_without_a_way_are_left_out_and_counted() -> None:
    dataset = load_dataset_examples("sample", limit=2)
    lost = replace(dataset.examples[1], chain=(), answers=("Atlantis",), documents=PAGES)
    kept = with_chains(replace(dataset, examples=[dataset.examples[0], lost]), None)
    assert ([example.id for example in kept.examples], kept.manifest["without_chain"]) == ([dataset.examples[0].id], 1)
    with pytest.raises(DataError, match="no question has a gold chain"):
        with_chains(replace(dataset, examples=[lost]), None)


def trivia_file(tmp_path: Path, questions: int) -> str:
    """TriviaQA rows; the page of every second question shows its answer."""
    rows = [
        {
            "question_id": f"t{number}",
            "question": f"Which town is number {number}?",
            "answer": {"value": f"Town{number}", "aliases": []},
            "entity_pages": {"title": ["List"], "wiki_context": [f"Number {number}: {f'Town{number}' * (number % 2)}"]},
            "search_results": {"title": [], "search_context": []},
        }
        for number in range(questions)
    ]
    path = tmp_path / "trivia.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def run_oracle(arch: str, dataset: str, out: Path, limit: int) -> tuple[list[str], DatasetFacts]:
    """Ids of the rows, and the data set's facts, of a run by the command."""
    command = ["run", "--arch", arch, "--model", "oracle", "--dataset", dataset, "-n", str(limit)]
    with pytest.raises(SystemExit) as done:
        main([*command, "--out", str(out)])
    assert done.value.code == 0
    return list(rewoo_bench.load(out)["example_id"]), read_manifest(out).dataset


def test_an_oracle_takes_the_number_of_questions_asked_for_among_those_with_a_way(tmp_path: Path) -> None:
    dataset = trivia_file(tmp_path, 40)
    ids, facts = run_oracle("react", dataset, tmp_path / "a", 12)
    more, _ = run_oracle("react", dataset, tmp_path / "b", 16)
    assert (len(ids), facts.examples, facts.limit) == (12, 12, 12)
    assert facts.model_dump()["without_chain"] > 0
    assert more[:12] == ids


@pytest.mark.parametrize(
    ("architecture", "steps", "turns"),
    [("react", 3, 3), ("react-json", 3, 3), ("react-native", 2, 2), ("react-code", 2, 2), ("direct", 0, 1)],
)
async def test_the_column_steps_counts_turns_of_react_and_tool_calls_where_a_turn_has_several(
    architecture: str, steps: int, turns: int
) -> None:
    """Two pages are looked up, which `react-native` and `react-code` do in their first turn."""
    row = (await put(SIDE_BY_SIDE, architecture)).to_frame().iloc[0]
    assert (row["steps"], row["llm_calls"]) == (steps, turns)


@pytest.mark.parametrize("mode", ["error", "timeout"])
async def test_where_tools_fail_its_programs_call_once_more_as_its_turns_do(mode: str) -> None:
    examples = [replace(BRIDGE, id=f"q{n}") for n in range(40)]
    names = ("rewoo-code", "react", "react-code", "rewoo")
    failing: dict[str, Any] = {"model": "oracle", "tool_failure_rate": 0.3, "tool_failure_mode": mode}
    results = await rewoo_bench.evaluate(examples, names, **failing)
    right = Counter(r.task.architecture.name for r in results if r.trajectory.answer == "Black Sea")
    assert min(right["rewoo-code"], right["react"], right["react-code"]) > right["rewoo"] > 0
    again = next(r for r in results if r.task.architecture.name == "rewoo-code" and r.trajectory.steps[0].failed)
    assert searched(again)[:2] == ["Kyiv", "Kyiv"]
