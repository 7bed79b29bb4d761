"""Claims and evidence -> findings: one for each claim and each evidence that holds what its test needs.

check(read_claims(), gather("results/local/my-run"))
    -> [Finding(claim=…, verdict="reproduced", reason="all of the interval is above 1.00", interval=…, evidence=…)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewoo_bench.claims.claim_file import Claim, On, Proof
from rewoo_bench.claims.derived_columns import SECONDS
from rewoo_bench.claims.measures import Measure
from rewoo_bench.claims.pairing import left_out
from rewoo_bench.claims.rules import Verdict
from rewoo_bench.claims.run_groups import Evidence
from rewoo_bench.stats.paired import Interval

# What a column needs beside a run of the architectures.
_FOR_COLUMN = {
    "cost_usd": "of a model with a price",
    "latency_s": "one question at once where the model is a local one",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim's verdict by one evidence; without one where there is none."""

    claim: Claim
    verdict: Verdict
    reason: str
    interval: Interval | None = None
    evidence: Evidence | None = None
    left_out: int = 0
    """Rows of its questions that are not in the interval: failed, never asked, or of a chain that a limit cut off."""


def check(claims: Sequence[Claim], gathered: Sequence[Evidence]) -> list[Finding]:
    """All findings, in the order of the claims and of the evidence."""
    return [finding for claim in claims for finding in _findings(claim, gathered)]


def _findings(claim: Claim, gathered: Sequence[Evidence]) -> list[Finding]:
    if claim.proof is None:
        return [Finding(claim, "not testable here", claim.untestable)]
    found = list(_tested(claim, claim.proof, gathered))
    return found or [Finding(claim, "no data", f"needs {needed(claim.proof)}")]


def _tested(claim: Claim, proof: Proof, gathered: Sequence[Evidence]) -> Iterator[Finding]:
    for evidence in gathered:
        part = proof.on.part(evidence)
        if part is None or not _means_something(evidence, proof.measure):
            continue
        interval = proof.measure.measure(part, gathered)
        if interval is not None:
            verdict, reason = proof.rule.judge(interval, claim.number, proof.measure.show)
            if claim.by_construction and verdict == "reproduced":  # where it fails, that is news
                verdict = "by construction"
            measured = [(part, name, proof.measure.column) for name in proof.measure.architectures()]
            yield Finding(claim, verdict, reason, interval, evidence, left_out(measured))


def _means_something(evidence: Evidence, measure: Measure) -> bool:
    """Whether the measure says something of the model here that no other evidence says already.

    An oracle's accuracy is made. The seconds of questions that share a machine's model are those of a
    queue. A replay repeats its run: only what a judge said of it is new.
    """
    columns = measure.columns()
    if evidence.oracle and not measure.serves_oracle():
        return False
    if evidence.queued and columns & SECONDS:
        return False
    return not evidence.replay or columns == {"judged_correct"}


def needed(proof: Proof) -> str:
    """What to run for a test, a command that runs as it stands, and behind a semicolon what else to know of it.

    `run --arch react,rewoo --dataset hotpotqa; or --dataset triviaqa`
    """
    on, measure = proof.on, proof.measure
    first, *others = _datasets(on, measure.of_a_chain)
    command = f"run --arch {','.join(measure.architectures())} --dataset {first}"
    if on.failure_rate:
        command += f" --tool-failure-rate {on.failure_rate:g} --tool-failure-mode {on.failure_mode}"
    if "judged_correct" in measure.columns():
        command += " --judge-model JUDGE"
    parts = [command, *(f"or --dataset {name}" for name in others)]
    parts += [_FOR_COLUMN[name] for name in sorted(measure.columns() & set(_FOR_COLUMN))]
    parts += [measure.beside, "" if measure.serves_oracle() else "with a real model, an oracle won't do"]
    return "; ".join(filter(None, parts))


def _datasets(on: On, of_a_chain: int) -> list[str]:
    """The data sets that will do, as `--dataset` takes them, with the flags that they need."""
    if on.unforeseen:
        return [f"'chain?hops=5&branching=4' -n {of_a_chain}"]
    if "chain" in on.data or on.least_steps or on.most_steps or on.unforeseen is not None:
        least, most = on.least_steps or 1, on.most_steps or 8
        return [f"'chain?hops={least}..{most}' --max-steps {max(8, 2 * most - 1)} -n {of_a_chain}"]
    return list(on.data) or ["sample"]
