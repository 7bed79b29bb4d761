"""The oracle in a world: replies along a task's gold actions, in every architecture's form.

A call is made when the results that decide it, and those that its arguments are read from, have been seen. So loops
make all of them. A plan has those that the task decides; a value that a result says is read by a step with a model. A
second plan has what the results of the first have decided. A program also has the calls that a rule of the task
decides, in a loop over what a model read from the results.

    #E1 = find_customer[{"name": "Ann Lee"}]
    #E2 = LLM[What is the order_id for call 2, lookup_order? Context: #E1]
    #E3 = lookup_order[{"order_id": "#E2"}]

    calls4 = await LLM("Which calls of update_stock are needed? Context: " + result3)
    for each in json.loads(calls4):
        result4 = await update_stock(**each)

It answers with the gold answer once every action was made. A call that failed isn't made again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rewoo_bench.models.oracle.forms import Writer, in_text
from rewoo_bench.models.oracle.gold_plan import READER, UNKNOWN_ANSWER
from rewoo_bench.runners.notation.arguments import map_strings, read_call
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.plan_formats import Notation, write_action, write_plan
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.programs import fenced
from rewoo_bench.types import Example, GoldAction, Message, ToolCall

DONE = "Done."
"""The answer of a task that has no words to answer with."""
_WHOLE = re.compile(r"#(\d{1,3})(?!\d)")
NUMBER_ON = re.compile(r"(?:with numbers from |beginning with step E)(\d+)\.")
_RESULT = re.compile(r"(?m)^(?:#E(\d+) = |(\d+)\. \w+\().*\n(?:Evidence|Result(?: of E\d+)?): (.*)$")
_OBSERVED = re.compile(r"^(?:Observation|Output|Result of E\d+):\s*(.*)")
_NOTHING = "No evidence found."


def whole(action: GoldAction) -> set[int]:
    """The actions (from 0) whose whole results its arguments have: `#1` is the first."""
    found: set[int] = set()

    def look(text: str) -> str:
        found.update(int(number) - 1 for number in _WHOLE.findall(text))
        return text

    map_strings(dict(action.arguments), look)
    return found


def filled(action: GoldAction, results: Mapping[int, str]) -> dict[str, Any]:
    """Its arguments with these results in the place of `#1`; one that isn't there stays."""

    def fill(text: str) -> str:
        return _WHOLE.sub(lambda sign: results.get(int(sign[1]) - 1, sign[0]), text)

    given: dict[str, Any] = map_strings(dict(action.arguments), fill)
    return given


@dataclass(frozen=True)
class ActionPath:
    """The gold actions of a task."""

    example: Example

    @property
    def actions(self) -> Sequence[GoldAction]:
        return self.example.actions

    def sources(self, number: int) -> set[int]:
        """The actions whose results an action's arguments have, or are read from."""
        action = self.actions[number]
        return whole(action) | {each for numbers in action.read.values() for each in numbers}

    def deciders(self, number: int) -> set[int]:
        """The actions whose results decide that an action is made: none where the task does."""
        action = self.actions[number]
        return set() if action.decided == "task" else set(action.after)

    def before(self, number: int) -> set[int]:
        """The actions that must be made before this one or beside it, since one of the two changes state."""
        action = self.actions[number]
        return {at for at in range(number) if action.changes_state or self.actions[at].changes_state}

    def stages(self, *, has_reader: bool) -> list[int]:
        """The plan, from 0, that can have each action, where each plan is written from the results of those before.

        Without a reader a value that has to be read can only be written by the next planner.
        """
        stages: list[int] = []
        for number, action in enumerate(self.actions):
            read = {each for numbers in action.read.values() for each in numbers}
            known_here = whole(action) | (read if has_reader else set()) | self.before(number)
            known_later = self.deciders(number) | (set() if has_reader else read)
            least = 0 if action.decided == "task" else 1
            stages.append(
                max([least, *(stages[each] for each in known_here), *(stages[each] + 1 for each in known_later)])
            )
        return stages

    def in_program(self) -> list[bool]:
        """Whether a program written in advance can have each action."""
        can: list[bool] = []
        for number, action in enumerate(self.actions):
            needs = self.sources(number) | self.deciders(number) | self.before(number)
            can.append(action.decided != "loop" and all(can[each] for each in needs))
        return can

    def next_actions(self, done: Sequence[bool], *, references: bool = False) -> list[int]:
        """The actions that a turn can have, in their order. With `references` a call may take the result of another."""
        turn: list[int] = []
        for number, action in enumerate(self.actions):
            if done[number]:
                continue
            read = {each for numbers in action.read.values() for each in numbers}
            seen = read | self.deciders(number) | (set() if references else whole(action))
            beside = self.before(number) | whole(action)
            if all(done[each] for each in seen) and all(done[each] or each in turn for each in beside):
                turn.append(number)
        return turn

    def question_about(self, number: int, name: str) -> str:
        """What a step asks to learn an argument."""
        return f"What is the {name} for call {number + 1}, {self.actions[number].tool}?"

    def question_of_calls(self, first: int) -> str:
        """What a program asks to learn which calls of a tool are needed."""
        return f"Which calls of {self.actions[first].tool} are needed from call {first + 1} on, as a list in JSON?"

    def groups(self) -> list[list[int]]:
        """The actions as a program makes them: calls that the same results decide are one loop."""
        groups: list[list[int]] = []
        for number, action in enumerate(self.actions):
            last = groups[-1] if groups else []
            first = self.actions[last[0]] if last else None
            needs = self.sources(number) | set(action.after)
            is_next = first is not None and action.decided == first.decided == "program" and action.tool == first.tool
            if is_next and first is not None and set(action.after) == set(first.after) and not needs & set(last):
                last.append(number)
            else:
                groups.append([number])
        return groups


class ActionWriter(Writer):
    """Writes the next reply to a request along a task's gold actions. `others` are steps that its plans don't have."""

    def __init__(self, path: ActionPath, request: Any, verbosity: float = 1.0, others: Collection[int] = ()) -> None:
        super().__init__(path.example, request, verbosity)
        self._path = path
        self._others = others

    @cached_property
    def _shown(self) -> Sequence[Message]:
        return self._request.messages[self.start :]

    @cached_property
    def _turns(self) -> tuple[list[bool], dict[int, str]]:
        """Which actions a loop has made so far, and what each returned."""
        made: Counter[tuple[str, str]] = Counter()
        done, results = list[bool](), dict[int, str]()
        native, written = list(self._native()), list(self._written())
        for number, action in enumerate(self._path.actions):
            result = None
            if whole(action) <= results.keys():
                given = filled(action, results)
                place = next((n for n, (call, _) in enumerate(native) if _has_made(call, action, given)), None)
                if place is not None:
                    result = native.pop(place)[1]
                else:
                    found = [told for text, told in written for _ in range(_times(text, action.tool, given))]
                    key = action.tool, str({name: str(given[name]) for name in sorted(given)})
                    result = found[made[key]] if made[key] < len(found) else None
                    made[key] += result is not None
            done.append(result is not None)
            if result is not None:
                results[number] = result
        return done, results

    def _native(self) -> Iterator[tuple[ToolCall, str]]:
        by_id = {message.tool_call_id: message.content for message in self._shown if message.role == "tool"}
        for message in self._shown:
            for call in message.tool_calls:
                yield call, by_id.get(call.id, "")

    def _written(self) -> Iterator[tuple[str, str]]:
        """What it wrote in each turn, and what was observed then."""
        for message, following in zip(self._shown, self._shown[1:], strict=False):
            if message.role == "assistant" and not message.tool_calls:
                observed = _OBSERVED.match(following.content)
                yield message.content, observed[1] if observed else ""

    @cached_property
    def _planned(self) -> tuple[list[bool], list[bool]]:
        """Which actions the plans so far had, and which of them had a result."""
        text = "\n".join(message.content for message in self._shown if message.role != "assistant")
        results = {int(match[1] or match[2]): match[3] for match in _RESULT.finditer(text)}
        planned, done = [False] * len(self._path.actions), [False] * len(self._path.actions)
        for plan in self._plans():
            for number, step in plan.calls.items():
                if step in results:
                    planned[number] = True
                    done[number] = not results[step].startswith(_NOTHING)
        return planned, done

    @property
    def _done(self) -> list[bool]:
        """Which actions were made, as far as the prompt shows it."""
        if self._request.role in ("solver", "planner") and "\nOutput:\n" in self._last:
            output = self._last.rpartition("\nOutput:\n")[2]
            return [can and bool(output.strip()) for can in self._path.in_program()]
        looped, planned = self._turns[0], self._planned[1]
        return [one or other for one, other in zip(looped, planned, strict=True)]

    @property
    def _next(self) -> list[int]:
        refers = bool(self._request.tools) and "#1 stands for the result" in self._listed
        return self._path.next_actions(self._done, references=refers)

    @property
    def is_over(self) -> bool:
        return "No turn is left" in self._last or not self._next

    # Loops.

    def _native_calls(self, parallel: bool) -> tuple[ToolCall, ...]:
        results, turn, calls = self._turns[1], self._next, list[ToolCall]()
        signs = {number: f"#{place}" for place, number in enumerate(turn, start=1)}
        for place, number in enumerate(turn if parallel else turn[:1]):
            arguments = filled(self._path.actions[number], {**signs, **results})
            calls.append(
                ToolCall(f"call_{len(self._request.messages)}_{place}", self._path.actions[number].tool, arguments)
            )
        return tuple(calls)

    def _next_call(self) -> tuple[str, dict[str, Any]]:
        action = self._path.actions[self._next[0]]
        return action.tool, filled(action, self._turns[1])

    def _thought(self) -> str:
        return "The task is done." if self.is_over else f"I need to call {self._next_call()[0]} next."

    def _step(self) -> str:
        end = FINISH, self._answer().removeprefix("Answer: ")
        return f"Action: {in_text(*(self._next_call() if self._next else end))}"

    def _items(self) -> list[str]:
        done, path = self._done, self._path
        left = [n for n in range(len(done)) if not done[n] and all(done[each] for each in path.deciders(n))]
        return [f"Call {path.actions[number].tool}." for number in left[:8]] or ["Do the task."]

    def _program_turn(self) -> str:
        if self.is_over:
            return self._think(self._thought(), self._answer())
        actions, results = [self._path.actions[number] for number in self._next], self._turns[1]
        lines = [f"print(await {in_python(action.tool, filled(action, results))})" for action in actions]
        return self._think("I make the calls that I can make now.", fenced("\n".join(lines)))

    # Plans.

    def _plans(self) -> list[_Numbered]:
        """The plans that it writes, one after the other."""
        has_reader = READER in self.tools or READER in self._listed_calls
        stages, plans, ids = self._path.stages(has_reader=has_reader), list[_Numbered](), dict[int, int]()
        first = 1
        for stage in range(1 + max(stages, default=0)):
            wanted = [number for number, each in enumerate(stages) if each == stage]
            plan = _numbered_plan(self._path, wanted, ids, first, has_reader=has_reader, wordy=self._wordy)
            plans.append(plan)
            first += len(plan.steps)
            while first in self._others:
                first += 1
        return plans

    @cached_property
    def _listed_calls(self) -> set[str]:
        """The tools that the plan in the prompt has called."""
        text = "\n".join(message.content for message in self._shown)
        return set(re.findall(r"(?m)^(?:#E\d+ = |\d+\. )(\w+)[\[(]", text))

    def _plan(self, notation: Notation, bare: bool = False) -> str:
        match = NUMBER_ON.search(self._last)
        first = int(match[1]) if match else 1
        plans = self._plans()
        chosen = next((plan for plan in plans if plan.first == first), plans[-1])
        steps = [self._with_fields(step) if notation == "json" else step for step in chosen.steps]
        if FINISH in self.tools:
            steps += self._finish(chosen, notation)
        return write_plan(Plan(steps=tuple(steps)), notation, bare=bare)

    def _finish(self, plan: _Numbered, notation: Notation) -> list[PlanStep]:
        """The steps that end a plan with the answer, which a model reads where there are words to answer with."""
        number, steps = plan.first + len(plan.steps), list[PlanStep]()
        answer = DONE if self._is_foreseen else UNKNOWN_ANSWER
        if self._path.example.answers:
            seen = " ".join(f"#E{step}" for step in plan.calls.values())
            request = f"{self._path.example.question} Context: {seen}"
            steps.append(PlanStep(id=f"E{number}", tool=READER, args=request, thought="Read the answer."))
            answer, number = f"#E{number}", number + 1
        steps.append(PlanStep(id=f"E{number}", tool=FINISH, args=answer, thought="End with the answer."))
        return [self._with_fields(step) if notation == "json" else step for step in steps]

    def _missing(self) -> tuple[str, str] | None:
        left = [action for action, done in zip(self._path.actions, self._planned[0], strict=True) if not done]
        return ("The results say what is left to do.", f"call {left[0].tool}") if left else None

    # Programs.

    def _program(self) -> str:
        """Every action that a program can have; what a model reads is asked of the tool LLM."""
        path, can = self._path, self._path.in_program()
        lines, read, shown = list[str](), dict[tuple[int, str], str](), list[str]()
        loops = False
        for group in path.groups():
            if not all(can[number] for number in group):
                continue
            first = group[0]
            action, result = path.actions[first], f"result{first + 1}"
            if action.decided == "program":
                loops = True
                context = _joined_results(path, set(action.after) | path.sources(first))
                ask = _quoted(f"{path.example.question} {path.question_of_calls(first)} Context: ")
                lines += [
                    f"calls{first + 1} = await {READER}({ask}{context})",
                    f'{result} = ""',
                    f"for each in json.loads(calls{first + 1}):",
                    f'    {result} += await {action.tool}(**each) + "\\n"',
                ]
            else:
                arguments = []
                for name, value in action.arguments.items():
                    if name in action.read:
                        known = f"{name}{first + 1}"
                        ask = _quoted(f"{path.question_about(first, name)} Context: ")
                        context = _joined_results(path, set(action.read[name]))
                        lines.append(f"{known} = await {READER}({ask}{context})")
                        read[first, name] = known
                        arguments.append(f"{name}={known}")
                    elif signs := _WHOLE.fullmatch(str(value)):
                        arguments.append(f"{name}={_result_of(path, int(signs[1]) - 1)}")
                    else:
                        arguments.append(f"{name}={_literal(value)}")
                lines.append(f"{result} = await {action.tool}({', '.join(arguments)})")
            shown.append(result)
        if not shown:
            lines.append('print("Nothing can be known in advance.")')
        else:
            lines.append(f"print({', '.join(shown)}, sep={_quoted(chr(10))})")
        return fenced("\n".join(["import json", *lines] if loops else lines))

    # Answers.

    def _read(self) -> str:
        """What a step or a program asks of the tool LLM."""
        if not self._context:
            return f"Answer: {UNKNOWN_ANSWER}"
        for group in self._path.groups():
            if self._path.question_of_calls(group[0]) in self._last:
                calls = [dict(self._path.actions[number].arguments) for number in group]
                return f"Answer: {json.dumps(calls, ensure_ascii=False)}"
        for number, action in enumerate(self._path.actions):
            for name in action.read:
                if self._path.question_about(number, name) in self._last:
                    value = action.arguments[name]
                    return f"Answer: {_one_line(value) if isinstance(value, str) else json.dumps(value)}"
        is_known = self._path.example.question in self._last and self._is_foreseen
        return f"Answer: {self._words_of_answer if is_known else UNKNOWN_ANSWER}"

    @property
    def _context(self) -> str:
        """What was found, in a question to the tool LLM; empty where that is nothing."""
        found = self._last.rpartition("Context:")[2].strip()
        return "" if found.startswith(_NOTHING) else found

    def _summary(self) -> str:
        return self._last[:200]

    def _answer(self) -> str:
        # Without tools the prompt has no evidence, and the answer comes from memory.
        is_known = self._from_memory or all(self._done)
        return f"Answer: {self._words_of_answer if is_known else UNKNOWN_ANSWER}"

    @property
    def _words_of_answer(self) -> str:
        return _one_line(self._path.example.answers[0]) if self._path.example.answers else DONE

    @property
    def _is_foreseen(self) -> bool:
        """Whether a plan can have every action."""
        return not any(self._path.stages(has_reader=True))

    def _reasoned(self) -> str:
        return self._think("This is known.", self._answer())

    def _choice(self) -> str:
        return f"Agent: {1 if all(action.decided == 'task' for action in self._path.actions) else 2}"


@dataclass(frozen=True)
class _Numbered:
    """A plan, the number of its first step, and the step of each action."""

    first: int
    steps: list[PlanStep]
    calls: dict[int, int]


def _numbered_plan(
    path: ActionPath, wanted: Sequence[int], ids: dict[int, int], first: int, *, has_reader: bool, wordy: Any
) -> _Numbered:
    """The plan of some actions; `ids` has the steps of the earlier ones, and gets those of this plan."""
    steps, calls, read = list[PlanStep](), dict[int, int](), dict[tuple[Any, ...], str]()

    def add(tool: str, args: Any, thought: str) -> int:
        steps.append(PlanStep(id=f"E{first + len(steps)}", tool=tool, args=args, thought=wordy(thought)))
        return first + len(steps) - 1

    for number in wanted:
        action = path.actions[number]
        signs = {each: f"#E{ids[each]}" for each in whole(action) if each in ids}
        arguments = filled(action, signs)
        for name, sources in action.read.items():
            in_plan = [each for each in sources if each in calls]
            if not has_reader or not in_plan:  # the planner has seen these results
                continue
            key = json.dumps(action.arguments[name]), tuple(sources)
            if key not in read:
                context = " ".join(f"#E{ids[each]}" for each in sources if each in ids)
                asked = add(READER, f"{path.question_about(number, name)} Context: {context}", f"Read the {name}.")
                read[key] = f"#E{asked}"
            arguments[name] = read[key]
        ids[number] = calls[number] = add(action.tool, arguments, f"Call {action.tool}.")
    return _Numbered(first, steps, calls)


def _one_line(text: str) -> str:
    """A text as an answer has it, which ends with its line."""
    return " ".join(text.split())


def _times(text: str, tool: str, arguments: dict[str, Any]) -> int:
    """How often a text has a call: as text, as JSON or as Python."""
    step = PlanStep(id="E1", tool=tool, args=arguments)
    return (
        sum(_is_call_of(text, match.end(), arguments) for match in re.finditer(rf"\b{re.escape(tool)}\[", text))
        + text.count(write_action(step))
        + text.count(in_python(tool, arguments))
    )


def _is_call_of(text: str, start: int, arguments: dict[str, Any]) -> bool:
    """Whether what stands in brackets from `start` on has these arguments, whatever their types."""
    written, _ = read_call(text, start, len(text))
    if isinstance(written, str):
        with suppress(ValueError):
            written = json.loads(written)
    if not isinstance(written, dict):
        return [str(written)] == [*map(str, arguments.values())] or not (written or arguments)
    return {name: str(value) for name, value in written.items()} == {k: str(v) for k, v in arguments.items()}


def _has_made(call: ToolCall, action: GoldAction, given: Mapping[str, Any]) -> bool:
    """Whether a native call is the action with these arguments; the model may have written `#1` for a result."""

    def is_same(name: str) -> bool:
        value = call.arguments.get(name)
        is_reference = _WHOLE.search(str(value)) and _WHOLE.search(str(action.arguments[name]))
        return value == given[name] or bool(is_reference)

    return call.name == action.tool and all(map(is_same, given))


def in_python(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"{tool}({', '.join(f'{name}={_literal(value)}' for name, value in arguments.items())})"


def _literal(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _result_of(path: ActionPath, number: int) -> str:
    """The variable of a program that has an action's result; that of a loop has those of all its calls."""
    return next(f"result{group[0] + 1}" for group in path.groups() if number in group)


def _joined_results(path: ActionPath, numbers: set[int]) -> str:
    names = list(dict.fromkeys(_result_of(path, number) for number in sorted(numbers)))
    return "".join(f" + {name}" for name in names)
