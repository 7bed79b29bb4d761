"""Text as the search tools see it: folded letters, index terms, title keys, sentences, BM25; and numbers in words.

index_terms("The Films of Shirley Temple")  ->  ["film", "shirley", "templ"]
title_key("&quot;Élan&quot; (film)")  ->  "elanfilm"
split_sentences("He met J. K. Rowling. Then he left.")  ->  two sentences
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from rewoo_bench.types import Document

_SMALL_WORDS = "a an the and or of in on at by for to from with as is are was were be been it its this that these those"
STOPWORDS = frozenset(_SMALL_WORDS.split())
_MARKS = re.compile("[\u0300-\u036f]")
_PIECE = 256  # characters
_LONGEST_KNOWN = 50  # characters of a word whose stem is remembered, so that no text fills the memory
_WORD = re.compile(r"\w+(?:'\w+)*")
_NOT_IN_KEY = re.compile(r"[\W_]+")
_DISAMBIGUATION = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")
_NO_TITLES = frozenset({"", "-", "–", "—", "None", "none", "nan", "null", "n/a", "untitled", "Untitled"})
"""What stands in the place of a title where a page has none."""
_WORDS_OF_NAME, _LONGEST_NAME = 6, 60  # words, and characters, of a page's own text that name it


def fold(text: str) -> str:
    """Lower case, without accents, with straight apostrophes: two spellings of a name become one."""
    if text.isascii():
        return text.lower()
    return _MARKS.sub("", normalized("NFKD", text).replace("’", "'")).casefold()


def normalized(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """A text in a Unicode form. What is composed of two characters at the border of two pieces may stay apart."""
    # In pieces, since runs of accents are sorted, in a time that grows with the square of their length.
    return "".join(unicodedata.normalize(form, text[start : start + _PIECE]) for start in range(0, len(text), _PIECE))


def index_terms(text: str) -> list[str]:
    """The stems of the words of a text, in order and with repeats, without stopwords.

    Index and query both go through here, which is what makes them comparable.
    """
    words = (word for word in _WORD.findall(fold(text)) if word not in STOPWORDS)
    return [_stem_known(word) if len(word) <= _LONGEST_KNOWN else _stem(word) for word in words]


def _stem(word: str) -> str:
    from Stemmer import Stemmer

    # One for each call: it costs a microsecond, and a shared one isn't safe between threads.
    stem: str = Stemmer("english", 0).stemWord(word)
    return stem


_stem_known = lru_cache(maxsize=1 << 18)(_stem)


def clean_title(title: str) -> str:
    """A title for display: HTML entities resolved, runs of white space as one space."""
    return " ".join((html.unescape(title) if "&" in title else title).split())


def title_key(title: str) -> str:
    """The folded letters and digits of a title, the same for its spellings.

    A title that has neither (`!!!`) is its own key.
    """
    cleaned = clean_title(title)
    return _NOT_IN_KEY.sub("", fold(cleaned)) or cleaned


def without_disambiguation(title: str) -> str:
    """`Mercury` for `Mercury (planet)`; a title that is nothing but parentheses stays as it is."""
    return _DISAMBIGUATION.sub("", title) or title


def has_title(document: Document) -> bool:
    """Whether a document's title is one, and not an empty text or a word for none."""
    return clean_title(document.title) not in _NO_TITLES


def with_titles(documents: Sequence[Document], others: Iterable[str] = ()) -> list[Document]:
    """The documents in their order, those without a title named by their first words.

    Such a name is that of one document only: `The ferry takes…`, `The ferry takes… (2)`, and none of the `others`.
    """
    if all(map(has_title, documents)):
        return [*documents]
    taken = {*map(title_key, others), *(title_key(each.title) for each in documents if has_title(each))}
    numbers: dict[str, int] = {}
    named: list[Document] = []
    for document in documents:
        if has_title(document):
            named.append(document)
            continue
        name = beginning = _first_words(document.text)
        while title_key(name) in taken:
            numbers[beginning] = numbers.get(beginning, 1) + 1
            name = f"{beginning} ({numbers[beginning]})"
        taken.add(title_key(name))
        named.append(replace(document, title=name))
    return named


def _first_words(text: str) -> str:
    words = text.split(maxsplit=_WORDS_OF_NAME)
    name = " ".join(words[:_WORDS_OF_NAME])
    is_cut = len(words) > _WORDS_OF_NAME or len(name) > _LONGEST_NAME
    return clean_title(name[:_LONGEST_NAME]) + ("…" if is_cut else "") or "Untitled page"


_BOUNDARY = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*\s+|\n\s*")
_LAST_WORD = re.compile(r"[\w.]+$")
_DOTTED = re.compile(r"(?:[^\W\d]{1,2}\.)+[^\W\d]")
_SHORT_FORMS = """
    mr mrs ms messrs dr prof st ste rev hon fr sr jr gen col maj capt cpt lt sgt cpl adm gov sen rep pres
    mt ft vs cf ca approx lit est inc ltd co corp bros dept univ vol pp op fig al
    jan feb mar apr jun jul aug sep sept oct nov dec
"""
_ABBREVIATIONS = frozenset(_SHORT_FORMS.split())
_BEFORE_NUMBERS = frozenset({"no", "nos", "p", "ch", "art", "sec"})  # words of their own anywhere else


def split_sentences(text: str) -> list[str]:
    """Splits a text after sentence ends and at line ends, never after initials and abbreviations.

    Only white space is lost. An abbreviation that also ends its sentence ("in the U.S. He …")
    isn't split: a sentence too long is better for a reader than one cut in two.
    """
    split: list[str] = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        following = text[boundary.end() : boundary.end() + 2].lstrip("\"'“‘([")
        if "\n" in boundary[0]:
            ends = True
        elif following[:1].islower():
            ends = False
        elif not boundary[0].startswith(".") or boundary[0].startswith(".."):
            ends = True
        else:
            match = _LAST_WORD.search(text, max(start, boundary.start() - 24), boundary.start())
            word = match[0] if match else ""
            is_initial = len(word) == 1 and word.isalpha()
            is_before_number = following[:1].isdigit() and word.lower() in _BEFORE_NUMBERS
            is_short = is_initial or _DOTTED.fullmatch(word) or word.lower() in _ABBREVIATIONS
            ends = not is_before_number and not is_short
        if ends:
            split.append(text[start : boundary.end()].strip())
            start = boundary.end()
    split.append(text[start:].strip())
    return [sentence for sentence in split if sentence]


def counted(number: int, noun: str) -> str:
    """The number and the noun, which takes an s unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A duration to two digits: `40 s`, `25 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def round_up(number: float) -> int:
    """Rounded up to two digits."""
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit) * unit


# BM25 as in Lucene, in plain Python: for ten paragraphs an index of bm25s takes several times as long.


K1, B = 1.5, 0.75  # BM25's saturation and length normalisation, the same as the corpus's index


def bm25(query: Sequence[str], texts: Sequence[Counter[str]]) -> list[float]:
    """The score of every text: the sum over terms of idf * tf / (tf + k1 * (1 - b + b * length / mean))."""
    lengths = [counts.total() for counts in texts]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(lengths)
    for term in query:
        frequency = sum(term in counts for counts in texts)
        if frequency:
            idf = math.log(1 + (len(lengths) - frequency + 0.5) / (frequency + 0.5))
            for page, counts in enumerate(texts):
                if tf := counts[term]:
                    scores[page] += idf * tf / (tf + K1 * (1 - B + B * lengths[page] / mean))
    return scores
