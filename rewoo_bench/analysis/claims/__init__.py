"""Published claims about ReWOO and ReAct, tested on your own runs.

    for finding in check(read_claims(), gather("results/local/my-run")):
        print(finding.claim.id, finding.verdict, finding.interval)

    claims.toml -> claim_file.py -> measures.py on the run groups of run_groups.py -> claim_file.py's rules -> a verdict

claims.toml has every claim with its sources, its measure and the rule of its verdict, check.py says which run decides
it. A claim is judged by that run's 95% interval; no interval is adjusted for the number of claims.
"""

from rewoo_bench.analysis.claims.check import Figure, Finding, check
from rewoo_bench.analysis.claims.claim_file import Claim, read_claims
from rewoo_bench.analysis.claims.run_groups import RunGroup, gather

__all__ = ["Claim", "Figure", "Finding", "RunGroup", "check", "gather", "read_claims"]
