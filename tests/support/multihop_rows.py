"""Made-up rows of MuSiQue, 2WikiMultihopQA and ParallelQA."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]

TIDE = "Tide Songs is a book of poems. Ann Ek wrote it in 1931."
EK = "Ann Ek was a poet. She lived in Lund for most of her life."


def paragraph(idx: int, title: str, text: str, is_supporting: bool = False) -> Row:
    return {"idx": idx, "title": title, "paragraph_text": text, "is_supporting": is_supporting}


def sub_question(question: str, answer: str, paragraph_support_idx: int | None) -> Row:
    return {"id": 7, "question": question, "answer": answer, "paragraph_support_idx": paragraph_support_idx}


def musique_row(number: int = 1, **changes: Any) -> Row:
    row = {
        "id": f"2hop__{number}_9",
        "question": f"Where did the author of Tide Songs live, {number}?",
        "answer": "Lund",
        "answer_aliases": ["Lund, Sweden", "Lund", ""],
        "answerable": True,
        "paragraphs": [
            paragraph(0, "Ann Ek", EK, is_supporting=True),
            paragraph(1, "Lund", "Lund is a town with a cathedral."),
            paragraph(2, "Tide Songs", TIDE, is_supporting=True),
        ],
        "question_decomposition": [
            sub_question("Tide Songs >> author", "Ann Ek", 2),
            sub_question("Where did #1 live?", "Lund", 0),
        ],
    }
    return row | changes


def wiki_row(number: int = 1, **changes: Any) -> Row:
    row = {
        "_id": f"w{number}",
        "type": "compositional",
        "question": f"Where did the author of Tide Songs live, {number}?",
        "answer": "Lund",
        "context": [["Ann Ek", ["Ann Ek was a poet.", " She lived in Lund."]], ["Tide Songs", [TIDE]]],
        "supporting_facts": [["Tide Songs", 0], ["Ann Ek", 1]],
        "evidences": [["Tide Songs", "author", "Ann Ek"], ["Ann Ek", "residence", "Lund"]],
        "evidences_id": [],
        "entity_ids": "Q1_Q2",
        "answer_id": "Q3",
    }
    return row | changes


def wiki_hub_row(number: int = 1, **changes: Any) -> Row:
    """The row with HotpotQA's columns."""
    row = wiki_row(number, **changes)
    titles, sentences = zip(*row["context"], strict=True)
    facts, sentence_ids = zip(*row["supporting_facts"], strict=True)
    return {key: value for key, value in row.items() if key != "_id"} | {
        "id": row["_id"],
        "context": {"title": list(titles), "sentences": list(sentences)},
        "supporting_facts": {"title": list(facts), "sent_id": list(sentence_ids)},
    }


def wiki_text_row(number: int = 1, **changes: Any) -> Row:
    """The row with its tables as JSON text."""
    row = wiki_row(number, **changes)
    return row | {name: json.dumps(row[name]) for name in ("context", "supporting_facts", "evidences")}


def wiki_table_row(number: int = 1, **changes: Any) -> Row:
    """The row with columns of its own names: `content`, and the three parts of the evidence."""
    row = wiki_hub_row(number, **changes)
    titles, sentences = row["context"]["title"], row["context"]["sentences"]
    columns = zip(*row["evidences"], strict=True)
    evidences = dict(zip(("fact", "relation", "entity"), map(list, columns), strict=True))
    return row | {"context": {"title": titles, "content": sentences}, "evidences": evidences}


def parallelqa_row(number: int = 1, **changes: Any) -> Row:
    return {"id": number, "question": f"How much higher is hill {number}?", "answer": "201.9", "branch": 2} | changes
