"""The commands of `rewoo-bench`, one a file; main.py puts them together."""
