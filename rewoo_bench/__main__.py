"""`python -m rewoo_bench`, the same as `rewoo-bench`: where a virtual environment's scripts aren't on the path."""

from rewoo_bench.cli.main import main

if __name__ == "__main__":
    main()
