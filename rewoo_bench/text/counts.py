"""Numbers with their nouns.

>>> counted(1, "question"), counted(1200, "question")
('1 question', '1,200 questions')
"""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """The number and the noun, which takes an s unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
