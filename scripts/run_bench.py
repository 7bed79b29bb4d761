"""`python scripts/run_bench.py --arch rewoo`, the same as `rewoo-bench run --arch rewoo`."""

import sys

from rewoo_bench.cli.main import main

if __name__ == "__main__":
    main(["run", *sys.argv[1:]])
