"""An optional judge: a model that decides whether a prediction means the same as the gold answer.

The ReWOO paper's headline accuracy is that of such a judge (GPT-4). It is called once a question, in the role
`judge`, whose tokens aren't the architecture's.
"""

from __future__ import annotations

from rewoo_bench.call_site import call_site
from rewoo_bench.types import Example, Message, Model, Request

INSTRUCTIONS = (
    "Decide whether the prediction answers the question as one of the gold answers does. "
    "Other wording, spelling or precision is fine where the meaning is the same. Reply with one word: yes or no."
)
GRAMMAR = 'root ::= "yes" | "no"'


class ModelJudge:
    """A judge that asks the model of the role `judge`."""

    async def judge(self, example: Example, prediction: str, model: Model) -> bool | None:
        """True or False, or None where the reply was neither. Raises `ModelError`."""
        gold = "; ".join(example.answers)
        messages = [
            Message("system", INSTRUCTIONS),
            Message("user", f"Question: {example.question}\nGold answers: {gold}\nPrediction: {prediction}\nSame?"),
        ]
        with call_site("judge"):
            completion = await model.complete(Request(messages, role="judge", max_tokens=8, grammar=GRAMMAR))
        word = completion.text.strip().strip('."*').casefold()
        return {"yes": True, "no": False}.get(word.split()[0].strip(".,") if word else "")
