"""Several questions as one task: which ones, what it asks, what it takes, and what counts as right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.config.named import find_scorer
from rewoo_bench.errors import DataError
from rewoo_bench.loaders.load import load_dataset_examples, split_options
from rewoo_bench.loaders.sampling import join
from rewoo_bench.types import Document, Example, Hop


def example(name: str, page: str = "") -> Example:
    documents = (Document(page or f"page of {name}", f"text of {name}"),)
    return Example(name, f"What of {name}?", (f"answer {name}",), documents, chain=(Hop(page or name, name),))


def test_a_task_is_a_set_of_questions_of_the_sample_in_the_order_of_the_seed() -> None:
    alone = load_dataset_examples("sample", limit=60, seed=3).examples
    tasks = load_dataset_examples("sample?objectives=3", limit=20, seed=3)
    assert [task.id for task in tasks.examples] == ["+".join(e.id for e in alone[n : n + 3]) for n in range(0, 60, 3)]
    fewer = load_dataset_examples("sample?objectives=3", limit=7, seed=3)
    assert fewer.examples == tasks.examples[:7]
    assert (tasks.name, tasks.scoring, tasks.manifest["limit"]) == ("sample?objectives=3", "hotpotqa?objectives=3", 20)
    assert load_dataset_examples("sample?objectives=1", limit=5, seed=3).examples == alone[:5]


def test_a_task_asks_all_its_questions_and_brings_their_pages_and_chains() -> None:
    (task,) = join([example("a"), example("b")], 2)
    assert task.id == "a+b"
    assert task.question.endswith("(1) What of a? (2) What of b?")
    assert task.answers == ("answer a | answer b",)
    assert [page.title for page in task.documents] == ["page of a", "page of b"]
    assert [hop.title for hop in task.chain] == ["a", "b"]


def test_the_hops_of_a_later_question_need_its_own_hops() -> None:
    chain = (Hop("3 + 4", "7", tool="Calculator"), Hop("{0} * 2", "14", needs=(0,), tool="Calculator"))
    (task,) = join([Example(n, n, ("14",), chain=chain) for n in ("a", "b")], 2)
    assert [(hop.title, hop.needs) for hop in task.chain] == [
        ("3 + 4", ()), ("{0} * 2", (0,)), ("3 + 4", ()), ("{2} * 2", (2,))
    ]  # fmt: skip
    (unknown,) = join([Example("a", "?", ("1",), chain=chain), Example("b", "?", ("1",))], 2)
    assert unknown.chain == ()


def test_a_question_waits_where_another_page_has_its_title() -> None:
    same = [example("a", "Oslo"), example("b", "Oslo"), example("c"), example("d")]
    assert [task.id for task in join(same, 2)] == ["a+c", "b+d"]
    assert list(join([example("a", "Oslo"), example("b", "Oslo")], 2)) == []
    shared = Document("Oslo", "one text")
    both = [Example(name, "?", ("x",), (shared,)) for name in "ab"]
    assert [task.documents for task in join(both, 2)] == [(shared,)]


def test_a_question_that_fits_no_other_is_left_out_and_the_others_are_joined() -> None:
    shared = Document("Lund", "one text")
    fitting = [Example(name, "?", ("x",), (shared,)) for name in "bcdef"]
    every = [example("a", "Lund"), *fitting]
    assert [task.id for task in join(every, 2)] == ["b+c", "d+e"]
    assert list(join(every, 2, are_all=False)) == []  # what follows may fit it


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 5))
def test_each_question_is_in_one_task_at_most(pages: list[int], objectives: int) -> None:
    examples = [example(f"q{n}", f"page {page}") for n, page in enumerate(pages)]
    ids = [task.id.split("+") for task in join(examples, objectives)]
    used = [name for task in ids for name in task]
    assert len(used) == len(set(used))
    assert all(len(task) == objectives for task in ids)


@pytest.mark.parametrize("wrong", ["0", "21", "x", "2&objectives=2"])
def test_a_wrong_number_is_one_clear_line(wrong: str) -> None:
    with pytest.raises(DataError, match="objectives is given once"):
        split_options(f"sample?objectives={wrong}")


def test_other_options_stay_with_the_data_set() -> None:
    assert split_options("chain?hops=2&objectives=3&inject=stop&width=2") == ("chain?hops=2&width=2", 3, "stop")
    assert split_options("chain?hops=2") == ("chain?hops=2", 1, "")
    tasks = load_dataset_examples("chain?hops=3&objectives=3", limit=2, seed=1)
    assert tasks.name == "chain?hops=3&objectives=3"
    assert [len(task.chain) for task in tasks.examples] == [9, 9]


def test_a_file_has_objectives_too(tmp_path: Path) -> None:
    rows = [{"question": f"Which {n}?", "answers": [str(n), f"number {n}"]} for n in range(7)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tasks = load_dataset_examples(f"{tmp_path / 'own.jsonl'}?objectives=2")
    assert len(tasks.examples) == 3
    with pytest.raises(DataError, match="there are fewer than 8 questions"):
        load_dataset_examples(f"{tmp_path / 'own.jsonl'}?objectives=8")
    first = tasks.examples[0]
    assert tasks.scorer(first.answers[1], first.answers).exact_match


@pytest.mark.parametrize("limit", [1, 2, 4, 20])
def test_rows_are_read_until_there_are_enough_tasks(tmp_path: Path, limit: int) -> None:
    def row(n: int) -> dict[str, object]:
        documents = [{"title": f"T{n % 7}", "text": f"text {n % 11}"}]
        return {"id": f"q{n}", "question": f"Which {n}?", "answers": [str(n)], "documents": documents}

    (tmp_path / "own.jsonl").write_text("\n".join(json.dumps(row(n)) for n in range(60)))
    name = f"{tmp_path / 'own.jsonl'}?objectives=3"
    every = load_dataset_examples(name, seed=4)
    tasks = load_dataset_examples(name, limit=limit, seed=4)
    assert len(every.examples) > 4
    assert tasks.examples == every.examples[:limit]
    assert (tasks.manifest["limit"], tasks.manifest["rows"]) == (limit, 60)


GOLD = ["Oslo | 1990 | yes", "Christiania | 1990 | yes"]


@pytest.mark.parametrize(
    ("prediction", "right", "exact"),
    [
        ("Oslo | 1990 | yes", 3, True),
        ("(1) Oslo | (2) 1990 | (3) yes", 3, True),
        ("Oslo | 1991 | yes", 2, False),
        ("Oslo | 1990 | yes | no", 9 / 4, False),
        ("Oslo, 1990, yes", 0, False),
        (None, 0, False),
    ],
)
def test_each_is_scored_by_itself_and_all_of_them_count_once(prediction: str | None, right: float, exact: bool) -> None:
    score = find_scorer("hotpotqa?objectives=3")(prediction, GOLD)
    assert (score.exact_match, score.objectives_right) == (exact, right / 3)
    assert score.f1 >= right / 3


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        ("1. FC Köln | Oslo", "1. FC Köln | Oslo"),
        ("1. 1. FC Köln | 2. Oslo", "1. FC Köln | Oslo"),
        ("1. May 1999 | 2. June", "May 1999 | June"),
    ],
)
def test_an_answer_may_begin_with_its_own_number(prediction: str, gold: str) -> None:
    score = find_scorer("hotpotqa?objectives=2")(prediction, [gold])
    assert (score.exact_match, score.f1, score.objectives_right) == (True, 1, 1)
    assert find_scorer("hotpotqa?objectives=2")(f"x | {prediction}", [gold]).objectives_right == 0
