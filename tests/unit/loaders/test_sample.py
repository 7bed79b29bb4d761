"""The bundled sample holds what its card says, and each question can be answered from its gold pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.tools import DocumentPages
from rewoo_bench.tools.corpus import read_passages
from rewoo_bench.types import Example, Hop

SAMPLE = load_dataset_examples("sample")
EXAMPLES = SAMPLE.examples
CORPUS = SAMPLE.corpus or Path()
PASSAGES = list(read_passages(CORPUS))
TEXTS = {passage.title: passage.text for passage in PASSAGES}
CARD = (CORPUS.parent / "README.md").read_text(encoding="utf-8")

COUNTS = {"bridge": 45, "comparison": 25, "trivia": 20, "chain": 10}
GOLD = {hop.title for example in EXAMPLES for hop in example.chain}


def bare(title: str) -> str:
    """The title as a question would say it: `Don (river)` -> `don`."""
    return re.sub(r" \([^)]*\)$", "", title).casefold()


def says(text: str, words: str) -> bool:
    """Whether the words stand in the text, upper or lower case, and not inside of longer words."""
    return re.search(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", text.casefold()) is not None


def hops() -> Iterator[tuple[Example, Hop]]:
    return ((example, hop) for example in EXAMPLES for hop in example.chain)


def kind(*names: str) -> list[Example]:
    return [example for example in EXAMPLES if example.kind in names]


def either_or() -> list[Example]:
    """Comparisons whose answer is one of the two things compared."""
    return [example for example in kind("comparison") if example.answers[0] not in {"yes", "no"}]


def test_the_types_have_their_counts() -> None:
    assert Counter(example.kind for example in EXAMPLES) == COUNTS


def test_ids_count_from_1_in_the_order_of_the_types() -> None:
    kinds = [name for name, count in COUNTS.items() for _ in range(count)]
    expected = [(f"sample-{number:03}", name) for number, name in enumerate(kinds, start=1)]
    assert [(example.id, example.kind) for example in EXAMPLES] == expected


def test_no_question_comes_twice() -> None:
    assert len({example.question.casefold() for example in EXAMPLES}) == len(EXAMPLES)


def test_no_title_comes_twice() -> None:
    assert len({passage.title.casefold() for passage in PASSAGES}) == len(PASSAGES)


def test_there_are_at_least_300_passages() -> None:
    assert len(PASSAGES) >= 300


def test_a_passage_has_40_to_110_words() -> None:
    assert [title for title, text in TEXTS.items() if not 40 <= len(text.split()) <= 110] == []


def test_every_gold_page_has_a_passage() -> None:
    assert [title for title in GOLD if title not in TEXTS] == []


def test_every_value_is_on_its_page() -> None:
    assert [(example.id, hop.value) for example, hop in hops() if not says(TEXTS[hop.title], hop.value)] == []


def test_every_hop_says_what_to_ask_of_its_page() -> None:
    assert [example.id for example, hop in hops() if not hop.ask] == []


def test_no_chain_visits_a_page_twice() -> None:
    assert [each.id for each in EXAMPLES if len({hop.title for hop in each.chain}) < len(each.chain)] == []


def test_an_answer_can_be_read_on_the_last_page_of_its_chain() -> None:
    examples = kind("bridge", "trivia", "chain")
    assert [each.id for each in examples if not says(TEXTS[each.chain[-1].title], each.answers[0])] == []


def test_an_answer_is_what_the_last_hop_finds() -> None:
    examples = kind("bridge", "trivia", "chain")
    assert [each.id for each in examples if each.answers[0] not in each.chain[-1].value] == []


def test_the_answer_of_an_either_or_question_is_one_of_the_things_compared() -> None:
    compared = {each.id: [bare(hop.title) for hop in each.chain] for each in either_or()}
    assert [each.id for each in either_or() if each.answers[0].casefold() not in compared[each.id]] == []


def test_the_values_of_an_either_or_question_differ() -> None:
    assert [each.id for each in either_or() if each.chain[0].value == each.chain[1].value] == []


def test_a_comparison_is_answered_yes_where_both_pages_have_the_same_value() -> None:
    examples = [each for each in kind("comparison") if each not in either_or()]
    same = {each.id: each.chain[0].value == each.chain[1].value for each in examples}
    assert [each.id for each in examples if each.answers != ("yes" if same[each.id] else "no",)] == []


def test_no_question_gives_its_answer_away() -> None:
    examples = kind("bridge", "trivia", "chain")
    assert [each.id for each in examples for answer in each.answers if says(each.question, answer)] == []


def test_a_page_that_needs_no_other_is_named_in_the_question() -> None:
    found = [(example, hop) for example, hop in hops() if not hop.needs]
    assert [(example.id, hop.title) for example, hop in found if not says(example.question, bare(hop.title))] == []


def test_a_page_that_needs_another_is_not_named_in_the_question() -> None:
    found = [(example, hop) for example, hop in hops() if hop.needs]
    assert [(example.id, hop.title) for example, hop in found if bare(hop.title) in example.question.casefold()] == []


def test_a_page_that_needs_others_is_named_by_each_of_their_values() -> None:
    needed = [(each.chain[need].value, hop.title) for each, hop in hops() for need in hop.needs]
    assert [(value, title) for value, title in needed if value.casefold() != bare(title)] == []


def test_a_bridge_has_a_second_page_that_needs_the_first() -> None:
    assert {tuple(hop.needs for hop in each.chain) for each in kind("bridge")} == {((), (0,))}


def test_a_comparison_has_two_pages_that_need_no_other() -> None:
    assert {tuple(hop.needs for hop in each.chain) for each in kind("comparison")} == {((), ())}


def test_trivia_has_one_page() -> None:
    assert {len(each.chain) for each in kind("trivia")} == {1}


def test_a_chain_uses_every_page_before_its_last() -> None:
    used = {each.id: {need for hop in each.chain for need in hop.needs} for each in kind("chain")}
    assert [each.id for each in kind("chain") if used[each.id] != set(range(len(each.chain) - 1))] == []


def test_a_search_for_its_title_finds_a_gold_page_among_the_first_three() -> None:
    pages = DocumentPages(PASSAGES)
    assert [title for title in GOLD if title not in [hit.document.title for hit in pages.search(title, 3)]] == []


def test_the_card_tells_the_passages() -> None:
    gold = f"{len(GOLD)} gold passages, {len(PASSAGES) - len(GOLD)} distractors"
    assert f"| `passages.jsonl` | {len(PASSAGES)} | the corpus: {gold} |" in CARD


def test_the_card_tells_the_number_of_questions() -> None:
    assert f"| `questions.jsonl` | {len(EXAMPLES)} |" in CARD


@pytest.mark.parametrize("name", COUNTS)
def test_the_card_tells_the_questions_of_a_type(name: str) -> None:
    ids = [example.id.removeprefix("sample-") for example in kind(name)]
    assert f"| {name} | {ids[0]}-{ids[-1]} | {len(ids)} |" in CARD


def test_the_card_tells_the_answers_of_the_comparisons() -> None:
    answers = Counter(each.answers[0] for each in kind("comparison"))
    first = sum(bare(each.chain[0].title) == each.answers[0].casefold() for each in either_or())
    named = f"{len(either_or())} either-or ({first} first-named, {len(either_or()) - first} second-named)"
    assert f"{answers['yes']} yes, {answers['no']} no, {named}" in CARD


def test_the_things_an_either_or_question_compares_stand_in_the_order_of_its_pages() -> None:
    places = {each.id: [each.question.casefold().index(bare(hop.title)) for hop in each.chain] for each in either_or()}
    assert [name for name, found in places.items() if found != sorted(found)] == []


def test_the_card_tells_the_lengths_of_the_chains() -> None:
    lengths = Counter(len(each.chain) for each in kind("chain"))
    assert f"{lengths[3]} questions of 3 hops, {lengths[4]} of 4 hops, {lengths[5]} of 5 hops" in CARD


def test_the_card_tells_how_many_chains_join_branches() -> None:
    joined = [each.id for each in kind("chain") if any(len(hop.needs) > 1 for hop in each.chain)]
    assert (len(joined), "one joins two branches" in CARD) == (1, True)


def test_the_description_tells_both_counts() -> None:
    description = (CORPUS.parent / "dataset.toml").read_text(encoding="utf-8")
    assert re.findall(r"(\d+) (?:questions|short)", description) == [str(len(EXAMPLES)), str(len(PASSAGES))]


def test_the_row_that_the_card_shows_is_in_the_file() -> None:
    shown = CARD.split("```json\n")[1].split("```")[0]
    rows = (CORPUS.parent / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(shown) in [json.loads(row) for row in rows]
