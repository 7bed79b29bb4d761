"""The corpus: what it finds, what its cache survives, and how it refuses a bad file."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import bm25s
import pyarrow
import pytest
from pyarrow import parquet
from real_data import HOTPOTQA, WIKIPEDIA, RealData

from rewoo_bench.errors import DataError
from rewoo_bench.tools import Corpus, Pages, Search, SearchArguments
from rewoo_bench.tools.corpus import SavedRanking
from rewoo_bench.types import Document

PASSAGES = [
    {"title": "Ada Quill", "text": "Ada Quill was a harbour pilot.", "origin": "x"},
    {"title": "Bergen", "text": "Bergen is a city with a harbour."},
    {"title": "&amp;TV", "text": "&TV is a television channel."},
    {"title": "Ada  Quill", "text": "She wrote a book on whirlpools and “tides”."},
    {"title": "Empty", "text": "  "},
]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "passages.jsonl", PASSAGES)


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def entry(cache: Path) -> Path:
    (only,) = (cache / "corpus").iterdir()
    return only


def test_scores_are_those_of_bm25s(file: Path, cache: Path) -> None:
    Corpus.open(file, cache)
    ranking, its = SavedRanking.open(entry(cache)), bm25s.BM25.load(entry(cache))
    for query in (["harbour"], ["ada", "harbour", "harbour", "unheard"], ["televis", "citi"]):
        ids = ranking.term_ids(query)
        assert ids == its.get_tokens_ids(query)
        assert ranking.scores(ids).tolist() == its.get_scores_from_ids(ids).tolist()
    assert ranking.scores(ranking.term_ids(["harbour"])).max() > 0


def test_passages_of_a_title_are_one_page(file: Path, cache: Path) -> None:
    corpus = Corpus.open(file, cache)
    assert isinstance(corpus, Pages)
    assert len(corpus) == 3
    page = corpus.find("ada quill")
    assert page == Document("Ada Quill", "Ada Quill was a harbour pilot.\nShe wrote a book on whirlpools and “tides”.")
    assert corpus.find("&TV") == corpus.find("&amp;tv") == Document("&TV", "&TV is a television channel.")
    assert corpus.find("Empty") is None


UNTITLED: list[dict[str, Any]] = [
    {"_id": "d1", "title": "", "text": "The pilot of the harbour boards each ship at the outer buoy."},
    {"_id": "d2", "title": "-", "text": "A whirlpool forms where two tides meet."},
    {"_id": "d3", "title": None, "text": "The pilot of the harbour boards each tug at the mole."},
    {"_id": "d4", "title": "Untitled", "text": "Bergen"},
    {"_id": "d5", "title": "Bergen", "text": "Bergen is a city."},
    {"_id": "d6", "text": "Bergen"},
]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
async def test_passages_without_a_title_are_pages_of_their_own(tmp_path: Path, cache: Path, kind: str) -> None:
    path = tmp_path / f"passages.{kind}"
    if kind == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(UNTITLED), path)
    else:
        path.write_text(json.dumps(UNTITLED) if kind == "json" else "\n".join(map(json.dumps, UNTITLED)))
    corpus = Corpus.open(path, cache)
    assert len(corpus) == len(UNTITLED)
    for query, text in [("whirlpool tides", UNTITLED[1]["text"]), ("tug mole", UNTITLED[2]["text"])]:
        [hit] = corpus.search(query, 1)
        assert hit.document.text == text
        assert corpus.find(hit.document.title) == hit.document
        assert text in await Search(corpus)(SearchArguments(query=query))
    assert [corpus.find(title) for title in ("Bergen", "Bergen (2)", "Bergen (3)")] == [
        Document("Bergen", "Bergen is a city."),
        Document("Bergen (2)", "Bergen"),
        Document("Bergen (3)", "Bergen"),
    ]


def test_contents_that_begin_with_a_quoted_line_have_it_for_a_title(tmp_path: Path, cache: Path) -> None:
    rows = [
        {"id": "0", "contents": '"Ada Quill"\nAda Quill was a pilot.'},
        {"id": "1", "contents": '"Ada Quill"\nShe wrote a book.'},
    ]
    corpus = Corpus.open(write(tmp_path / "a.jsonl", rows), cache)
    assert corpus.find("Ada Quill") == Document("Ada Quill", "Ada Quill was a pilot.\nShe wrote a book.")


def test_a_page_is_found_by_any_of_its_passages_and_once(file: Path, cache: Path) -> None:
    corpus = Corpus.open(file, cache)
    assert [hit.document.title for hit in corpus.search("whirlpool", 5)] == ["Ada Quill"]
    hits = corpus.search("the harbour of Ada Quill", 5)
    assert [hit.document.title for hit in hits] == ["Ada Quill", "Bergen"]
    assert hits[0].score > hits[1].score > 0
    assert len(corpus.search("the harbour of Ada Quill", 1)) == 1
    assert corpus.search("zeppelin", 5) == corpus.search("", 5) == corpus.search("harbour", 0) == []


SPEECH = "\ufeffMy fellow citizens.\n\n  The harbour\nis open. \n \t\n\nThank you.\r\n\r\nThe tide is high."


@pytest.mark.parametrize("name", ["speech.txt", "speech.txt.gz"])
def test_the_paragraphs_of_a_text_are_its_pages(tmp_path: Path, cache: Path, name: str) -> None:
    content = SPEECH.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    corpus = Corpus.open(tmp_path / name, cache)
    assert len(corpus) == 4
    assert corpus.find("Paragraph 1") == Document("Paragraph 1", "My fellow citizens.")
    assert [hit.document.text for hit in corpus.search("harbour", 5)] == ["The harbour is open."]
    assert corpus.find("paragraph 4") == Document("Paragraph 4", "The tide is high.")


@pytest.mark.parametrize("key", ["text", "contents", "content"])
def test_strategyqa_paragraphs_and_pyserini_passages_are_read(tmp_path: Path, cache: Path, key: str) -> None:
    import pyarrow
    from pyarrow import parquet

    row = {"title": "Swan", "section": "", "para_index": "3", key: "A swan is a bird."}
    (tmp_path / "list.json").write_text(json.dumps([row], indent=1))
    (tmp_path / "object.json").write_text(json.dumps({"Swan-3": row}))
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "rows.parquet")
    for file in ("list.json", "object.json", "rows.parquet"):
        assert Corpus.open(tmp_path / file, cache).find("Swan") == Document("Swan", "A swan is a bird.")


def test_the_index_is_built_once_for_the_same_bytes(tmp_path: Path, file: Path, cache: Path) -> None:
    first = Corpus.open(file, cache)
    built = entry(cache).stat().st_ino
    moved = file.rename(tmp_path / "moved.jsonl")
    again = Corpus.open(moved, cache)
    assert entry(cache).stat().st_ino == built
    assert again.content_hash == first.content_hash
    assert again.search("harbour", 5) == first.search("harbour", 5)
    write(moved, PASSAGES[:2])
    assert len(Corpus.open(moved, cache)) == 2


def test_two_processes_may_build_at_once(file: Path, cache: Path) -> None:
    code = "import sys; from pathlib import Path; from rewoo_bench.tools import Corpus\n"
    code += "print(len(Corpus.open(sys.argv[1], Path(sys.argv[2])).search('harbour', 5)))"
    command = [sys.executable, "-c", code, str(file), str(cache)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["2\n", "2\n"]
    assert entry(cache).is_dir()


GOOD = b'{"title": "A", "text": "b"}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "the file is empty"),
        ("a.jsonl", b'{"title": "A", "text": " "}\n', "no passage with text"),
        ("a.jsonl", GOOD + b"{oops\n", r"a\.jsonl:2: not valid JSON"),
        ("a.jsonl", GOOD + b"\xff\n", r"a\.jsonl:2: not UTF-8"),
        ("a.jsonl", GOOD + b"[1]\n", r"a\.jsonl:2: found \[1\]"),
        ("a.jsonl.gz", gzip.compress(GOOD * 999)[:-9], r"a\.jsonl\.gz:\d+: damaged, or cut off"),
        ("a.txt", b" \n\n", "no passage with text"),
        ("a.json", b'[{"title": "A"}]', r"a\.json: passage 1: no 'text' among 'title'"),
        ("a.csv", b"title,text\n", r"unknown extension '\.csv'"),
        ("a.parquet", b"PAR1", "can't be read as parquet"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    tmp_path: Path, cache: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        Corpus.open(tmp_path / name, cache)
    assert "\n" not in str(error.value)
    assert "expected" in str(error.value)
    assert not list(cache.glob("corpus/*"))


def test_a_missing_file_and_a_missing_column_are_named(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Corpus.open(tmp_path / "none.jsonl", cache)
    parquet.write_table(pyarrow.table({"title": ["A"], "body": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"no column 'text' \(found: title, body\)"):
        Corpus.open(tmp_path / "a.parquet", cache)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, file: Path) -> None:
    (tmp_path / "plain").write_text("a file, no folder")
    with pytest.raises(DataError, match="set REWOO_BENCH_CACHE to a writable folder"):
        Corpus.open(file, tmp_path / "plain")


def test_seventy_thousand_pages_are_searched_in_milliseconds(real_data: RealData) -> None:
    passages, questions = real_data(WIKIPEDIA), real_data(HOTPOTQA)
    corpus = Corpus.open(passages)
    rows = json.loads(questions.read_text())
    corpus.find("a first call, which loads what is loaded late")
    start = time.thread_time()
    hits = [corpus.search(row["question"], 10) for row in rows]
    assert (time.thread_time() - start) / len(rows) < 0.01
    gold = [{title for title, _ in row["supporting_facts"]} for row in rows]
    found = [titles <= {hit.document.title for hit in best} for titles, best in zip(gold, hits, strict=True)]
    assert sum(found) > 0.6 * len(rows)
    assert all(corpus.find(title) for titles in gold for title in titles)
    assert len(corpus) == 68_494
