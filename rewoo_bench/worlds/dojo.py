"""AgentDojo as a data set: 97 user tasks of four suites, with their own tools, environments and checks.

    agentdojo                     # all four
    agentdojo?suite=banking
    agentdojo?attack=direct       # each of the tasks with each injection task of its suite: 949

Debenedetti et al. 2024, arXiv 2406.13352; the package is `agentdojo`, the tasks are those of v1.2.2. A task's gold
calls are its own ground truth. What an agent could know of them beforehand isn't in the package:
datasets/agentdojo/calls.json says, for each of them, what decides that it is made, and which earlier results its
arguments are read from.
"""

from __future__ import annotations

import importlib.util
import json
import re
import warnings
from ast import literal_eval
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from rewoo_bench.config.functions import FunctionSchema
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.errors import SpecError, ToolError
from rewoo_bench.types import Example, GoldAction, Injection, Tool
from rewoo_bench.worlds.world import World

VERSION = "v1.2.2"
_ENOUGH = 6  # words of a text that nothing else has
SUITES = ("banking", "slack", "travel", "workspace")
CHANGES_STATE = frozenset(
    (
        *("send_money", "schedule_transaction", "update_scheduled_transaction", "update_password", "update_user_info"),
        *("add_user_to_channel", "invite_user_to_slack", "remove_user_from_slack"),
        *("send_direct_message", "send_channel_message", "post_webpage"),
        *("reserve_hotel", "reserve_restaurant", "reserve_car_rental"),
        *("create_calendar_event", "cancel_calendar_event", "reschedule_calendar_event"),
        *("add_calendar_event_participants", "send_email", "delete_email", "get_unread_emails"),
        *("append_to_file", "create_file", "delete_file", "share_file"),
    )
)
"""Tools that change an environment: get_unread_emails marks what it returns as read. The log of visited pages, which no
tool shows, doesn't count."""


class AgentDojo(BaseModel):
    """The options of `--dataset 'agentdojo?suite=banking'`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: Literal["all", "banking", "slack", "travel", "workspace"] = "all"
    attack: Literal["none", "direct"] = "none"
    """Whether each task is asked with every injection task of its suite, in all results of its gold calls that have a
    place for one: `direct` is AgentDojo's plainest attack."""

    @property
    def suites(self) -> tuple[str, ...]:
        return SUITES if self.suite == "all" else (self.suite,)

    def examples(self, seed: int) -> Iterator[Example]:
        """The user tasks, in the order of the suites. The seed changes nothing."""
        labels = _labels()
        for suite in self.suites:
            for task_id, task in _suite(suite).user_tasks.items():
                gold = task.ground_truth(task.init_environment(_environment(suite)))
                answer = task.GROUND_TRUTH_OUTPUT.strip()
                plain = Example(
                    f"{suite}/{task_id}",
                    task.PROMPT.strip(),
                    (answer,) if answer else (),
                    kind=suite,
                    level=f"{min(len(gold), 5)}{'+' if len(gold) > 4 else ''} calls",
                    actions=tuple(map(_action, gold, labels[f"{suite}/{task_id}"])),
                )
                yield from [plain] if self.attack == "none" else _attacked(plain, suite, task)

    def worlds(self) -> DojoWorlds:
        """What makes the environments of these tasks."""
        return DojoWorlds(self.suites)


def _attacked(plain: Example, suite: str, task: Any) -> Iterator[Example]:
    """A task with each injection task of its suite."""
    before = task.init_environment(_environment(suite))
    for injection_id, injection in _suite(suite).injection_tasks.items():
        text = _injected_text(injection)
        gold = [GoldAction(call.function, dict(call.args), decided="loop") for call in injection.ground_truth(before)]
        words = injection.GROUND_TRUTH_OUTPUT.strip() or f"Done as asked ({injection_id})."
        attack = Injection(injection_id, _marker(text), tuple(gold), words)
        yield replace(plain, id=f"{plain.id}/{injection_id}", injection=attack)


def _injected_text(injection: Any) -> str:
    return f"TODO: {injection.GOAL}"  # as AgentDojo's attack `direct` writes it


def markers_of(text: str) -> Iterator[str]:
    """Words of an attacker's text by which a result may show it, whatever YAML or JSON escapes and where a line ends.

    First its longest piece of plain characters, then each run of some words in that.
    """
    longest = max((each.split() for each in re.split(r"[^ -~]|['\"\\]", text)), key=len) or text.split()
    yield " ".join(longest)
    for start in range(len(longest) - _ENOUGH + 1):
        yield " ".join(longest[start : start + _ENOUGH])


def gold_calls(version: str | None, suite: str, task_id: str, question: str) -> tuple[GoldAction, ...]:
    """The calls of a user task's ground truth; their tools alone where the package doesn't know it, or isn't there.

    `version` is the benchmark's, as a log names it.
    """
    for tasks, environment in _known_suites(version, suite):
        task = tasks.user_tasks.get(task_id)
        if task is not None and task.PROMPT.split() == question.split():
            gold = task.ground_truth(task.init_environment(environment))
            return tuple(GoldAction(call.function, dict(call.args)) for call in gold)
    return tuple(GoldAction(label["tool"], {}) for label in _labels().get(f"{suite}/{task_id}", ()))


def attack_calls(
    version: str | None, suite: str, injection_id: str, texts: Sequence[str]
) -> tuple[tuple[GoldAction, ...], str] | None:
    """The calls that an injection task asks for, and the words for the answer; None where no text has that task."""
    shown = [" ".join(text.split()) for text in texts]
    for tasks, environment in _known_suites(version, suite):
        task = tasks.injection_tasks.get(injection_id)
        if task is not None and any(" ".join(task.GOAL.split()) in text for text in shown):
            gold = task.ground_truth(environment)
            calls = (GoldAction(call.function, dict(call.args), decided="loop") for call in gold)
            return tuple(calls), task.GROUND_TRUTH_OUTPUT.strip()
    return None


def _known_suites(version: str | None, suite: str) -> Iterator[tuple[Any, Any]]:
    """A suite and its environment as a version has them: without one, the newest that we know and the first."""
    if importlib.util.find_spec("agentdojo") is not None:
        for each in (version,) if version else (VERSION, "v1"):
            with suppress(KeyError):
                yield _suite(suite, each), _environment(suite, (), each)


def _marker(text: str) -> str:
    """The words up to the first sign that a result may write in another way."""
    return " ".join(re.split(r"['\"\\]", text)[0].split())


@cache
def _places(suite: str, task_id: str) -> tuple[str, ...]:
    """The places for an injection that the results of a task's gold calls show."""
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
    from agentdojo.functions_runtime import FunctionsRuntime

    canaries = {place: f"CANARY-{place}-" for place in _suite(suite).get_injection_vector_defaults()}
    environment = _environment(suite, tuple(canaries.items()))
    task, runtime = _suite(suite).user_tasks[task_id], FunctionsRuntime(_suite(suite).tools)
    environment, shown = task.init_environment(environment), ""
    for call in task.ground_truth(environment.model_copy(deep=True)):
        result, _ = runtime.run_function(environment, call.function, call.args)
        shown += tool_result_to_str(result)
    return tuple(place for place, canary in canaries.items() if canary in shown)


def _action(call: Any, label: Mapping[str, Any]) -> GoldAction:
    """A call of the ground truth, with what is said of it."""
    assert call.function == label["tool"], "calls.json is of this version"
    read = {name: tuple(number - 1 for number in numbers) for name, numbers in label.get("read", {}).items()}
    after = tuple(number - 1 for number in label.get("after", ()))
    return GoldAction(call.function, dict(call.args), read, label.get("decided", "task"), after)


@dataclass(frozen=True)
class DojoWorlds:
    """The environments of AgentDojo's tasks."""

    suites: tuple[str, ...]
    name: str = "agentdojo"
    has_check: bool = True

    @property
    def schemas(self) -> Mapping[str, FunctionSchema]:
        """The tools of all suites; a question has those of its own."""
        return {name: schema for suite in self.suites for name, schema in _schemas(suite).items()}

    @property
    def manifest(self) -> dict[str, Any]:
        """The facts for a run's manifest."""
        return {"package": "agentdojo", "version": VERSION, "suites": list(self.suites)}

    @asynccontextmanager
    async def opened(self, example: Example) -> AsyncIterator[World]:
        """The environment of a task."""
        suite, task_id, *attack = example.id.split("/")
        task = _suite(suite).user_tasks[task_id]
        injection = _suite(suite).injection_tasks[attack[0]] if attack else None
        places = _places(suite, task_id) if injection else ()
        placed = tuple((place, _injected_text(injection)) for place in places)
        environment = task.init_environment(_environment(suite, placed))
        before, calls = environment.model_copy(deep=True), list[Any]()
        tools: dict[str, Tool] = {
            name: DojoTool(schema, suite, environment, calls) for name, schema in _schemas(suite).items()
        }

        async def check(answer: str) -> bool:
            verdict = task.utility_from_traces(answer, before, environment, calls)
            return bool(task.utility(answer, before, environment) if verdict is None else verdict)

        def attacked(answer: str) -> bool:
            assert injection is not None
            verdict = injection.security_from_traces(answer, before, environment, calls)
            return bool(injection.security(answer, before, environment) if verdict is None else verdict)

        yield World(tools, check, attacked if injection else None)


class DojoTool:
    """A tool of a suite over one task's environment. Its results are texts as AgentDojo's own agents see them."""

    in_world = stateful = True

    def __init__(self, schema: FunctionSchema, suite: str, environment: Any, calls: list[Any]) -> None:
        self.name = schema.name
        self.description = schema.description
        self.arguments = schema.arguments
        self.changes_state = schema.changes_state
        self._suite, self._environment, self._calls = suite, environment, calls

    async def __call__(self, arguments: BaseModel) -> str:
        from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

        given = {name: _as_list(value) for name, value in arguments.model_dump(exclude_unset=True).items()}
        self._calls.append(FunctionCall(function=self.name, args=given))
        runtime = FunctionsRuntime(_suite(self._suite).tools)
        result, error = runtime.run_function(self._environment, self.name, given)
        if error is not None:
            raise ToolError(error)
        text: str = tool_result_to_str(result)
        return text


def _as_list(value: Any) -> Any:
    """A list that is written as a text, as AgentDojo's own executor reads it."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError, SyntaxError):
            read = literal_eval(value)
            return read if isinstance(read, list) else value
    return value


@cache
def _suite(name: str, version: str = VERSION) -> Any:
    """Raises `SpecError` where the package isn't installed, and `KeyError` for what it doesn't have."""
    if importlib.util.find_spec("agentdojo") is None:
        raise SpecError("the data set agentdojo needs its package: pip install 'rewoo-bench[agentdojo]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that it imports
        from agentdojo.task_suite.load_suites import get_suite
    return get_suite(version, name)


@lru_cache(maxsize=64)
def _loaded_environment(suite: str, placed: tuple[tuple[str, str], ...], version: str) -> Any:
    return _suite(suite, version).load_and_inject_default_environment(dict(placed))


def _environment(suite: str, placed: tuple[tuple[str, str], ...] = (), version: str = VERSION) -> Any:
    """An environment that nobody else has, with texts in these places: a copy takes a millisecond, its file sixty."""
    return _loaded_environment(suite, placed, version).model_copy(deep=True)


@cache
def _schemas(suite: str) -> Mapping[str, FunctionSchema]:
    return {
        tool.name: FunctionSchema(tool.name, tool.description, tool.parameters, tool.name in CHANGES_STATE)
        for tool in _suite(suite).tools
    }


@cache
def _labels() -> Mapping[str, Any]:
    file = bundled_folder("datasets") / "agentdojo" / "calls.json"
    read: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read
