"""`python scripts/compare.py RUN RUN …`, the same as `rewoo-bench compare RUN RUN …`."""

import sys

from rewoo_bench.cli.main import main

if __name__ == "__main__":
    main(["compare", *sys.argv[1:]])
