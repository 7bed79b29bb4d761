"""Made-up rows of every format, and ways to hand them to the loaders."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewoo_bench.config.specs import HubSource
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.types import Example

Row = dict[str, Any]


def hotpotqa_row(number: int = 1, **changes: Any) -> Row:
    row = {
        "_id": f"id{number}",
        "question": f"In which city did the author of book {number} live?",
        "answer": "Lund",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Ann Ek", 1], ["Book", 0], ["Ann Ek", 0]],
        "context": [
            ["Ann Ek", ["Ann Ek was a writer.", " She lived in Lund."]],
            ["Other", ["Nothing here."]],
            ["Book", ["The book was written by Ann Ek."]],
        ],
    }
    return row | changes


def hotpotqa_hub_row(number: int = 1) -> Row:
    row = hotpotqa_row(number)
    titles, sentences = zip(*row["context"], strict=True)
    fact_titles, fact_sentences = zip(*row["supporting_facts"], strict=True)
    return {key: value for key, value in row.items() if key != "_id"} | {
        "id": row["_id"],
        "context": {"title": list(titles), "sentences": list(sentences)},
        "supporting_facts": {"title": list(fact_titles), "sent_id": list(fact_sentences)},
    }


def triviaqa_row(number: int = 1, **changes: Any) -> Row:
    row = {
        "question_id": f"tq_{number}",
        "question": f"Which planet is number {number}?",
        "answer": {"value": "Mars", "aliases": ["The Red Planet", "Mars", "Mars"], "normalized_aliases": ["mars"]},
        "entity_pages": {"title": ["Mars"], "wiki_context": ["Mars is red."], "filename": ["Mars.txt"]},
        "search_results": {"title": ["Web", "Blank"], "search_context": ["Seen on the web.", " "]},
    }
    return row | changes


def official_triviaqa(*answers: Row) -> Row:
    rows = [
        {"QuestionId": f"tq_{number}", "Question": "Which planet?", "Answer": answer}
        for number, answer in enumerate(answers, start=1)
    ]
    return {"Data": rows, "Domain": "Wikipedia", "Version": 1.0}


def gsm8k_row(number: int = 1, **changes: Any) -> Row:
    row = {
        "question": f"Ann has {7 + number} pens and buys 4 times as many. How many has she then?",
        "answer": "She buys 4*8=<<4*8=32>>32 pens.\nThen she has 32+8=<<32+8=40>>40 pens.\n#### 40",
    }
    return row | changes


def strategyqa_row(number: int = 1, **changes: Any) -> Row:
    row = {
        "qid": f"q{number}",
        "term": "Swan",
        "description": "A bird",
        "question": f"Could {number} swans carry a piano?",
        "answer": False,
        "facts": ["A swan weighs 10 kg.", "A piano weighs 200 kg."],
        "decomposition": ["How much does a swan weigh?", "How much does a piano weigh?", "Is #1 more than #2?"],
        "evidence": [
            [[["Swan-3", "Bird-1"]], [["Grand piano-2"], "no_evidence"], ["operation"]],
            [[["Mute swan-1"]], [[]], ["operation"]],
        ],
    }
    return row | changes


def strategyqa_hub_row(number: int = 1) -> Row:
    keys = ("qid", "term", "description", "question", "answer")
    row = strategyqa_row(number)
    return {key: row[key] for key in keys} | {"facts": " ".join(row["facts"])}


def sample_row(**changes: Any) -> Row:
    chain = [
        {"title": "Book", "ask": "Who wrote it?", "value": "Ann Ek"},
        {"title": "Ann Ek", "ask": "Where did she live?", "value": "Lund", "needs": [1]},
    ]
    row = {"id": "s1", "type": "bridge", "question": "Where did its author live?", "answers": ["Lund"], "chain": chain}
    return row | changes


def written(folder: Path, name: str, rows: Any) -> Path:
    """`rows` as the file `name`, in the form that its endings say."""
    path = folder / name
    if ".parquet" in name:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        content = path.read_bytes()
    elif ".jsonl" in name:
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    else:
        content = json.dumps(rows, indent=1).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def load(folder: Path, rows: Any, name: str = "rows.json", **options: Any) -> Dataset:
    return load_dataset_examples(str(written(folder, name, rows)), **options)


def only(folder: Path, rows: Any, name: str = "rows.json") -> Example:
    (example,) = load(folder, rows, name).examples
    return example


def own_set(tmp_path: Path, **changes: str) -> Path:
    """A folder with a dataset.toml and one question."""
    folder = tmp_path / "mine"
    folder.mkdir()
    written(folder, "questions.jsonl", [sample_row()])
    spec = {
        "name": "mine",
        "description": "d",
        "format": "sample",
        "exemplars": "multihop",
        "scoring": "hotpotqa",
        "questions": "questions.jsonl",
    }
    lines = [f"{key} = {value!r}\n" for key, value in (spec | changes).items() if value]
    (folder / "dataset.toml").write_text("".join(lines))
    return folder


class Hub:
    """Stands in for the hub through the loaders' own seam; remembers what it was asked for."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.asked: tuple[str, str, str, bool] | None = None

    def __call__(
        self, source: HubSource, config: str, split: str, *, streaming: bool
    ) -> tuple[Sequence[Mapping[str, Any]], str]:
        self.asked = (source.path, config, split, streaming)
        return self.rows, "c0ffee"
