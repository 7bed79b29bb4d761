from collections.abc import Sequence

from rewoo_bench import Score


def contains(prediction: str, answers: Sequence[str]) -> Score:
    match = any(answer.casefold() in prediction.casefold() for answer in answers)
    return Score(exact_match=match, f1=float(match))
