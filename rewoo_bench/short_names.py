"""Short names of the bundled runners, generators, tools and scorers, and import paths of earlier versions.

    runner = "rewoo"            # architecture.toml; the same as "rewoo_bench.runners.rewoo:ReWOO"
    generator = "chain"         # dataset.toml

Manifests and baselines keep the short name, so a class can move without making a run look changed.
"""

from __future__ import annotations

from collections.abc import Mapping

RUNNERS = {
    "rewoo": "rewoo_bench.runners.rewoo:ReWOO",
    "react": "rewoo_bench.runners.react:ReAct",
    "react-native": "rewoo_bench.runners.react_native:NativeReAct",
    "rewoo-react": "rewoo_bench.runners.rewoo_react:ReWOOReAct",
    "llmcompiler": "rewoo_bench.runners.llmcompiler:LLMCompiler",
    "plan-execute": "rewoo_bench.runners.plan_execute:PlanExecute",
    "router": "rewoo_bench.runners.router:Router",
    "single-call": "rewoo_bench.runners.single_call:SingleCall",
}
AGENT_RUNNER = "rewoo_bench.agents.runner:AgentRunner"
"""The runner of an architecture.toml with `[agent]`."""
GENERATORS = {"chain": "rewoo_bench.chain.questions:Chain"}
TOOLS = ("Search", "Lookup", "LLM", "Calculator", "Wikipedia")
SCORERS = ("hotpotqa", "triviaqa", "gsm8k", "yes_no", "physics", "musique", "parallelqa")
_FORMER = {
    "rewoo_bench.runners.native:NativeReAct": "react-native",
    "rewoo_bench.runners.hybrid:ReWOOReAct": "rewoo-react",
    "rewoo_bench.runners.single:SingleCall": "single-call",
    "rewoo_bench.loaders.chain:Chain": "chain",
}
_SHORT = {path: name for table in (RUNNERS, GENERATORS) for name, path in table.items()} | _FORMER


def short_name(path: str) -> str:
    """The short name of a bundled class for any of its import paths; any other name unchanged."""
    return _SHORT.get(path, path)


def import_path(name: str, bundled: Mapping[str, str]) -> str:
    """The import path of a bundled class by its short or former name; any other name unchanged."""
    return bundled.get(short_name(name), name)
