"""Names on the command line: what is bundled, models without a provider, and options after a name, `chain?hops=3`.

The bundled architectures and data sets are in `rewoo_bench/_bundled/` of a wheel, and next to the package in a clone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

FolderKind = Literal["architectures", "datasets"]
DESCRIPTIONS = {"architectures": "architecture.toml", "datasets": "dataset.toml"}
LOCAL = "local/"
WIRE_NAME = "wire_name"
"""Key of a model's manifest: its name in the requests of external agents."""
REPLAY = "replay/"
RECORDED = "recorded:"
"""Start of the name of all tools of a recording: `recorded:RUN`."""
ORACLE_MODEL = "oracle"
_PACKAGE = Path(__file__).parents[1]
_NAMED = re.compile(r"(?:--)?[\w.-]+=")  # a flag, or the value of a study that `--set` gives
# In a word of a command: after nothing, a quote, `KEY=`, `agent:` or a bracket, and not the slashes of an address.
_ABSOLUTE = re.compile(r"(?<![^\s'\"=:(<@;])/(?:[^\s'\"/]+/)*([^\s'\"/]+)/?")


def is_oracle(model: str) -> bool:
    """Whether a model's name means the oracle, perfect (`oracle`) or not (`oracle?extra_steps=2`)."""
    return model == ORACLE_MODEL or model.startswith(f"{ORACLE_MODEL}?")


ORACLE_ACCURACY = "an oracle is told the answers: its accuracy means nothing"
SOLVED = "solved"
"""The scorer of a run whose score is a world's check."""


def oracle_note(*, checked: bool) -> str:
    """What is to be known of an oracle's score; `checked`: where it is a world's check."""
    solved = "an oracle makes no mistake: what it solved, the architecture can do"
    return solved if checked else ORACLE_ACCURACY


def score_name(*, checked: bool) -> str:
    """What tables call exact match; `checked`: where a world's check is the score."""
    return SOLVED if checked else "EM"


def dataset_heading(name: str, file: str) -> str:
    """A data set for a heading: a file of the user's own by its name, since `questions` alone says nothing."""
    return f"your file {Path(file).name}" if name == Path(file).stem and name not in bundled_names("datasets") else name


def model_label(model: str, planner: str = "", solver: str = "") -> str:
    """A run's model, with another one of the planner or solver behind it: `openai/a (planner openai/b)`."""
    others = [f"{role} {name}" for role, name in (("planner", planner), ("solver", solver)) if name not in ("", model)]
    return f"{model} ({', '.join(others)})" if others else model


def is_deterministic(models: Iterable[str]) -> bool:
    """Whether the same questions give the same counts: every model is the oracle or a replay."""
    return all(is_oracle(model) or model.startswith(REPLAY) for model in models)


def read_options(options: str) -> dict[str, str]:
    """The options after the `?` of a name, `hops=3&width=2`, as a mapping. Raises `ValueError` with the reason."""
    try:
        pairs = parse_qsl(options, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise ValueError(f"{options!r} isn't a list of options, expected name?key=value&key=value") from None
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError(f"an option is given twice in {options!r}")
    return read


# Paths as what others read has them: the names of their files.


def file_names(value: Any) -> Any:
    """The same JSON with the file's name in place of each absolute path."""
    if isinstance(value, dict):
        return {file_name(key): file_names(each) for key, each in value.items()}
    if isinstance(value, list):
        return [file_names(each) for each in value]
    return file_name(value) if isinstance(value, str) else value


def file_name(text: str) -> str:
    """`/home/me/dev.json` as `dev.json`, `local//home/me/a.gguf` as `local/a.gguf`, `--corpus=/a/b` as `--corpus=b`.

    Of a command each word: `agent:MODE=all /usr/bin/python /home/me/agent.py` as `agent:MODE=all python agent.py`. What
    has options behind a question mark stays: it is the name of an architecture, or an address.
    """
    if "," in text:  # of a list of architectures, some may be folders
        return ",".join(map(file_name, text.split(",")))
    if named := _NAMED.match(text):
        return named[0] + file_name(text[named.end() :])
    before = next((prefix for prefix in (LOCAL, RECORDED, REPLAY) if text.startswith(prefix)), "")
    text = text.removeprefix(before)
    path, words = Path(text), text.split(" ")
    if path.is_absolute() and not any(word.startswith(("/", "-")) for word in words[1:]):  # it may have spaces
        return before + path.name
    return before + " ".join(word if "?" in word else _ABSOLUTE.sub(r"\1", word) for word in words)


# Short names of the bundled runners, generators, tools and scorers. Manifests and baselines keep the short name, so a
# class can move without making a run look changed.


RUNNERS = {
    "rewoo": "rewoo_bench.runners.rewoo:ReWOO",
    "react": "rewoo_bench.runners.react:ReAct",
    "react-json": "rewoo_bench.runners.react:JsonReAct",
    "react-native": "rewoo_bench.runners.react_native:NativeReAct",
    "rewoo-react": "rewoo_bench.runners.rewoo_react:ReWOOReAct",
    "llmcompiler": "rewoo_bench.runners.llmcompiler:LLMCompiler",
    "plan-execute": "rewoo_bench.runners.plan_execute:PlanExecute",
    "rewoo-code": "rewoo_bench.runners.rewoo_code:ReWOOCode",
    "react-code": "rewoo_bench.runners.react_code:ReActCode",
    "router": "rewoo_bench.runners.router:Router",
    "single-call": "rewoo_bench.runners.single_call:SingleCall",
}
AGENT_RUNNER = "rewoo_bench.agents.runner:AgentRunner"
"""The runner of an architecture.toml with `[agent]`."""
GENERATORS = {"agentdojo": "rewoo_bench.worlds.dojo:AgentDojo", "chain": "rewoo_bench.loaders.chain:Chain"}
TOOLS = ("Search", "Lookup", "LLM", "Calculator", "Wikipedia")
SCORERS = ("hotpotqa", "triviaqa", "gsm8k", "yes_no", "physics", "musique", "parallelqa")
_SHORT = {path: name for table in (RUNNERS, GENERATORS) for name, path in table.items()}


def short_name(path: str) -> str:
    """The short name of a bundled class for its import path; any other name unchanged."""
    return _SHORT.get(path, path)


def bundled_folder(kind: FolderKind) -> Path:
    """The folder of that kind; it exists in a wheel, a clone and an editable install."""
    installed = _PACKAGE / "_bundled" / kind
    return installed if installed.is_dir() else _PACKAGE.parent / kind


def agents_folder() -> Path:
    """The folder of the bundled agents of other frameworks, one folder each."""
    return bundled_folder("architectures") / "agents"


def bundled_names(kind: FolderKind) -> list[str]:
    """Names of the bundled folders that hold a description, sorted."""
    return sorted(path.parent.name for path in bundled_folder(kind).glob(f"*/{DESCRIPTIONS[kind]}"))
