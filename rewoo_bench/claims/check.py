"""Claims and run groups -> findings: one for each claim and each run group with the data for its test.

check(read_claims(), gather("results/local/my-run"))
    -> [Finding(claim=…, verdict="reproduced", reason="the whole interval is above 1", interval=…, group=…)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewoo_bench.claims.claim_file import Claim, ClaimTest, RunFilter
from rewoo_bench.claims.derived_columns import SECONDS
from rewoo_bench.claims.measures import Measure
from rewoo_bench.claims.pairing import left_out, never_asked
from rewoo_bench.claims.rules import Verdict
from rewoo_bench.claims.run_groups import RunGroup
from rewoo_bench.stats.paired import Interval

# What a column needs, apart from a run of the architectures.
_FOR_COLUMN = {
    "cost_usd": "of a model with a price",
    "latency_s": "one question at once where the model is a local one",
}
_WITHOUT_QUESTIONS = frozenset({"parallelqa"})  # data sets whose file a user has to get


@dataclass(frozen=True, slots=True)
class Finding:
    """Verdict on a claim from one run group, if any."""

    claim: Claim
    verdict: Verdict
    reason: str
    interval: Interval | None = None
    group: RunGroup | None = None
    left_out: int = 0
    """Rows that ran and aren't in the interval: failed, or of a chain and cut off by a limit."""
    never_asked: int = 0
    """Questions x architectures that a stopped run has no row of."""


def check(claims: Sequence[Claim], groups: Sequence[RunGroup]) -> list[Finding]:
    """All findings, in the order of the claims, then of the run groups."""
    return [finding for claim in claims for finding in _findings(claim, groups)]


def _findings(claim: Claim, groups: Sequence[RunGroup]) -> list[Finding]:
    if claim.test is None:
        return [Finding(claim, "not testable here", claim.untestable)]
    findings = list(_tested(claim, claim.test, groups))
    return findings or [Finding(claim, "no data", f"needs {needed(claim.test)}")]


def _tested(claim: Claim, test: ClaimTest, groups: Sequence[RunGroup]) -> Iterator[Finding]:
    for group in groups:
        part = test.on.part(group)
        if part is None or not _is_meaningful(group, test.measure):
            continue
        interval = test.measure.measure(part, groups)
        if interval is not None:
            verdict, reason = test.rule.judge(interval, claim.number, test.measure.show)
            if claim.by_construction and verdict == "reproduced":  # a failure would be news
                verdict = "by construction"
            used = [(part, name, test.measure.column) for name in test.measure.architectures()]
            yield Finding(claim, verdict, reason, interval, group, left_out(used), never_asked(used))


def _is_meaningful(group: RunGroup, measure: Measure) -> bool:
    """Whether the measure says something about the model that no other run group says.

    An oracle is given the answers: only its costs mean something, also in a replay. Latency includes waiting where
    questions share a machine's model. A replay repeats its run: only the verdicts of a new judge are new.
    """
    columns = measure.columns()
    if group.oracle:
        return measure.serves_oracle()
    if group.queued and columns & SECONDS:
        return False
    return not group.replay or columns == {"judged_correct"}


def needed(test: ClaimTest) -> str:
    """What to run for a test: a command to copy, then further requirements behind semicolons.

    `run --arch react,rewoo --dataset hotpotqa; or --dataset triviaqa`
    """
    on, measure = test.on, test.measure
    first, *others = _datasets(on, measure.chain_questions)
    command = f"run --arch {','.join(measure.architectures())} --dataset {first}"
    if on.failure_rate:
        command += f" --tool-failure-rate {on.failure_rate:g} --tool-failure-mode {on.failure_mode}"
    if "judged_correct" in measure.columns():
        command += " --judge-model JUDGE"
    parts = [command, *(f"or --dataset {name}" for name in others)]
    parts += [f"only its questions of type {on.question_type!r} count"] if on.question_type else []
    parts += [_FOR_COLUMN[name] for name in sorted(measure.columns() & set(_FOR_COLUMN))]
    parts += [measure.also_needs, "" if measure.serves_oracle() else "with a real model, an oracle won't do"]
    return "; ".join(filter(None, parts))


def _datasets(on: RunFilter, chain_questions: int) -> list[str]:
    """The data sets that will do, as `--dataset` takes them, with the flags that they need."""
    if on.unforeseen:
        return [f"'chain?hops=5&branching=4' -n {chain_questions}"]
    if "chain" in on.data or on.least_steps or on.most_steps or on.unforeseen is not None:
        least, most = on.least_steps or 1, on.most_steps or 8
        return [f"'chain?hops={least}..{most}' --max-steps {max(8, 2 * most - 1)} -n {chain_questions}"]
    return [f"{name}=FILE" if name in _WITHOUT_QUESTIONS else name for name in on.data] or ["sample"]
