"""Exact match and F1 of a prediction, by the rules of a data set: what a scorer is, and the bundled ones.

    score("The Eiffel Tower!", ["Eiffel tower"])                  -> Score(exact_match=True, f1=1.0)
    score("yes, it is", ["yes"])                                  -> Score(exact_match=False, f1=0.0)
    score("yes, it is", ["yes"], dataset="yes_no")                -> Score(exact_match=True, f1=1.0)
    score("She pays $1,234.00.", ["1234"], dataset="gsm8k")       -> Score(exact_match=True, f1=1.0)

| scorer | for | what is compared |
|---|---|---|
| `hotpotqa` | HotpotQA and other short answers | normalised texts, official script |
| `triviaqa` | TriviaQA, SOTU QA | normalised texts, official script |
| `musique` | MuSiQue | normalised texts and aliases, official script |
| `yes_no` | StrategyQA, sports understanding | the yes or no that the text says |
| `gsm8k` | a number | the last number, exactly |
| `physics` | numbers with units | the values, within 2% |
| `parallelqa` | ParallelQA | a number within 10%, or normalised texts, official script |

A new scorer is a function (prediction, answers) -> Score, a line in `BUNDLED`, and its name in config/names.py.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256

from rewoo_bench.errors import DataError, RewooBenchError, UsageError, unknown
from rewoo_bench.text.argument_checks import check_kind
from rewoo_bench.text.numbers import Unit, find_numbers, read_unit, without_gaps


@dataclass(frozen=True, slots=True)
class Score:
    """How well a prediction fits: `f1` is between 0 and 1.

    Where several questions are asked at once, exact match is that of all of them, `f1` their mean, and
    `objectives_right` the share of those that match. More answers than questions count as wrong ones.
    """

    exact_match: bool
    f1: float
    objectives_right: float | None = None


BETWEEN_ANSWERS = " | "
"""Between the answers of several questions that are asked at once."""

ScoreFunction = Callable[[str, Sequence[str]], Score]
"""Prediction and gold answers to a score; neither is blank or empty."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A metric with the name that manifests have."""

    name: str
    function: ScoreFunction
    compared: Callable[[str], str | None] | None = None
    """What exact match compares of a text, where it is whether these are equal; None for a text without it."""
    objectives: int = 1
    """Number of questions that are asked at once."""

    def of_objectives(self, objectives: int) -> Scorer:
        """The scorer of so many questions at once, each by this one: `hotpotqa?objectives=3`."""
        if objectives == 1:
            return self
        return replace(self, name=f"{self.name}?objectives={objectives}", compared=None, objectives=objectives)

    def answers_sha256(self, answers: Sequence[str]) -> list[str] | None:
        """SHA-256 of what exact match compares of each gold answer; None where exact match is no equality."""
        texts = [self.compared(answer) if self.compared else None for answer in answers]
        hashes = [sha256(text.encode(errors="surrogatepass")).hexdigest() for text in texts if text is not None]
        return list(dict.fromkeys(hashes)) if len(hashes) == len(texts) else None

    def is_exact_match(self, prediction: str | None, answers_sha256: Sequence[str]) -> bool:
        """Exact match of a prediction, from the hashes of the gold answers."""
        if prediction is None or not prediction.strip():
            return False
        return any(each in answers_sha256 for each in self.answers_sha256([prediction]) or ())

    def __call__(self, prediction: str | None, answers: Sequence[str] | str) -> Score:
        """The score of a prediction; None and a blank one score nothing.

        Of several questions at once, a prediction has the answers in order, with ` | ` between them.

        Raises `DataError` where there are no answers, and `ScorerFault` where the function raises or
        returns no `Score`.
        """
        golds = (answers,) if isinstance(answers, str) else tuple(answers)
        if not golds:
            raise DataError("a score needs at least one gold answer, got none")
        if self.objectives > 1:
            one = replace(self, objectives=1)
            given = [text.strip() for text in (prediction or "").split(BETWEEN_ANSWERS.strip())]
            while given and not given[-1]:
                given.pop()
            parts = list(zip(*(gold.split(BETWEEN_ANSWERS) for gold in golds), strict=True))
            scores = [
                # "1. FC Köln" may be a name, or the first answer with the number that a model repeats
                best([one(text, answers), one(re.sub(rf"^(?:\({number}\)|{number}[.):])\s", "", text), answers)])
                for number, (text, answers) in enumerate(zip(given, parts, strict=False), start=1)
            ]
            right, most = sum(score.exact_match for score in scores), max(len(given), len(parts))
            return Score(right == most, sum(score.f1 for score in scores) / most, right / most)
        if prediction is None or not prediction.strip():
            return Score(exact_match=False, f1=0.0)
        try:
            result: object = self.function(prediction, golds)
        except Exception as error:  # of somebody's own function
            raise ScorerFault(f"the scorer {self.name!r} raised {type(error).__name__}: {error}") from error
        if not isinstance(result, Score) or not 0 <= result.f1 <= 1:
            expected = "expected rewoo_bench.Score(exact_match, f1) with f1 from 0 to 1"
            raise ScorerFault(f"the scorer {self.name!r} returned {result!r:.80}, {expected}")
        return Score(exact_match=bool(result.exact_match), f1=float(result.f1))


class ScorerFault(RewooBenchError):
    """A scorer that can't score a prediction."""


def best(scores: Sequence[Score]) -> Score:
    """Each metric at its best over several scores."""
    return Score(any(each.exact_match for each in scores), max(each.f1 for each in scores))


def all_or_nothing(is_right: bool) -> Score:
    """The score of an answer without parts, such as a number or a yes: F1 is 1 or 0."""
    return Score(is_right, float(is_right))


# Answers in words: exact match and token F1, as the official scripts of the data sets compute them.
#
# | | HotpotQA, hotpot_evaluate_v1.py | TriviaQA, triviaqa_evaluation.py |
# |---|---|---|
# | punctuation | deleted: `well-known` -> `wellknown` | becomes a space: `well known` |
# | typographic ‘ ’ ´ | kept | become a space |
# | yes, no, noanswer | F1 is 0 unless both sides are the same | nothing special |
#
# Sources: github.com/hotpotqa/hotpot and github.com/mandarjoshi90/triviaqa (evaluation/).

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SPACE_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})

_WORD = re.compile(r"[^\W_](?:[^\W_]|['’-](?=\w))*")  # no-one is a word, and isn't "no"
_SAYS = {"yes": True, "no": False, "true": True, "false": False, "untrue": False}
_SAYS |= {"plausible": True, "implausible": False}
_STATED = re.compile(  # a yes or a no that is no part of `no evidence`, `yes or no`
    r"""\b(?:yes(?!\s*(?:or|/)\s*no\b)
    |(?<!\byes[ ]or[ ])(?<!\byes/)no(?![\w'’-])(?![ \t]+(?!(?:it|they|he|she|we|you|i|this|that|these|those|there)\b)
        (?!(?:because|since|as|for|but|and|if|the)\b)\w))(?![\w'’-])""",
    re.VERBOSE,
)
_OPENING = re.compile(r"[\W_]*(?:(?:so|therefore|the|final|answer|is|it|it['’]s|i|would|say|think|that)\b[\W_]*)*")
_CONCLUDES = re.compile(r"\b(?:answer|conclusion|hence|so|therefore|thus)\b")
_SENTENCE_END = re.compile(r"(?<!\d)[.!?]\s|\n")
_CONCLUDED_WITHIN = 80  # characters
_UNDECIDED = re.compile(  # what is missing goes with the rest of its clause: `no evidence that it is true`
    r"""\b(?:no[ \t]+(?:doubt|question)\b|yes\s*(?:or|/)\s*no\b
    |no[ \t]+(?:\w+[ \t]+)?(?:evidence|proof|information|data|(?:idea|answer|result|record|source|mention|detail)s?)\b
        [^.!?,:;\n]*)""",
    re.VERBOSE,
)
_DENIALS = frozenset({"not", "never", "cannot", "hardly", "neither", "nor"})
_DENIED_WITHIN = 4  # words
_NEGATED = frozenset(_SAYS) - {"yes", "no"}  # by a denial among the words before: "not at all plausible"


def hotpotqa(prediction: str, answers: Sequence[str]) -> Score:
    """HotpotQA's metrics: F1 is 0 where one side is yes, no or noanswer and the other differs."""

    def closed_f1(predicted: str, gold: str) -> float:
        is_closed = predicted in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS
        return 0.0 if is_closed and predicted != gold else token_f1(predicted, gold)

    return _best_text(prediction, answers, normalize_hotpotqa, closed_f1)


def triviaqa(prediction: str, answers: Sequence[str]) -> Score:
    """TriviaQA's metrics."""
    return _best_text(prediction, answers, normalize_triviaqa, token_f1)


def musique(prediction: str, answers: Sequence[str]) -> Score:
    """MuSiQue's metrics of an answer, as its official script (metrics/answer.py) computes them.

        musique("the Stanley Hall", ["G. Stanley Hall", "Stanley Hall"])   -> Score(exact_match=True, f1=1.0)

    The texts are normalised as in SQuAD: lower case, no punctuation, no articles. Exact match and F1 are each the best
    over the answer and its aliases. Yes and no are words like any other. Two texts that normalise to nothing are equal,
    with an F1 of 1. Source: github.com/StonyBrookNLP/musique
    """

    def f1(predicted: str, gold: str) -> float:
        return token_f1(predicted, gold) if predicted and gold else float(predicted == gold)

    return _best_text(prediction, answers, normalize_hotpotqa, f1)


def _best_text(
    prediction: str, answers: Sequence[str], normalize: Callable[[str], str], f1: Callable[[str, str], float]
) -> Score:
    """The best exact match and the best F1 over the answers."""
    predicted = normalize(prediction)
    golds = [normalize(answer) for answer in answers]
    return Score(predicted in golds, max(f1(predicted, gold) for gold in golds))


def normalize_hotpotqa(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())


def normalize_triviaqa(text: str) -> str:
    """Lower case, punctuation and typographic quotes as spaces, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.replace("_", " ").lower().translate(_SPACE_PUNCTUATION)).split())


def token_f1(predicted: str, gold: str) -> float:
    """Harmonic mean of token precision and recall of two normalised texts."""
    predicted_tokens, gold_tokens = predicted.split(), gold.split()
    shared = sum((Counter(predicted_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def yes_no(prediction: str, answers: Sequence[str]) -> Score:
    """Whether both say yes or both say no; a gold answer that says neither is compared as a text.

    F1 is exact match, as HotpotQA's official script has it for yes and no.
    """
    return _same_reading(prediction, answers, says_yes)


def _same_reading(prediction: str, answers: Sequence[str], read: Callable[[str], object]) -> Score:
    """Whether the same is read from both; a gold answer from which nothing is read is compared as a text."""
    scores, found = [], read(prediction)
    for answer in answers:
        gold = read(answer)
        scores.append(triviaqa(prediction, [answer]) if gold is None else all_or_nothing(found == gold))
    return best(scores)


def says_yes(text: str) -> bool | None:
    """Whether a text says yes or no; None where it says neither.

        "Yes, because it is older."   yes        "No."                       no
        "It is true."                 yes        "That is not plausible."    no
        "Perhaps", "It is older.", "No evidence found."       neither
        "There is no evidence against it, so yes."   yes

    A text that begins with a yes or no says that; `no` before a noun is none. Where both stand in any other text, the
    last one counts that a conclusion names (answer, so, therefore …), and without one it says neither.

    A text without a yes or no says what its first such word says: `true` and `plausible` mean yes, `false` and
    `implausible` mean no, and so does `no`. A denial among the four words before turns true and plausible round: not,
    never, cannot, hardly, isn't. The `no` of what is missing decides nothing, nor does the rest of its clause: no
    evidence, no idea, no relevant information.
    """
    plain = text.casefold()
    if stated := list(_STATED.finditer(plain)):
        opening = _OPENING.match(plain)
        is_first = opening is not None and opening.end() == stated[0].start()
        if is_first or len({each[0] for each in stated}) == 1:
            return stated[0][0] == "yes"
        concluded = (each for each in reversed(stated) if _is_concluded(plain, each.start()))
        return next((each[0] == "yes" for each in concluded), None)
    words = [word.replace("’", "'") for word in _WORD.findall(_UNDECIDED.sub(" ", plain))]
    for at, word in enumerate(words):
        if word in _SAYS:
            before = words[max(0, at - _DENIED_WITHIN) : at]
            has_denial = any(each in _DENIALS or each.endswith("n't") for each in before)
            return _SAYS[word] != (word in _NEGATED and has_denial)
    return None


def _is_concluded(text: str, at: int) -> bool:
    """Whether a word like `answer` or `so` stands before that place, in its sentence."""
    before = _SENTENCE_END.split(text[max(0, at - _CONCLUDED_WITHIN) : at])[-1]
    return _CONCLUDES.search(before) is not None


def yes_or_no(text: str) -> str | None:
    """`yes`, `no`, or None where a text says neither."""
    says = says_yes(text)
    return None if says is None else ("yes" if says else "no")


# Answers that are numbers, or may be.

ANSWER_MARK = "####"
"""Stands before the number of an answer in GSM8K."""
_TOLERANCE = Fraction(2, 100)  # of a gold value with a unit
_MARGIN = Fraction(1, 10)  # of ParallelQA's gold value
_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALE_WORD = re.compile(rf"\s*({'|'.join(_SCALE)})s?\b", re.IGNORECASE)


def gsm8k(prediction: str, answers: Sequence[str]) -> Score:
    """Whether the numbers are equal: GSM8K (Cobbe et al., 2021, arXiv:2110.14168) and other arithmetic.

    The number of a text is the one behind `####`, as in the data set's own answers. A text without that mark has its
    last number taken: the official script knows only the mark, and lm-evaluation-harness (`flexible-extract`) takes the
    last number. Numbers are equal or not, with no tolerance: 1,234 = 1234.0 = $1,234. A percent sign counts as a unit,
    so 25% is 25. F1 is exact match: a number has no parts. A gold answer without a number is compared as a text.
    """
    return _same_reading(prediction, answers, final_number)


def final_number(text: str) -> Fraction | None:
    """The number that a text ends on, or None."""
    _, mark, behind = text.rpartition(ANSWER_MARK)
    if mark and (marked := find_numbers(behind)):
        return marked[0].value
    numbers = find_numbers(text)
    return numbers[-1].value if numbers else None


def final_number_text(text: str) -> str | None:
    """The number that a text ends on, as a whole number or a fraction in lowest terms: `1234`, `3/4`."""
    number = final_number(text)
    return None if number is None else str(number)


@dataclass(frozen=True, slots=True)
class _Quantity:
    value: Fraction
    unit: Unit | None

    def is_like(self, gold: _Quantity) -> bool:
        """Whether the units are of one kind."""
        return bool(self.unit and gold.unit and self.unit.powers == gold.unit.powers)

    def is_right(self, gold: _Quantity) -> bool:
        value, expected = self.value, gold.value
        if self.unit and gold.unit and self.is_like(gold):
            value, expected = value * self.unit.factor, expected * gold.unit.factor
        return abs(value - expected) <= _TOLERANCE * abs(expected)


def _quantities(text: str) -> list[_Quantity]:
    """The numbers of a text with their units, each once."""
    found = (_Quantity(number.value, read_unit(number.behind)) for number in find_numbers(text))
    return list(dict.fromkeys(found))


def physics(prediction: str, answers: Sequence[str]) -> Score:
    """Whether a number with a unit is right within 2%: the physics questions of the ReWOO paper (arXiv:2305.18323).

    For the gold answer "7187 m", "About 7,187 metres", "7.187 km" and "7.2 x 10^3 m" are right, "7187 km" is wrong.

    - Units of one kind are converted, km to m. Where a unit is missing, unknown or of another kind the values alone are
      compared, since the file's own units are sometimes too short: metres for a speed.
    - For a gold answer with one number, the prediction's last number of that kind of unit counts, else its last number.
    - A gold answer with several numbers is a set: exact match takes all of them and no other, F1 is that of the sets.
    - A gold answer without a number is compared as a text, as TriviaQA's.
    """
    found = _quantities(prediction)
    scores = []
    for answer in answers:
        golds = _quantities(answer)
        if not golds:
            scores.append(triviaqa(prediction, [answer]))
        elif len(golds) == 1:
            candidates = [each for each in found if each.is_like(golds[0])] or found
            scores.append(all_or_nothing(bool(candidates) and candidates[-1].is_right(golds[0])))
        else:
            left = list(found)
            for gold in golds:
                if right := next((each for each in left if each.is_right(gold)), None):
                    left.remove(right)
            shared = len(found) - len(left)
            scores.append(Score(shared == len(golds) == len(found), 2 * shared / (len(found) + len(golds))))
    return best(scores)


def parallelqa(prediction: str, answers: Sequence[str]) -> Score:
    """ParallelQA's metric: a number within 10% of the gold one, or a name with the same normalised text.

        parallelqa("about 3,300 metres", ["3307"])     -> Score(exact_match=True, f1=1.0)
        parallelqa("the cheetah", ["cheetah"])         -> Score(exact_match=True, f1=1.0)

    The margin and the texts are those of LLMCompiler's script (compare_answer): a number has to be less than 10% away
    from the gold one. 10% is much: a ratio of 1.07 matches 1.16. Three things are wider here, since models seldom write
    a bare number: thousands separators, words around the number, and "million" and its like. A prediction of several
    numbers is wrong, whichever it has. A negative gold number has the same margin (in the script nothing matches one),
    and only 0 matches 0. A gold yes or no is compared as one. F1 of a number is exact match; a name has HotpotQA's F1.
    """
    found = find_numbers(prediction)
    readings = [found[0].value] if len(found) == 1 else []
    if readings and (word := _SCALE_WORD.match(found[0].behind)):  # questions may ask for millions
        readings.append(found[0].value * _SCALE[word[1].lower()])
    scores = []
    for answer in answers:
        if says_yes(answer) is not None:
            scores.append(yes_no(prediction, [answer]))
            continue
        try:
            gold = Fraction(without_gaps(answer.strip()).replace(",", ""))
        except (ValueError, ZeroDivisionError):  # no bare number
            scores.append(hotpotqa(prediction, [answer]))
        else:
            is_near = (value == gold or abs(value - gold) < _MARGIN * abs(gold) for value in readings)
            scores.append(all_or_nothing(any(is_near)))
    return best(scores)


BUNDLED: Mapping[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer("hotpotqa", hotpotqa, normalize_hotpotqa),
        Scorer("triviaqa", triviaqa, normalize_triviaqa),
        Scorer("gsm8k", gsm8k, final_number_text),
        Scorer("yes_no", yes_no, yes_or_no),
        Scorer("physics", physics),
        Scorer("musique", musique, normalize_hotpotqa),
        Scorer("parallelqa", parallelqa),
    )
}


def score(prediction: str | None, answers: Sequence[str] | str, dataset: str = "hotpotqa") -> Score:
    """`prediction` against the gold `answers`, by the bundled scorer `dataset`.

    With several answers each metric is its best over them. That is TriviaQA's own rule (its
    gold answers are the aliases); official HotpotQA rows have one answer, and other sets that
    are scored its way get the same maximum.

    None and blank predictions score nothing. A prediction that only normalises to nothing
    ("The") still equals a gold answer that does ("The The"), as in the scripts, with an F1 of 0.

    Raises `UsageError` for another `dataset` and `DataError` where there are no answers.
    """
    check_kind("prediction", prediction, (str, type(None)), "a text or None")
    check_kind("answers", answers, (Iterable,), "the gold answers")
    if dataset not in BUNDLED:
        raise UsageError(unknown("scoring", dataset, BUNDLED))
    return BUNDLED[dataset](prediction, answers)
