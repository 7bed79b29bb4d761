"""Where the values of a plan come from, and which of them a tool that changes state takes (`frozen_arguments`).

A tool that changes state takes values that the plan wrote before any result was seen, and whole results of steps that
the plan named. It refuses a value that a model wrote after it had read a result, and what was found with such a value.

    #E1 = read_file[bill.txt]
    #E2 = LLM[Who is paid? Context: #E1]
    #E3 = send_money[{"recipient": "#E2", "amount": 10}]
    ERROR: recipient comes from #E1 as a model read it in #E2; frozen_arguments keeps it from send_money
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from rewoo_bench.runners.notation.arguments import Arguments
from rewoo_bench.runners.notation.plan import PlanStep, references
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.types import Tool


def _read_frozen(value: Any) -> Any:
    """`yes`, `no`, or names: a "+" of an option has become a space."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise ValueError("expected yes, no, or names of arguments joined by +")
    try:
        return TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return tuple(value.split())


Frozen = Annotated[bool | tuple[str, ...], BeforeValidator(_read_frozen)]
"""Whether arguments are frozen, or the names of those that are."""


@dataclass(eq=False)
class Sources:
    """Which results of a question's steps a model has had a hand in."""

    frozen: bool | tuple[str, ...] = False
    seen: Sequence[str] = ()
    """Steps whose results the planner had before it when it wrote the plan that runs."""
    _read: dict[str, str] = field(default_factory=dict)  # step -> the result that a model read for it, in words

    def refusal(self, step: PlanStep, tool: Tool) -> str:
        """Why the tool doesn't take the step's arguments; empty where it does."""
        if not self.frozen or not getattr(tool, "changes_state", False):
            return ""
        for name, value in by_name(step.args, tool).items():
            if is_frozen(self.frozen, name) and (source := self._source(value)):
                return refused(name, source, tool)
        return ""

    def add(self, step: PlanStep, tool: Tool, *, is_summary: bool) -> None:
        """Notes what the result of a step comes from, once it is there; `is_summary`: a model has shortened it."""
        named = references(step.args)
        source = self._source(step.args)
        if not source and named and getattr(tool, "asks_model", False):
            source = f"#{named[0]} as a model read it in #{step.id}"
        if not source and is_summary:
            source = f"#{step.id} as a model shortened it"
        self._read[step.id] = source

    def _source(self, args: Any) -> str:
        """The result that a model read before there were these arguments; empty where it read none."""
        if self.seen:
            return f"{', '.join(f'#{id_}' for id_ in self.seen)}, which the planner had read"
        return next((self._read[id_] for id_ in references(args) if self._read.get(id_)), "")


def is_frozen(frozen: bool | tuple[str, ...], name: str) -> bool:
    """Whether an argument of this name is."""
    return name in frozen if isinstance(frozen, tuple) else frozen


def refused(name: str, source: str, tool: Tool) -> str:
    """What the error of a refused call says."""
    return f"{name} comes from {source}; frozen_arguments keeps it from {tool.name}"


def by_name(args: Arguments, tool: Tool) -> Mapping[str, Any]:
    """Arguments by the names of inputs."""
    return args if isinstance(args, dict) else {each.name: args for each in inputs(tool.arguments).items[:1]}


class ProgramSources:
    """The same for programs. The sandbox doesn't say where a value comes from.

    So a value is the program's own where it stands in the program's text, and a step's where it is the whole result of
    a call that had such values alone, and of a model only where it saw no result. Any other is taken to be read.
    """

    def __init__(self, frozen: bool | tuple[str, ...]) -> None:
        self.frozen = frozen
        self._own = set[Any]()  # the values of the text
        self._known = set[Any]()  # these, and whole results

    def begin(self, program: str) -> None:
        """Before a program runs."""
        if self.frozen:
            self._own |= literals(program)
            self._known |= self._own

    def refusal(self, args: Arguments, tool: Tool) -> str:
        """Why the tool doesn't take these arguments; empty where it does."""
        if not self.frozen or not getattr(tool, "changes_state", False):
            return ""
        for name, value in by_name(args, tool).items():
            if is_frozen(self.frozen, name) and not _are_all_in(self._known, value):
                return refused(name, "neither the program's text nor a whole result", tool)
        return ""

    def without_read(self, args: Arguments) -> Arguments:
        """The arguments of a refused call, without what a result says."""
        if isinstance(args, str):
            return "…"
        return {name: value if _are_all_in(self._known, value) else "…" for name, value in args.items()}

    def add(self, args: Arguments, tool: Tool, result: str, *, is_summary: bool) -> None:
        """Notes a result, once it is there; `is_summary`: a model has shortened it."""
        values = args if isinstance(args, str) else list(args.values())
        trusted = self._own if getattr(tool, "asks_model", False) else self._known
        if self.frozen and not is_summary and _are_all_in(trusted, values):
            self._known.add(result)


def _are_all_in(known: set[Any], value: Any) -> bool:
    """Whether all values, and keys, of an argument are among those that are known."""
    if isinstance(value, Mapping):
        return all(_are_all_in(known, each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return all(_are_all_in(known, each) for each in value)
    return value is None or value in known


def nodes_of(program: str) -> list[ast.AST]:
    """The nodes of a program's syntax; none of one that can't be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on the model's escapes
        try:
            return list(ast.walk(ast.parse(program)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []


def literals(program: str) -> set[Any]:
    """The texts and numbers that stand in a program."""
    values = {node.value for node in nodes_of(program) if isinstance(node, ast.Constant)}
    return values | {-value for value in values if isinstance(value, int | float)}
