"""What has been claimed of ReWOO and ReAct, put to the test on runs of one's own.

    for finding in check(read_claims(), gather("results/local/my-run")):
        print(finding.claim.id, finding.verdict, finding.interval)

    claims.toml -> spec.py -> measures.py on the evidence of evidence.py -> rules.py -> a verdict

claims.toml has every claim with its source, its measure and the rule of its verdict, fixed before the
studies were measured. Each claim is judged by its own 95% interval: nothing is adjusted for their number.
"""

from rewoo_bench.claims.check import Finding, check
from rewoo_bench.claims.claim_file import Claim, read_claims
from rewoo_bench.claims.run_groups import Evidence, gather

__all__ = ["Claim", "Evidence", "Finding", "check", "gather", "read_claims"]
