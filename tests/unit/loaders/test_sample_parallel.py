"""The bundled sample of parallel look-ups holds what its card says, and its passages answer each question."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rewoo_bench
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.text.scoring import score
from rewoo_bench.text.words import split_sentences
from rewoo_bench.tools import DocumentPages
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.tools.corpus import read_passages
from rewoo_bench.types import Example, Hop

SAMPLE = load_dataset_examples("sample-parallel")
EXAMPLES = SAMPLE.examples
CORPUS = SAMPLE.corpus or Path()
PASSAGES = list(read_passages(CORPUS))
TEXTS = {passage.title: passage.text for passage in PASSAGES}
CARD = (CORPUS.parent / "README.md").read_text(encoding="utf-8")


def look_ups(example: Example) -> list[Hop]:
    return [hop for hop in example.chain if hop.tool == "Search"]


def calculations(example: Example) -> list[Hop]:
    return [hop for hop in example.chain if hop.tool == "Calculator"]


def kind(name: str) -> list[Example]:
    return [example for example in EXAMPLES if example.kind == name]


GOLD = {hop.title for example in EXAMPLES for hop in look_ups(example)}


def worked_out(hop: Hop, values: list[str]) -> str:
    return show_number(calculate(re.sub(r"\{(\d+)\}", lambda place: f"({values[int(place[1])]})", hop.title)))


def shortcuts(example: Example) -> Iterator[str]:
    """What comes out if a number is left out, and the numbers of the pages themselves."""
    values = [hop.value for hop in example.chain]
    yield from (hop.value for hop in look_ups(example))
    for left_out in range(len(look_ups(example))):
        changed = ["0" if number == left_out else value for number, value in enumerate(values)]
        if "/" not in example.chain[-1].title:
            yield worked_out(example.chain[-1], changed)


def test_ids_count_from_1_and_no_question_comes_twice() -> None:
    assert [each.id for each in EXAMPLES] == [f"parallel-{number:02}" for number in range(1, 21)]
    assert len({each.question.casefold() for each in EXAMPLES}) == 20


def test_every_question_takes_two_to_four_look_ups_that_need_nothing() -> None:
    assert [each.id for each in EXAMPLES if not 2 <= len(look_ups(each)) <= 4] == []
    assert [each.id for each in EXAMPLES if any(hop.needs for hop in look_ups(each))] == []


def test_a_value_is_on_its_page_and_on_no_other_page_of_its_question() -> None:
    for each in EXAMPLES:
        for hop in look_ups(each):
            shown = [other.title for other in look_ups(each) if hop.value in TEXTS[other.title]]
            assert shown == [hop.title], each.id


def test_the_question_names_every_page() -> None:
    for each in EXAMPLES:
        assert [hop.title for hop in look_ups(each) if hop.title.casefold() not in each.question.casefold()] == []


@pytest.mark.parametrize("example", kind("arithmetic"), ids=lambda example: example.id)
def test_the_calculation_gives_the_answer(example: Example) -> None:
    (hop,) = calculations(example)
    assert hop == example.chain[-1]
    result = worked_out(hop, [each.value for each in example.chain])
    assert result == hop.value
    digits = len(example.answers[0].partition(".")[2])
    assert f"{float(result):.{digits}f}" == example.answers[0]


@pytest.mark.parametrize("example", kind("arithmetic"), ids=lambda example: example.id)
def test_no_shortcut_comes_near_the_answer(example: Example) -> None:
    assert [wrong for wrong in shortcuts(example) if score(wrong, example.answers, "parallelqa").exact_match] == []


def test_the_comparisons_come_out_as_their_answers_say() -> None:
    by_id = {
        each.id: {hop.title: float(hop.value.replace(",", "").split()[0]) for hop in each.chain} for each in EXAMPLES
    }
    depth, opened = by_id["parallel-16"], by_id["parallel-17"]
    assert sorted(depth, key=lambda lake: -depth[lake])[1] == "Lake Tanganyika"
    assert sorted(opened, key=lambda metro: opened[metro])[2] == "New York City Subway"
    for number, answer in ((18, "Tokyo Skytree"), (19, "Mount Elbrus")):
        example = EXAMPLES[number - 1]
        results = [float(hop.value) for hop in calculations(example)]
        assert look_ups(example)[results.index(max(results))].title == example.answers[0] == answer
    assert by_id["parallel-20"]["Burj Khalifa"] < float(EXAMPLES[19].chain[-1].value)


def test_a_search_for_a_title_finds_its_page() -> None:
    pages = DocumentPages(PASSAGES)
    assert len(TEXTS) == len(PASSAGES)
    for title in TEXTS:
        page = pages.find(title)
        assert page is not None
        assert page.title == pages.search(title, 1)[0].document.title == title


def test_a_passage_has_30_to_60_words_in_three_sentences() -> None:
    assert [title for title, text in TEXTS.items() if not 30 <= len(text.split()) <= 60] == []
    assert [title for title, text in TEXTS.items() if len(split_sentences(text)) != 3] == []


@pytest.mark.parametrize("architecture", ["rewoo", "rewoo-code", "react", "react-code", "react-native", "plan-execute"])
@pytest.mark.anyio
async def test_the_oracle_answers_every_question_with_the_calculator(architecture: str) -> None:
    results = await rewoo_bench.evaluate("sample-parallel", [architecture], model="oracle")
    for result in results:
        used = [step.tool for step in result.trajectory.steps]
        assert result.score is not None
        assert result.score.exact_match, result.task.example.id
        assert used.count("Calculator") == len(calculations(result.task.example))
        assert used.count("Search") == len(look_ups(result.task.example))


def test_the_card_tells_the_counts() -> None:
    assert f"| `questions.jsonl` | {len(EXAMPLES)} |" in CARD
    assert (
        f"| `passages.jsonl` | {len(PASSAGES)} | the corpus: {len(GOLD)} gold passages, {len(PASSAGES) - len(GOLD)} "
        in CARD
    )
    sizes = Counter(len(look_ups(each)) for each in kind("arithmetic"))
    assert f"| arithmetic | 01-15 | 15 | {sizes[2]} of 2 look-ups, {sizes[3]} of 3, each with one calculation |" in CARD
    shapes = Counter((len(look_ups(each)), len(calculations(each))) for each in kind("comparison"))
    assert shapes == {(4, 0): 2, (2, 2): 2, (4, 1): 1}
    assert "| comparison | 16-20 | 5 | 2 of 4 look-ups, 2 of 2 with two calculations, 1 of 4 with one |" in CARD


def test_the_row_that_the_card_shows_is_in_the_file() -> None:
    shown = CARD.split("```json\n")[1].split("```")[0]
    rows = (CORPUS.parent / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(shown) in [json.loads(row) for row in rows]
