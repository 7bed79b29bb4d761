"""The commands of `rewoo-bench` beside `run` and `list`, one a file; cli.py puts them together."""
