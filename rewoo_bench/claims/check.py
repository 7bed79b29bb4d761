"""Claims and run groups -> findings: one for each claim and each run group with the data for its test.

check(read_claims(), gather("results/local/my-run"))
    -> [Finding(claim=…, verdict="reproduced", reason="the whole interval is above 1", interval=…, group=…)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewoo_bench.claims.claim_file import Claim, ClaimTest
from rewoo_bench.claims.derived_columns import SECONDS
from rewoo_bench.claims.measures import Measure
from rewoo_bench.claims.needed import needed
from rewoo_bench.claims.pairing import left_out, never_asked
from rewoo_bench.claims.rules import Verdict
from rewoo_bench.claims.run_groups import RunGroup, averaged
from rewoo_bench.stats.paired import Interval


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
        if part is None:
            continue
        members = test.measure.groups_used(part, groups)
        if not members or not all(_is_meaningful(each, test.measure) for each in members):
            continue
        interval = test.measure.measure(part, groups)
        if interval is not None:
            verdict, reason = test.rule.judge(interval, claim.number, test.measure.show)
            if claim.by_construction and verdict == "reproduced":  # a failure would be news
                verdict = "by construction"
            used = [(each, name, test.measure.column) for each in members for name in test.measure.architectures()]
            shown = group if len(members) == 1 else averaged(members)
            yield Finding(claim, verdict, reason, interval, shown, left_out(used), never_asked(used))


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
