"""The bundled samples of arithmetic and of yes or no hold what their cards say, and the oracle answers all of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench.config.names import bundled_folder, bundled_names
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.tools import DocumentPages
from rewoo_bench.tools.calculator import calculate
from rewoo_bench.tools.corpus import read_passages
from rewoo_bench.types import Example, Hop

NAMES = ["sample-arithmetic", "sample-yes-no"]
FOLDERS = {name: bundled_folder("datasets") / name for name in NAMES}
EXAMPLES = {name: load_dataset_examples(name).examples for name in NAMES}
CARDS = {name: (folder / "README.md").read_text(encoding="utf-8") for name, folder in FOLDERS.items()}
SUMS, YES_NO = EXAMPLES["sample-arithmetic"], EXAMPLES["sample-yes-no"]
PASSAGES = list(read_passages(FOLDERS["sample-yes-no"] / "passages.jsonl"))
TEXTS = {passage.title: passage.text for passage in PASSAGES}
ARCHITECTURES = bundled_names("architectures")


def kinds(examples: Sequence[Example]) -> dict[str, list[Example]]:
    return {kind: [each for each in examples if each.kind == kind] for kind in {each.kind: 0 for each in examples}}


def hops(examples: Sequence[Example] = YES_NO) -> Iterator[tuple[Example, Hop]]:
    return ((example, hop) for example in examples for hop in example.chain)


@pytest.mark.parametrize("name", NAMES)
def test_there_are_20_questions_with_ids_in_their_order(name: str) -> None:
    prefix = name.removeprefix("sample-")
    assert [example.id for example in EXAMPLES[name]] == [f"{prefix}-{number:03}" for number in range(1, 21)]
    assert len({example.question.casefold() for example in EXAMPLES[name]}) == 20


@pytest.mark.parametrize("name", NAMES)
def test_the_card_tells_the_questions_of_a_type(name: str) -> None:
    for kind, examples in kinds(EXAMPLES[name]).items():
        first, last = (examples[at].id[-3:] for at in (0, -1))
        assert f"| {kind} | {first}-{last} | {len(examples)} |" in CARDS[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_row_that_the_card_shows_is_in_the_file(name: str) -> None:
    shown = CARDS[name].split("```json\n")[1].split("```")[0]
    rows = (FOLDERS[name] / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(shown) in [json.loads(row) for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_no_example_of_a_prompt_is_a_question_of_the_samples(name: str) -> None:
    files = bundled_folder("architectures").glob("direct/exemplars/*.txt")
    shown = {line.removeprefix("Question: ") for file in files for line in file.read_text("utf-8").splitlines()}
    assert not shown & {example.question for example in EXAMPLES[name]}


def test_a_sum_ends_at_its_answer_and_uses_every_result() -> None:
    for example in SUMS:
        assert {hop.tool for hop in example.chain} == {"Calculator"}
        assert example.answers == (example.chain[-1].value,)
        used = {need for hop in example.chain for need in hop.needs}
        assert used == set(range(len(example.chain) - 1)), example.id


def test_the_card_tells_how_many_calculations_the_sums_take() -> None:
    lengths = Counter(len(example.chain) for example in SUMS)
    assert lengths == {2: 5, 3: 9, 4: 4, 5: 2}
    card = " ".join(CARDS["sample-arithmetic"].split())
    assert "5 questions take 2 calculations, 9 take 3, 4 take 4, and 2 take 5." in card


def test_a_sum_starts_from_numbers_of_its_question() -> None:
    """Other numbers of an expression are words of the question, such as "twice" and "a quarter", or 1,000 kilograms."""
    for example, hop in hops(SUMS):
        given = {calculate(number) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", example.question)}
        used = {calculate(number) for number in re.findall(r"(?<!\{)\b\d+(?:\.\d+)?\b", hop.title)}
        assert used - given <= {1, 2, 3, 4, 1000}, (example.id, used - given)


def test_the_answers_are_half_yes_and_half_no_and_the_card_tells_them() -> None:
    assert Counter(example.answers for example in YES_NO) == {("yes",): 10, ("no",): 10}
    for kind, examples in kinds(YES_NO).items():
        said = Counter(example.answers[0] for example in examples)
        (row,) = [line for line in CARDS["sample-yes-no"].splitlines() if line.startswith(f"| {kind} ")]
        assert f"{said['yes']} yes, {said['no']} no" in row


def test_a_yes_no_question_takes_two_or_more_pages() -> None:
    assert {len({hop.title for hop in each.chain}) - len(each.chain) for each in YES_NO} == {0}
    assert {kind: sorted({len(each.chain) for each in examples}) for kind, examples in kinds(YES_NO).items()} == {
        "comparison": [2],
        "bridge": [2, 3],
        "chain": [4],
    }


def test_every_value_is_on_its_page_alone_of_the_chain() -> None:
    for example, hop in hops():
        assert hop.ask
        with_value = [other.title for other in example.chain if hop.value.casefold() in TEXTS[other.title].casefold()]
        assert with_value in ([hop.title], [hop.title, hop.value], [hop.value, hop.title]), (example.id, with_value)


def test_a_page_is_named_in_the_question_or_by_the_value_that_it_needs() -> None:
    for example, hop in hops():
        named = hop.title.casefold() in example.question.casefold()
        assert named is (not hop.needs), (example.id, hop.title)
        assert [example.chain[need].value for need in hop.needs] in ([], [hop.title])


def test_a_search_for_its_title_finds_a_gold_page_first() -> None:
    pages = DocumentPages(PASSAGES)
    for _, hop in hops():
        found = pages.find(hop.title)
        assert found is not None
        assert found.title == hop.title


def test_passages_are_short_and_the_card_counts_them() -> None:
    assert len({passage.title.casefold() for passage in PASSAGES}) == len(PASSAGES)
    assert [title for title, text in TEXTS.items() if not 20 <= len(text.split()) <= 45] == []
    gold = {hop.title for _, hop in hops()}
    counted = f"| `passages.jsonl` | {len(PASSAGES)} | the corpus: {len(gold)} gold passages, "
    assert f"{counted}{len(PASSAGES) - len(gold)} distractors |" in CARDS["sample-yes-no"]


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_the_oracle_answers_every_question_in_every_architecture(name: str) -> None:
    rows = (await rewoo_bench.evaluate(name, ARCHITECTURES, model="oracle")).to_frame()
    assert rows.groupby("architecture")["exact_match"].agg(["count", "mean"]).to_dict() == {
        "count": dict.fromkeys(ARCHITECTURES, 20),
        "mean": dict.fromkeys(ARCHITECTURES, 1.0),
    }
    assert set(rows["stop_reason"]) == {"answered"}


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("architecture", ["react", "react-native", "plan-execute", "rewoo", "rewoo-json"])
async def test_every_hop_of_a_chain_is_one_call(name: str, architecture: str) -> None:
    results: Any = await rewoo_bench.evaluate(name, [architecture], model="oracle")
    for result in results:
        made = Counter(step.tool for step in result.trajectory.steps)
        wanted = Counter(hop.tool for hop in result.task.example.chain)
        assert {tool: made[tool] for tool in wanted} == wanted, result.task.example.id
        assert not any(step.failed for step in result.trajectory.steps)
