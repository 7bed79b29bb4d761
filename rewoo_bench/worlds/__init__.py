"""What a question happens in: tools over a state of its own, and a check of what became of it (docs/tools.md).

| module | |
|---|---|
| `world` | what a world is, and one that a user's file makes (`--world shop.py`) |
| `dojo` | AgentDojo's four suites as a data set |
"""
