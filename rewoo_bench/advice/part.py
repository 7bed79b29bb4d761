"""One recommendation with all that it was made from: what sentences, tables and JSON show.

part.title              # "hotpotqa, openai/small: rewoo, react and direct on 300 questions"
part.pairs_tested       # 3, the number of pairs that Holm's adjustment is for
"""

from __future__ import annotations

from dataclasses import dataclass

from rewoo_bench.advice.candidates import Candidate
from rewoo_bench.advice.contrasts import Contrast, Contrasts
from rewoo_bench.advice.decision import Decision
from rewoo_bench.advice.more_questions import MoreQuestions
from rewoo_bench.advice.run_sets import RunSet
from rewoo_bench.advice.terms import Terms
from rewoo_bench.advice.wording import joined
from rewoo_bench.text.counts import counted


@dataclass(frozen=True, slots=True)
class Part:
    """A recommendation for one set of architectures."""

    runs: RunSet
    terms: Terms
    candidates: tuple[Candidate, ...]
    contrasts: Contrasts
    """Pairs of architectures within the limits, and of the recommended one with each other one."""
    decision: Decision
    more: MoreQuestions | None

    @property
    def title(self) -> str:
        """Data set, model, architectures and number of questions."""
        names = joined([each.architecture for each in self.candidates])
        return f"{self.runs.dataset}, {self.runs.model}: {names} on {counted(self.questions, 'question')}"

    @property
    def questions(self) -> int:
        """Questions that all of them were asked."""
        return self.candidates[0].questions

    @property
    def within(self) -> list[str]:
        """Architectures that are surely within the limits."""
        return [each.architecture for each in self.candidates if each.state == "within"]

    @property
    def pairs_tested(self) -> int:
        """Number of pairs that Holm's adjustment is for."""
        return len(self.within) * (len(self.within) - 1) // 2

    @property
    def limited(self) -> bool:
        """Whether a limit was given."""
        return any(each.limits for each in self.candidates)

    def candidate(self, name: str) -> Candidate:
        """The candidate of that name."""
        return next(each for each in self.candidates if each.architecture == name)

    def shown_contrasts(self) -> list[Contrast]:
        """The recommended one, or else the contender with the highest accuracy, against each other one.

        The contenders come first.
        """
        names = self.decision.contenders
        name = self.decision.recommended or max(
            names, key=lambda each: self.candidate(each).accuracy.estimate, default=None
        )
        shown = [each for (one, _), each in self.contrasts.items() if one == name]
        return sorted(shown, key=lambda each: each.other not in names)
