"""`python scripts/claims.py RUN …`, the same as `rewoo-bench claims RUN …`."""

import sys

from rewoo_bench.cli.main import main

if __name__ == "__main__":
    main(["claims", *sys.argv[1:]])
