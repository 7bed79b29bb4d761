"""Programs in their sandbox: what they may do, how they call tools, and how they end."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import pytest
from parts import Query, Told, toolbox
from pydantic import BaseModel, Field

from rewoo_bench.calls.meter import Meter
from rewoo_bench.errors import ModelError, ToolError
from rewoo_bench.runners.notation.tools import describe_functions
from rewoo_bench.runners.program_calls import ProgramTools
from rewoo_bench.runners.programs import Outcome, Programs, fenced, program_in
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Step, Tool

pytestmark = pytest.mark.anyio


class Flight(BaseModel):
    city: str
    seats: int = Field(default=1, le=9, description="how many")
    class_: str = Field(default="second", alias="class")


def refuse(query: str) -> str:
    raise ToolError(f"no page called {query}")


class Lab:
    """Runs programs of one question."""

    def __init__(self, *tools: Tool, max_calls: int = 30, slot_tokens: int = 200, timeout_s: float = 5) -> None:
        self.meter = Meter({"": ScriptedModel([])})
        budget = EvidenceBudget("truncate", ScriptedModel([]), Prompts())
        metered = self.meter.wrap(toolbox(*tools))
        self.tools = ProgramTools(metered, budget, slot_tokens=slot_tokens, max_calls=max_calls)
        self.programs = Programs(timeout_s, 32)

    async def run(self, *programs: str) -> Outcome:
        """The outcome of the last one."""
        async with self.programs.session(self.tools) as session:
            for number, program in enumerate(programs, start=1):
                outcome = await session.run(program, f"turn {number}")
        return outcome

    @property
    def places(self) -> list[str]:
        return [call.place.name for call in sorted(self.meter.calls, key=lambda call: call.index)]

    @property
    def levels(self) -> list[int]:
        return [call.place.level for call in sorted(self.meter.calls, key=lambda call: call.index)]


@pytest.mark.parametrize(
    ("program", "output"),
    [
        ('print(await Search("Kyiv"))', "page of Kyiv"),
        ('await Search({"query": "Kyiv"})', "page of Kyiv"),
        ('one, other = await gather(Search("a"), Search("b"))\nprint(one, other, sep="; ")', "page of a; page of b"),
        ('for name in ("a", "b"):\n    print(await Search(name))', "page of a\npage of b"),
        ('async def look(x):\n    return await Search(x)\nprint(await gather(look("a")))', "['page of a']"),
        ('print(Search("await"))\n"""await asyncio"""\nf"await {Search(\'b\')}"', "page of await\nawait page of b"),
        ("print(f\"{await Search('a')}\")", "page of a"),
        ('import asyncio\nprint(len(await asyncio.gather(*[Search(query=x) for x in "ab"])))', "2"),
        ("print(1)\n2", "1\n2"),
        ('import re, json, math\nprint(json.dumps(re.findall("a(.)", "abac")), math.floor(2.5))', '["b", "c"] 2'),
    ],
)
async def test_a_program_calls_tools_and_prints(program: str, output: str) -> None:
    outcome = await Lab().run(program)
    assert (outcome.output, outcome.fault) == (output, "")


async def test_every_call_is_metered_at_its_line_and_is_a_step() -> None:
    lab = Lab()
    program = '# look\npages = []\nfor x in "ab":\n    pages.append(await Search("é" + x))\nawait Search(\n  "c")'
    await lab.run(program)
    assert lab.places == ["line 4", "line 4", "line 5"]
    assert lab.levels == [0, 1, 2]
    assert lab.tools.steps == (
        Step("E1", tool="Search", argument="éa", observation="page of éa"),
        Step("E2", tool="Search", argument="éb", observation="page of éb"),
        Step("E3", tool="Search", argument="c", observation="page of c"),
    )


async def test_variables_and_functions_live_on_and_calls_in_them_say_where_they_are() -> None:
    lab = Lab()
    outcome = await lab.run('x = "a"\nasync def look(y):\n    return await Search(y)', "1 +", "print(await look(x))")
    assert outcome.output == "page of a"
    assert lab.places == ["turn 1 line 3"]


async def test_independent_calls_wait_together_and_an_order_of_ends_changes_no_step() -> None:
    at_once = most = 0

    async def answer(query: str) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.03 / int(query))
        at_once -= 1
        return f"page of {query}"

    lab = Lab(Told(answer))
    outcome = await lab.run("print(await gather(*[Search(str(n)) for n in range(1, 6)]))")
    assert most == 5
    assert outcome.output == str([f"page of {n}" for n in range(1, 6)])
    assert [step.argument for step in lab.tools.steps] == ["1", "2", "3", "4", "5"]


async def test_a_failed_tool_can_be_caught_and_else_ends_the_program() -> None:
    caught = await Lab(Told(refuse)).run(
        'try:\n    await Search("x")\nexcept ToolError as error:\n    print("no:", error)'
    )
    assert (caught.output, caught.fault) == ("no: no page called x", "")
    lab = Lab(Told(refuse))
    ended = await lab.run('print("before")\nawait Search("x")\nprint("after")')
    assert ended.shown == "before\nERROR: no page called x (line 2)"
    assert [step.failed for step in lab.tools.steps] == [True]


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (line 1)"),
        ("foo(1)", "NameError: name 'foo' is not defined; the tools are: Search (line 1)"),
        (
            'await Search("a", "b")',
            "2 arguments are given, and there is 1; Search is called as Search(query: str) (line 1)",
        ),
        ("await Search(5)", None),
    ],
)
async def test_a_fault_says_what_and_where(program: str, fault: str | None) -> None:
    outcome = await Lab().run(program)
    assert outcome.is_readable
    if fault:
        assert outcome.fault == fault
    else:
        assert "Search" in outcome.fault
        assert outcome.fault.endswith("(line 1)")


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("print(", "SyntaxError: unexpected EOF while parsing (line 1)"),
        ("The river is long.", "SyntaxError: "),
        ("x = 1\nclass A(B): pass", "SyntaxError: this Python doesn't know class inheritance and metaclasses (line 2)"),
    ],
)
async def test_what_cant_be_parsed_is_told_from_what_fails(program: str, fault: str) -> None:
    outcome = await Lab().run(program)
    assert not outcome.is_readable
    assert outcome.fault.startswith(fault)


async def test_a_call_that_isnt_awaited_is_said() -> None:
    lab = Lab()
    outcome = await lab.run('x = Search("a")\nprint(await Search("b"))\nSearch("c")')
    assert outcome.shown == "page of b\nERROR: Search was called without `await` and didn't run (line 3)"


async def test_one_call_too_many_ends_the_program() -> None:
    lab = Lab(max_calls=3)
    outcome = await lab.run("for n in range(10_000):\n    print(await Search(str(n)))")
    assert outcome.is_over
    assert outcome.shown == "page of 0\npage of 1\npage of 2\nERROR: it wants more than 3 tool calls (line 2)"
    assert len(lab.meter.calls) == 3


async def test_an_exception_of_the_harness_is_no_fault_of_the_program() -> None:
    def answer(query: str) -> str:
        raise ModelError("the provider is down")

    for program in ('await Search("a")', 'await gather(Search("a"), Search("b"))', 'Search("a")'):
        with pytest.raises(ModelError, match="down"):
            await Lab(Told(answer)).run(program)


async def test_tools_with_several_inputs_are_shown_and_called_with_their_types() -> None:
    flights = Told(name="flights", arguments=Flight)
    assert describe_functions({"flights": flights}) == (
        "async def flights(city: str, seats: int = 1, class_tool: str = 'second') -> str: ...  "
        "# finds a page. (seats: how many; at most 9)"
    )
    lab = Lab(flights)
    await lab.run('await flights("Oslo", 3, class_tool="first")')
    assert lab.tools.steps[0].argument == '{"city": "Oslo", "seats": 3, "class": "first"}'
    refused = await lab.run('await flights("Oslo", seats=12)')
    assert "seats: Input should be less than or equal to 9" in refused.fault
    assert describe_functions({"Search": Told(arguments=Query)}).startswith(
        "async def Search(query: str) -> str: ...  # "
    )


async def test_a_question_that_is_cancelled_leaves_no_worker_behind() -> None:
    lab = Lab(timeout_s=60)
    async with AsyncExitStack() as run:
        await lab.programs.connect(run)
        for program in ("while True: pass", 'await Search("a")\nwhile True: pass'):
            with anyio.move_on_after(0.2) as scope:
                await lab.run(program)
            assert scope.cancelled_caught
        assert (await lab.run("1 + 1")).output == "2"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("Thought: so\n```py\nprint(1)\n```\nOutput: 1\n```python\nprint(2)\n```", "print(1)"),
        ("```\n\nif x:\n    y\n", "if x:\n    y"),
        ("print(1)", None),
        ("So:\r\n```python\r\nif x:\r\n    y\r\n```\r\nDone.", "if x:\n    y"),
        ("````python\nx = 1\n```\ny\n````\nz", "x = 1\n```\ny"),
        ('```python title="a.py"\nprint(1)\n```', "print(1)"),
        ("```python\nx = 1\nprint(x)```\n```python\ny\n```", "x = 1\nprint(x)"),
        ('```python\nprint("```")\nx = 2\n```', 'print("```")\nx = 2'),
    ],
)
async def test_the_first_block_is_the_program(text: str, program: str | None) -> None:
    assert program_in(text) == program
    if program:
        assert program_in(fenced(program)) == program or "\n```" in program
