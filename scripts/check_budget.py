"""`python scripts/check_budget.py RUN …`, the same as `rewoo-bench gate RUN …`."""

import sys

from rewoo_bench.cli.main import main

if __name__ == "__main__":
    main(["gate", *sys.argv[1:]])
