"""Programs that models write, run in a sandbox (pydantic-monty): no files, no network, no packages.

    async with programs.session(ProgramTools(tools, …)) as session:
        outcome = await session.run('print(await Search("Kyiv"))')
    outcome.output    "Kyiv: Kyiv is a city on the Dnieper …"
    session.steps     (Step("E1", tool="Search", argument="Kyiv", …),)

A program runs in a worker process, and is suspended there while it waits for a tool: its calls are made here, metered
and recorded as any other. The clock stands still, `random` has a seed and `sleep` takes no time, so a resumed run
executes the program again, and the journal answers the calls that were made before.

A worker takes 4 ms to start and 1 MB of memory. So each question has one of its own for as long as it needs it, also
while it waits.
"""

from __future__ import annotations

import ast
import atexit
import importlib.util
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio

from rewoo_bench.errors import SpecError
from rewoo_bench.runners.notation.replies import names_answer
from rewoo_bench.runners.program_calls import LONGEST_FAULT, ProgramTools, ToolUse, TooManyCalls
from rewoo_bench.runners.sources import nodes_of
from rewoo_bench.system.concurrency import TaskStarter, background_tasks
from rewoo_bench.text.model_output import check_text, excerpt

if TYPE_CHECKING:
    from pydantic_monty import (
        AsyncFunctionSnapshot,
        AsyncMonty,
        AsyncMontySession,
        AsyncSnapshot,
        CollectString,
        ExternalSettledResult,
        MontyError,
    )

LONGEST_PROGRAM = 100_000  # characters
_MOST_PRINTED = 100_000  # bytes of one program
_LONGEST_VALUE = 100_000  # characters of the last expression's value
_MOST_WORKERS = 512
_SESSIONS_OF_WORKER = 100  # after which it is replaced: a program's memory may stay with it
_GRACE_S = 10.0  # until a worker that doesn't keep its limits is ended from outside
_RECURSION = 200  # calls deep
_PRELUDE = "import asyncio\nfrom asyncio import gather\nToolError = RuntimeError"
_NOT_SUPPORTED = "NotImplementedError: The monty syntax parser does not yet support "
_NOT_AWAITED = re.compile(r"<(?:coroutine external_future|gather)\(\d+\)>")  # calls, as the sandbox shows them
_THOUGHT = re.compile(r"^\W*Thought(?:\s*\d+)?[\s*]*:")
_BLOCK = re.compile(
    r"^[ \t]*+(`{3,8}+|~{3,8}+)[ \t]*+(?:\w*+[ \t]*+|(?i:py(?:thon)?3?)[ \t,;:{][^\n`]*+)\n"
    r"(.*?)(?:^[ \t]*+\1|\1[ \t]*+$|\Z)",
    re.MULTILINE | re.DOTALL,
)


def program_in(text: str) -> str | None:
    """The program in a reply, which is its first fenced block; None where it has none."""
    match = _BLOCK.search(text.replace("\r\n", "\n"))
    return match[2].strip("\n") if match else None


def read_turn(text: str) -> tuple[str, str | None]:
    """The thought and the program of a turn; without the program where an answer comes before it, or it has none.

    >>> read_turn("Thought: Look it up.\\n```python\\nprint(1)\\n```\\nOutput: 1")
    ('Look it up.', 'print(1)')
    """
    text = text.replace("\r\n", "\n")
    match = _BLOCK.search(text)
    before = text[: match.start()] if match else text
    thought = " ".join(_THOUGHT.sub("", before, count=1).split()).strip("* ")
    return thought, None if match is None or names_answer(before) else match[2].strip("\n")


def fenced(program: str) -> str:
    """A program as a fenced block."""
    return f"```python\n{program}\n```"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program."""

    output: str
    """What it printed, and the value of its last expression."""
    value: str = ""
    """The value of its last expression."""
    fault: str = ""
    """Why it ended early: `ZeroDivisionError: division by zero (line 3)`; or which call it forgot to wait for."""
    is_readable: bool = True
    """Whether it could be parsed; nothing has run of one that couldn't."""
    is_over: bool = False
    """Whether it wanted more tool calls than are allowed."""

    @property
    def shown(self) -> str:
        """Output and fault, as a model sees them."""
        return "\n".join(filter(None, (self.output, self.fault and f"ERROR: {self.fault}")))


class Programs:
    """The worker processes of a runner, each started by the first program that needs one.

    `timeout_s` are the seconds that a program may compute; it may wait for tools as long as they take. Raises
    `SpecError` where the sandbox isn't installed.
    """

    def __init__(self, timeout_s: float, memory_mb: int) -> None:
        if importlib.util.find_spec("pydantic_monty") is None:
            raise SpecError("programs run in pydantic-monty, which isn't installed: pip install 'rewoo-bench[code]'")
        self.timeout_s = timeout_s
        self.memory_mb = memory_mb
        self._pool: AsyncMonty | None = None

    async def connect(self, stack: AsyncExitStack) -> None:
        """The workers of all questions are the same, and end with `stack`; else each question has its own."""
        self._pool = await self._open(stack)
        stack.callback(setattr, self, "_pool", None)

    @asynccontextmanager
    async def session(self, tools: ProgramTools) -> AsyncIterator[ProgramSession]:
        """A session of one question, in which variables live on from program to program."""
        async with AsyncExitStack() as own:
            session = ProgramSession(self, self._pool or await self._open(own), tools)
            try:
                yield session
            finally:
                with anyio.CancelScope(shield=True):
                    await session.aclose()

    async def _open(self, stack: AsyncExitStack) -> AsyncMonty:
        from pydantic_monty import AsyncMonty  # an extra, and 20 ms

        atexit.unregister(_let_threads_end)
        atexit.register(_let_threads_end)
        pool = AsyncMonty(
            min_processes=0,
            max_processes=_MOST_WORKERS,
            request_timeout=self.timeout_s + _GRACE_S,
            max_checkouts_per_worker=_SESSIONS_OF_WORKER,
        )
        return await stack.enter_async_context(pool)


def _let_threads_end() -> None:
    """Waits at the interpreter's end until the sandbox's own threads have let go of it.

    Nothing can join them (PyO3/pyo3-async-runtimes, issue 40). One that still gives back a Python object while the
    interpreter ends aborts the process, whose work is done by then: 5 in 100 short processes.
    """
    time.sleep(0.1)


class ProgramSession:
    """The programs of one question, one after the other."""

    def __init__(self, programs: Programs, pool: AsyncMonty, tools: ProgramTools) -> None:
        self.tools = tools
        self._programs = programs
        self._pool = pool
        self._session: AsyncMontySession | None = None
        self._sources: dict[str, tuple[str, bytes]] = {}  # of each program, by the name that the sandbox gives it
        self._raised = set[str]()  # messages of tools' errors

    async def run(self, program: str, name: str = "") -> Outcome:
        """Runs a program to its end, or to its fault. Only exceptions that aren't the program's own are raised.

        The places of its calls are `line 3`; of those in a function of an earlier program, `turn 1 line 3` with its
        `name` in front. A program without `await` gets the results of tools at once.
        """
        from pydantic_monty import CollectString, MontyCrashedError, MontyError, MontySyntaxError

        program = check_text(program)
        if not program.strip():
            return Outcome("", fault="it is empty", is_readable=False)
        if len(program) > LONGEST_PROGRAM:
            return Outcome("", fault=f"it has more than {LONGEST_PROGRAM:,} characters", is_readable=False)
        printed = CollectString(max_bytes=_MOST_PRINTED)
        value, fault, is_readable, is_over = "", "", True, False
        try:
            value, fault = await self._execute(program, name, printed)
        except TooManyCalls as error:
            fault, is_over = str(error), True
            await self.aclose()
        except MontyError as error:
            said = str(error)
            fault = self._explain(error)
            is_readable = not (isinstance(error, MontySyntaxError) or said.startswith(_NOT_SUPPORTED))
            # Of a program that was stopped, variables may be in any state.
            if isinstance(error, MontyCrashedError) or said.startswith(("TimeoutError:", "MemoryError:")):
                await self.aclose()
        output = "\n".join(filter(None, (printed.output.rstrip("\n"), value)))
        return Outcome(output, value, fault, is_readable, is_over)

    async def aclose(self) -> None:
        """Gives the worker back, and with it all variables. The next program gets another one."""
        if (session := self._session) is not None:
            self._session = None
            self._sources.clear()
            await session.__aexit__(None, None, None)

    async def _execute(self, program: str, name: str, printed: CollectString) -> tuple[str, str]:
        """Runs a program to its end: the value of its last expression as text, and the fault of a forgotten call."""
        from pydantic_monty import AsyncFunctionSnapshot, AsyncFutureSnapshot, AsyncNameLookupSnapshot, MontyError

        if self._session is None:
            session = self._pool.checkout(
                limits={
                    "max_feed_duration_secs": self._programs.timeout_s,
                    "max_memory": self._programs.memory_mb * 2**20,
                    "max_recursion_depth": _RECURSION,
                    "max_suspensions": 1000 + 4 * self.tools.max_calls,
                },
                os_policy={"datetime": datetime(2025, 1, 1), "sleep": "zero", "random_start": {"seed": 0}},
            )
            self._session = await session.__aenter__()
            await self._session.feed_start(_PRELUDE)
        self._sources[f"<python-input-{len(self._sources) + 1}>"] = name, program.encode()
        known = self.tools.functions
        is_waiting = waits(program)
        self.tools.sources.begin(program)
        async with background_tasks() as start:
            calls = _PendingCalls(self, start)
            try:
                snapshot: AsyncSnapshot = await self._session.feed_start(program, print_callback=printed)
                while True:
                    if isinstance(snapshot, AsyncFunctionSnapshot):
                        called = snapshot.function_name
                        if snapshot.is_os_function:
                            snapshot = await snapshot.resume_not_handled()
                        elif (function := known.get(called)) is None:
                            message = f"name {excerpt(called)!r} is not defined; the tools are: {', '.join(known)}"
                            snapshot = await snapshot.resume({"exc_type": "NameError", "message": message})
                        else:
                            use = self.tools.use(function, snapshot.args, snapshot.kwargs, self._place(snapshot))
                            if is_waiting:
                                calls.add(snapshot.call_id, use)
                                snapshot = await snapshot.resume({"future": ...})
                            else:
                                use.level = self.tools.level
                                result = await self.result(use)
                                self.tools.level += 1
                                snapshot = await snapshot.resume(result)
                    elif isinstance(snapshot, AsyncNameLookupSnapshot):
                        if snapshot.variable_name in known and snapshot.object_id is None:
                            snapshot = await snapshot.resume(value=_named(snapshot.variable_name))
                        else:
                            snapshot = await snapshot.resume()
                    elif isinstance(snapshot, AsyncFutureSnapshot):
                        snapshot = await snapshot.resume(await calls.some_of(snapshot.pending_call_ids))
                    else:
                        break
            except (MontyError, TooManyCalls):
                await calls.end()  # what has begun is paid for, and a resumed run is to find it
                raise
            await calls.end()
        value = _show(snapshot.output)
        if (forgotten := calls.forgotten) is None:
            return value, ""
        fault = f"{forgotten.function.name} was called without `await` and didn't run ({forgotten.place})"
        return "" if _NOT_AWAITED.search(value) else value, fault

    async def result(self, use: ToolUse) -> ExternalSettledResult:
        """The result of a tool, as the sandbox takes it."""
        step = await self.tools.call(use)
        if not step.failed:
            return {"return_value": step.observation}
        message = step.observation.removeprefix("ERROR: ")
        self._raised.add(message)
        return {"exc_type": "RuntimeError", "message": message}

    def _place(self, snapshot: AsyncFunctionSnapshot) -> str:
        """The line of a call."""
        name, source = self._sources.get(snapshot.position.filename, ("", b""))
        line = 1 + source.count(b"\n", 0, snapshot.position.start)
        is_earlier = snapshot.position.filename != f"<python-input-{len(self._sources)}>"
        return f"{name} line {line}" if name and is_earlier else f"line {line}"

    def _explain(self, error: MontyError) -> str:
        """Why a program ended, in a line."""
        said, kind = str(error), type(error).__name__
        broke_down = kind == "MontyCrashedError"
        if said.startswith("TimeoutError: feed time limit") or (broke_down and "request timeout" in said):
            return f"it computed for more than {self._programs.timeout_s:g} s"
        if said.startswith("MemoryError:") and "memory limit" in said:
            return f"it took more than {self._programs.memory_mb} MB"
        if broke_down:
            return "its process broke down"
        frames = error.traceback() if hasattr(error, "traceback") else []
        lines = [frame.line for frame in frames if kind == "MontySyntaxError" or frame.filename in self._sources]
        if said.startswith(_NOT_SUPPORTED):
            said = f"SyntaxError: this Python doesn't know {said.removeprefix(_NOT_SUPPORTED)}"
        elif kind == "MontySyntaxError":
            said = f"SyntaxError: {said}"
        elif said.removeprefix("RuntimeError: ") in self._raised:
            said = said.removeprefix("RuntimeError: ")
        said = " ".join(said.split())
        cut = said if len(said) <= LONGEST_FAULT else f"{said[:LONGEST_FAULT]}…"
        return f"{cut} (line {lines[-1]})" if lines else cut


class _PendingCalls:
    """The calls that a program waits for, or will wait for."""

    def __init__(self, session: ProgramSession, start: TaskStarter) -> None:
        self._session = session
        self._start = start
        self._uses: dict[int, ToolUse] = {}
        self._results: dict[int, ExternalSettledResult] = {}
        self._running = set[int]()
        self._news = anyio.Event()

    @property
    def forgotten(self) -> ToolUse | None:
        """The first call that the program didn't wait for."""
        return next((use for use in self._uses.values() if use.step is None), None)

    def add(self, id_: int, use: ToolUse) -> None:
        self._uses[id_] = use

    async def some_of(self, ids: list[int]) -> dict[int, ExternalSettledResult]:
        """The results of those that have ended, at least one. All of them begin, in the order of the program."""
        new = sorted(id_ for id_ in ids if self._uses[id_].step is None and id_ not in self._running)
        self._running.update(new)
        tools = self._session.tools
        for id_ in new:
            self._uses[id_].level = tools.level
            self._start(self._call, id_)
        while not self._results.keys() & set(ids):
            await self._wait()
        given = {id_: self._results.pop(id_) for id_ in ids if id_ in self._results}
        tools.level = max([tools.level, *(1 + self._uses[id_].level for id_ in given)])
        return given

    async def end(self) -> None:
        """Waits for those that have begun."""
        while self._running:
            await self._wait()

    async def _wait(self) -> None:
        self._news = anyio.Event()
        await self._news.wait()

    async def _call(self, id_: int) -> None:
        try:
            self._results[id_] = await self._session.result(self._uses[id_])
        finally:
            self._running.discard(id_)
            self._news.set()


def waits(program: str) -> bool:
    """Whether a program awaits anything.

    >>> waits("x = await Search('a')"), waits("x = Search('await')  # await")
    (True, False)
    """
    nodes = nodes_of(program)
    return any(isinstance(each, ast.Await) or (isinstance(each, ast.Name) and each.id == "asyncio") for each in nodes)


def _named(name: str) -> Any:
    """A function that the sandbox knows by this name, as a value."""

    def function() -> None: ...

    function.__name__ = name
    return function


def _show(value: Any) -> str:
    """The value of an expression as text; None is no text."""
    if value is None:
        return ""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, a list that is too deep
        text = excerpt(value)
    return text[:_LONGEST_VALUE].strip("\n")
