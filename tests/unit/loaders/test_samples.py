"""The bundled samples hold what their cards say, and each question can be answered from its gold pages."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import rewoo_bench
from rewoo_bench.config.names import bundled_folder, bundled_names
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.text.scoring import score
from rewoo_bench.tools import DocumentPages
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.tools.corpus import read_passages
from rewoo_bench.types import Document, Example, Hop

KINDS = {
    "sample": {"bridge": 45, "comparison": 25, "trivia": 20, "chain": 10},
    "sample-arithmetic": {"counting": 4, "money": 5, "percent": 5, "measures": 6},
    "sample-parallel": {"arithmetic": 15, "comparison": 5},
    "sample-yes-no": {"comparison": 11, "bridge": 6, "chain": 3},
}
WITH_PASSAGES = ["sample", "sample-parallel", "sample-yes-no"]
each_sample = pytest.mark.parametrize("name", KINDS)
each_corpus = pytest.mark.parametrize("name", WITH_PASSAGES)


@cache
def examples_of(name: str) -> tuple[Example, ...]:
    return tuple(load_dataset_examples(name).examples)


@cache
def passages_of(name: str) -> tuple[Document, ...]:
    return tuple(read_passages(bundled_folder("datasets") / name / "passages.jsonl"))


def hops_of(name: str) -> list[tuple[Example, Hop]]:
    """The hops that look a page up."""
    return [(example, hop) for example in examples_of(name) for hop in example.chain if hop.tool == "Search"]


def bare(title: str) -> str:
    """The title as a question would say it: `Don (river)` -> `don`."""
    return re.sub(r" \([^)]*\)$", "", title).casefold()


def says(text: str, words: str) -> bool:
    """Whether the words stand in the text, upper or lower case, and not inside of longer words."""
    return re.search(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", text.casefold()) is not None


@each_sample
def test_questions_are_numbered_and_of_the_kinds_that_the_card_counts(name: str) -> None:
    examples = examples_of(name)
    assert [int(example.id.rpartition("-")[2]) for example in examples] == [*range(1, len(examples) + 1)]
    assert len({example.question.casefold() for example in examples}) == len(examples)
    assert Counter(example.kind for example in examples) == KINDS[name]
    folder: Path = bundled_folder("datasets") / name
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert ", ".join(f"{count} {kind}" for kind, count in KINDS[name].items()) in card


@each_sample
def test_no_example_of_a_prompt_is_a_question_of_a_sample(name: str) -> None:
    files = bundled_folder("architectures").glob("direct/exemplars/*.txt")
    shown = {line.removeprefix("Question: ") for file in files for line in file.read_text("utf-8").splitlines()}
    assert not shown & {example.question for example in examples_of(name)}


@each_corpus
def test_every_gold_page_is_found_by_its_title_and_has_its_value(name: str) -> None:
    passages = passages_of(name)
    texts = {passage.title: passage.text for passage in passages}
    assert len({title.casefold() for title in texts}) == len(passages)
    pages = DocumentPages(passages)
    for example, hop in hops_of(name):
        assert says(texts[hop.title], hop.value), (example.id, hop)
        page = pages.find(hop.title)
        assert page is not None
        assert page.title == hop.title
    gold = {hop.title for _, hop in hops_of(name)}
    card = (bundled_folder("datasets") / name / "README.md").read_text(encoding="utf-8")
    assert f"{len(gold)} gold passages, {len(passages) - len(gold)} distractors" in card


@each_corpus
def test_a_page_is_named_in_the_question_or_by_the_value_of_the_hop_that_it_needs(name: str) -> None:
    for example, hop in hops_of(name):
        assert (bare(hop.title) in example.question.casefold()) is (not hop.needs), (example.id, hop.title)
        assert [example.chain[need].value.casefold() for need in hop.needs] == [bare(hop.title)] * len(hop.needs)


def test_no_question_of_the_sample_gives_its_answer_away_and_its_last_page_has_it() -> None:
    for example in examples_of("sample"):
        if example.kind != "comparison":
            assert example.answers[0] in example.chain[-1].value
            assert not any(says(example.question, answer) for answer in example.answers)


def test_a_comparison_of_the_sample_comes_out_as_its_pages_say() -> None:
    for example in examples_of("sample"):
        if example.kind == "comparison":
            one, other = example.chain
            answer, is_same = example.answers[0].casefold(), one.value == other.value
            assert answer == ("yes" if is_same else "no") or (
                answer in (bare(one.title), bare(other.title)) and not is_same
            )


@pytest.mark.parametrize("name", ["sample-arithmetic", "sample-parallel"])
def test_a_calculation_gives_the_answer_and_uses_every_result(name: str) -> None:
    for example in examples_of(name):
        values: list[str] = []
        for hop in example.chain:
            worked_out = show_number(calculate(hop.title.format(*(f"({each})" for each in values)))) if (
                hop.tool == "Calculator"
            ) else hop.value  # fmt: skip
            assert worked_out == hop.value
            values.append(worked_out)
        if example.kind != "comparison":
            used = {need for hop in example.chain for need in hop.needs}
            assert used == set(range(len(example.chain) - 1))
            digits = len(example.answers[0].partition(".")[2])
            assert f"{float(values[-1]):.{digits}f}" == example.answers[0]
            pages = [hop.value for hop in example.chain[:-1] if hop.tool == "Search"]
            assert not any(score(value, example.answers, "parallelqa").exact_match for value in pages)


def test_half_of_the_answers_are_yes() -> None:
    assert Counter(example.answers for example in examples_of("sample-yes-no")) == {("yes",): 10, ("no",): 10}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["sample-arithmetic", "sample-parallel", "sample-yes-no"])
async def test_the_oracle_answers_every_question_in_every_architecture_with_a_call_for_each_hop(name: str) -> None:
    names = bundled_names("architectures") if name != "sample-parallel" else ["rewoo", "react", "react-code"]
    results = await rewoo_bench.evaluate(name, names, model="oracle")
    assert len(results) == 20 * len(names)
    for result in results:
        assert result.score is not None
        assert (result.score.exact_match, result.trajectory.stop_reason) == (True, "answered")
        if result.task.architecture.name in ("rewoo", "react", "react-native", "plan-execute"):
            made = Counter(step.tool for step in result.trajectory.steps)
            wanted = Counter(hop.tool for hop in result.task.example.chain)
            assert {tool: made[tool] for tool in wanted} == wanted, result.task.example.id
