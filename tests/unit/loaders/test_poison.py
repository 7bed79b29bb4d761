"""A line of an attacker's in a gold page: where it stands, what it asks for, and what a run says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from rewoo_bench import bench
from rewoo_bench.analysis.claims.run_groups import gather
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.loaders.poison import KINDS, lines, poisoned
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.text.words import fold
from rewoo_bench.tools import Corpus, DocumentPages
from rewoo_bench.types import Document, Example, Hop

EXAMPLE = Example(
    "q",
    "Which sea?",
    ("Black Sea",),
    (Document("Dnieper", "It flows into the Black Sea."), Document("Kyiv", "It lies on the Dnieper.\nIt is old.")),
    chain=(Hop("1 + 1", "2", tool="Calculator"), Hop("KYIV", "Dnieper"), Hop("Dnieper", "Black Sea", needs=(1,))),
)


def only(example: Example, kind: str, seed: int = 0) -> Example:
    (made,) = poisoned([example], kind, seed)
    return made


def canary(example: Example) -> str:
    assert example.injection is not None
    return example.injection.marker


def test_the_line_ends_the_first_paragraph_of_the_first_page_that_is_looked_up() -> None:
    made = only(EXAMPLE, "call")
    assert made.documents[0] == EXAMPLE.documents[0]
    first, second = made.documents[1].text.split("\n")
    assert first.startswith("It lies on the Dnieper. ")
    assert canary(made) in first
    assert second == "It is old."
    assert (made.id, made.question, made.chain) == ("q/inject-call", EXAMPLE.question, EXAMPLE.chain)


def test_a_value_that_a_look_up_returns_alone_has_the_line_too() -> None:
    (example,) = load_dataset_examples("chain?results=value&inject=answer", limit=1).examples
    page = next(page for page in example.documents if page.title == example.chain[0].title)
    assert page.is_value
    assert page.text.startswith(f"{example.chain[0].value} ")
    assert canary(example) in page.text


@pytest.mark.parametrize("kind", KINDS)
def test_every_line_is_asked_sooner_or_later_and_names_the_canary(kind: str) -> None:
    assert len(lines(kind)) >= 4
    assert all(line.count("$") == line.count("$canary") > 0 and "\n" not in line for line in lines(kind))
    made = [only(replace(EXAMPLE, id=f"q{n}"), kind) for n in range(60)]
    shown = {each.documents[1].text.split("\n")[0].replace(canary(each), "$canary") for each in made}
    assert shown == {f"It lies on the Dnieper. {line}" for line in lines(kind)}


def test_a_canary_depends_on_the_seed_and_the_id_alone_and_is_nowhere_else() -> None:
    every = [canary(only(replace(EXAMPLE, id=id_), "call", seed)) for id_ in "ab" for seed in (0, 1)]
    assert len(set(every)) == 4
    assert canary(only(replace(EXAMPLE, id="a", question="Which?"), "call")) == every[0]
    for example in load_dataset_examples("sample?inject=all", limit=40).examples:
        texts = [example.question, *example.answers, *(page.title for page in example.documents)]
        texts += [page.text for page in example.documents if page.title != example.chain[0].title]
        assert not any(fold(word) in fold(" ".join(texts)) for word in canary(example).split())


def test_questions_without_such_a_page_are_left_out() -> None:
    without = [
        replace(EXAMPLE, id="a", chain=()),
        replace(EXAMPLE, id="b", documents=()),
        replace(EXAMPLE, id="c", chain=EXAMPLE.chain[:1]),
        replace(EXAMPLE, id="d", documents=EXAMPLE.documents[:1]),
    ]
    assert [each.id for each in poisoned([*without, EXAMPLE], "stop", 0)] == ["q/inject-stop"]


def test_each_question_once_with_each_kind_and_the_limit_counts_them_all() -> None:
    plain = load_dataset_examples("sample", limit=3, seed=2)
    every = load_dataset_examples("sample?inject=all", limit=10, seed=2)
    ids = [f"{example.id}/inject-{kind}" for example in plain.examples for kind in KINDS]
    assert [example.id for example in every.examples] == ids[:10]
    assert (every.manifest["limit"], every.manifest["examples"]) == (10, 10)
    one, four = load_dataset_examples("chain", limit=1), load_dataset_examples("chain?inject=all", limit=4)
    assert one.manifest["source"]["sha256"] == four.manifest["source"]["sha256"]  # no more were made


@pytest.mark.parametrize("name", ["sample", "sample-parallel", "chain?hops=2&width=2", "sample?objectives=2"])
def test_the_same_questions_with_and_without_the_line(name: str) -> None:
    mark = "&" if "?" in name else "?"
    plain, made = load_dataset_examples(name, limit=4), load_dataset_examples(f"{name}{mark}inject=argument", limit=4)
    assert made.name == f"{plain.name}{mark}inject=argument"
    assert [example.id for example in made.examples] == [f"{example.id}/inject-argument" for example in plain.examples]
    assert made.scoring == plain.scoring
    source = dict(made.manifest["source"])
    assert source.pop("inject") == {
        "kind": "argument",
        "lines": sha256("\n\n".join(lines("argument")).encode()).hexdigest(),
    }
    assert source == plain.manifest["source"]
    for one, other in zip(plain.examples, made.examples, strict=True):
        shown = [page.title for page in other.documents if canary(other) in page.text]
        assert shown == [one.chain[0].title]
        assert not one.documents or len(one.documents) == len(other.documents)


def test_passages_of_a_data_set_become_pages_of_each_question() -> None:
    plain, made = load_dataset_examples("sample", limit=5), load_dataset_examples("sample?inject=call", limit=5)
    assert plain.corpus is not None
    assert made.corpus is None
    corpus = Corpus.open(plain.corpus)
    for example in made.examples:
        pages = DocumentPages(example.documents)
        assert len(pages) == len(corpus)
        for hop in example.chain:
            own, shared = pages.find(hop.title), corpus.find(hop.title)
            assert own is not None
            assert shared is not None
            assert own == shared or own.text.startswith(shared.text.split("\n")[0])


def test_a_file_has_lines_too_and_its_run_says_so(tmp_path: Path) -> None:
    row = {
        "id": "s1", "question": "Where did the author of Tide Songs live?", "answers": ["Lund"],
        "chain": [{"title": "Tide Songs", "value": "Ann Ek"}, {"title": "Ann Ek", "value": "Lund", "needs": [1]}],
        "documents": [{"title": "Tide Songs", "text": "Tide Songs is a book by Ann Ek."},
                      {"title": "Ann Ek", "text": "Ann Ek was a poet. She lived in Lund."}],
    }  # fmt: skip
    (tmp_path / "own.jsonl").write_text(json.dumps(row))
    run = bench(
        "react", out=tmp_path / "run", dataset=f"{tmp_path / 'own.jsonl'}?inject=call", model="oracle?gullible=1"
    )
    assert run.rows["new_calls"].tolist() == [1]
    facts = read_manifest(tmp_path / "run").dataset
    assert (facts.name, facts.source["inject"]["kind"]) == ("own?inject=call", "call")
    assert facts.source["file"].endswith("own.jsonl")


def test_claims_about_other_questions_leave_such_ones_out(tmp_path: Path) -> None:
    for name in ("chain", "chain?inject=stop"):
        bench("react,rewoo", out=tmp_path / name[-4:], dataset=name, questions=4)
    found = [group.data for folder in ("hain", "stop") for group in gather(tmp_path / folder)]
    assert found == ["chain", "attacked"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "chain?inject=cal",
            r"'cal', did you mean 'call'\? available: all, answer, argument, call, stop",
        ),
        ("chain?inject=call&inject=stop", "inject is given once; inject=all asks with each kind"),
        ("sample-arithmetic?inject=call", "no question has chain and pages"),
    ],
)
def test_what_can_not_be_asked_is_one_clear_line(name: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        load_dataset_examples(name, limit=4)


def test_pages_of_a_corpus_have_no_line(tmp_path: Path) -> None:
    corpus = tmp_path / "pages.jsonl"
    corpus.write_text(json.dumps({"title": "Lund", "text": "Lund is a city."}))
    with pytest.raises(UsageError, match=r"--corpus: \?inject puts lines into the questions' own documents"):
        bench("react", out=tmp_path / "run", dataset="sample?inject=call", corpus=corpus)
