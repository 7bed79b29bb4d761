"""Dollars of a finished run under other price sheets, worked out from its recorded calls (README.md).

print(rewoo_bench.reprice("results/local/mine", prices="openai", models=["gpt-4o-mini"]))
"""

from rewoo_bench.repricing.render import Repriced, reprice

__all__ = ["Repriced", "reprice"]
