"""`python scripts/plot.py RUN RUN …`, the same as `rewoo-bench plot RUN RUN …`."""

import sys

from rewoo_bench.cli.main import main

if __name__ == "__main__":
    main(["plot", *sys.argv[1:]])
