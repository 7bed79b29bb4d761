"""Tools that answer from a recording: `--tools recorded:RUN`, where RUN is the folder of an imported run or your own.

    recording = Recording.read(Path("results/local/airline"))
    tools = recording.of_task("12")
    await tools.tool("get_user_details", "get_user_details")(…)     # what was recorded; else `NotRecorded`

A call is answered from the recorded calls of its task, in any trial and of any agent. The first trajectory that has
the call answers; its n-th call of the same arguments gets the n-th result, and later ones the last, since a call may
have changed something. Where no trajectory has exactly these arguments, they are the same if they differ only in

    case, white space around a text     "Oslo "  "oslo"
    the type of a number                3  3.0  "3"; but a text is no number for another text: "1.10" isn't "1.1"
    the order of the keys of objects
    what is left out                    null, or the default that the recorded schema has

Names, descriptions and schemas are those that were recorded. Where a run has no schema of a tool, it is inferred from
the recorded arguments: their names, their types, and which are in each call. A recording is data: it says which text
answers, and nothing of it is run, opened or contacted.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from rewoo_bench.config.names import RECORDED
from rewoo_bench.errors import DataError, NotRecorded, ToolError
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.notation.schemas import kind_of
from rewoo_bench.runs.folder import JOURNAL_FILE, TRACES_FILE
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import CallKey, CallRecord, TaskKey
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.text.json_text import load_json
from rewoo_bench.tools.mcp import LONGEST_NAME, ToolSchema, safe_names

_TOOL_CALLS = """
SELECT task, place, kind, name, request, nth, status, prompt, answer FROM calls WHERE kind = 'tool' ORDER BY rowid
"""

_MOST_CALLS = 2_000  # of a tool, from which its schema is inferred
_MOST_FIELDS = 50  # of an object inside the arguments; one with more is a table, whose keys are data
_DEEPEST = 6  # levels of a schema that is inferred


class RecordedCall(NamedTuple):
    """A call of a tool, and its result; `text` is None where none was recorded."""

    tool: str
    arguments: Mapping[str, Any]
    text: str | None
    failed: bool


@dataclass(frozen=True)
class Recording:
    """The tool calls of a run. `tasks` are the trajectories of each task."""

    journal: Path
    run_id: str
    sha256: str
    """Of the recorded calls and schemas: the same for the same answers."""
    schemas: Mapping[str, ToolSchema]
    """By the recorded name, in the order in which they were recorded."""
    tasks: Mapping[str, Sequence[TaskKey]]

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Raises `DataError` for a folder that has no recording."""
        manifest = read_manifest(folder)
        path = folder / JOURNAL_FILE
        if not path.is_file():
            raise DataError(f"--tools {RECORDED}{folder}: it has no {JOURNAL_FILE}, where the calls are")
        digest = sha256()
        schemas = {each.name: each for each in _offered(folder / TRACES_FILE)}
        arguments: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        tasks: defaultdict[str, dict[TaskKey, None]] = defaultdict(dict)
        with closing(connect_to_read(path)) as database:
            reader = JournalReader(database)
            for row in database.each(_TOOL_CALLS):
                if not row[3]:
                    continue
                task = TaskKey(*json.loads(row[0]))
                tasks[task.example_id][task] = None
                digest.update(repr((row[0], row[3], row[4], row[8])).encode())
                if len(known := arguments[row[3]]) < _MOST_CALLS:
                    known.append(_call(reader, _record(reader, task, row)).arguments)
        schemas |= {
            name: ToolSchema(name, None, _schema_of(given)) for name, given in arguments.items() if name not in schemas
        }
        if not schemas:
            raise DataError(f"--tools {RECORDED}{folder}: no tool was called in this run")
        digest.update("".join(each.sha256 for each in schemas.values()).encode())
        listed = {name: tuple(found) for name, found in tasks.items()}
        return cls(path, manifest.run_id, digest.hexdigest(), schemas, listed)

    def names(self, taken: Iterable[str] = ()) -> dict[str, str]:
        """Name of a tool as a model may call it -> the recorded one. A name that is taken gets `recorded_` in front."""
        others = {*(name.lower() for name in taken), FINISH.lower()}
        names = safe_names(self.schemas)
        free = {name: remote for name, remote in names.items() if name.lower() not in others}
        for name, remote in names.items():
            if name.lower() in others:
                name = f"recorded_{name}"[:LONGEST_NAME]
                free[name] = remote
        return free

    def of_task(self, task: str) -> RecordedTask:
        """The recorded calls of a task; none of one that it doesn't have."""
        trajectories: list[list[RecordedCall]] = []
        if keys := self.tasks.get(task):
            with closing(connect_to_read(self.journal)) as database:
                reader = JournalReader(database)
                trajectories = [
                    [_call(reader, record) for record in reader.calls(key) if record.key.kind == "tool"] for key in keys
                ]
        return RecordedTask(self, trajectories)


class RecordedTask:
    """The recorded calls of a task, a list for each trajectory. Made for one question: its tools count their calls."""

    def __init__(self, recording: Recording, trajectories: Sequence[Sequence[RecordedCall]]) -> None:
        self._recording = recording
        self._trajectories = trajectories

    def tool(self, remote: str, name: str) -> TaskTool:
        """A recorded tool under a name of ours."""
        own = [[call for call in calls if call.tool == remote] for calls in self._trajectories]
        return TaskTool(self._recording.schemas[remote], name, own)


class TaskTool:
    """A tool that answers from the recording of a task, as a `rewoo_bench.types.Tool`.

    Raises `NotRecorded` for a call that isn't there, and `ToolError` for one that failed when it was recorded.
    """

    stateful = True  # which of several results is next

    def __init__(self, schema: ToolSchema, name: str, trajectories: Sequence[Sequence[RecordedCall]]) -> None:
        self.name = name
        self.description = schema.description
        self.arguments: type[BaseModel] = schema.arguments
        self._defaults = _defaults(schema.schema)
        self._exact: dict[str, list[RecordedCall]] = {}
        self._alike: dict[str, list[RecordedCall]] = {}
        for calls in trajectories:
            for index, key_of in ((self._exact, _exact), (self._alike, self._normal)):
                found: defaultdict[str, list[RecordedCall]] = defaultdict(list)
                for call in calls:
                    if call.text is not None:
                        found[key_of(call.arguments)].append(call)
                for key, same in found.items():
                    index.setdefault(key, same)
        self._exactly_asked: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()

    async def __call__(self, arguments: BaseModel) -> str:
        given = arguments.model_dump(mode="json", exclude_unset=True, by_alias=True)
        exact, normal = _exact(given), self._normal(given)
        if exact in self._exact:
            same, earlier = self._exact[exact], self._exactly_asked[exact]
        elif normal in self._alike:
            same, earlier = self._alike[normal], self._asked[normal]
        else:
            raise NotRecorded(f"this call of {self.name} isn't in the recording, so its result isn't known")
        call = same[min(earlier, len(same) - 1)]
        self._exactly_asked[_exact(call.arguments)] += 1
        self._asked[normal] += 1
        text = call.text or ""
        if call.failed:
            raise ToolError(text)
        return text

    def _normal(self, arguments: Mapping[str, Any]) -> str:
        plain, defaults = _normal(arguments), self._defaults
        return _exact({name: each for name, each in plain.items() if name not in defaults or each != defaults[name]})


def _exact(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)


def _normal(value: Any) -> Any:
    """A value in the form in which it is compared."""
    if isinstance(value, Mapping):
        return {name: _normal(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_normal(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().casefold()


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The normal form of the defaults that a schema names."""
    properties = schema.get("properties")
    known = properties.items() if isinstance(properties, Mapping) else ()
    return {name: _normal(each["default"]) for name, each in known if isinstance(each, Mapping) and "default" in each}


def _record(reader: JournalReader, task: TaskKey, row: Sequence[Any]) -> CallRecord:
    return CallRecord(task, CallKey(*row[1:6]), row[6], None, reader.answer(row[8]), text_ids=row[7])


def _call(reader: JournalReader, record: CallRecord) -> RecordedCall:
    arguments: Any = None
    with suppress(ValueError):
        arguments = json.loads("".join(reader.texts(record)))
    failed = "error" in record.answer
    text = record.answer.get("error" if failed else "text")
    return RecordedCall(record.key.name, arguments if isinstance(arguments, dict) else {}, text, failed)


def _offered(traces: Path) -> Iterator[ToolSchema]:
    """The schemas in traces.jsonl, in the forms of OpenAI, Anthropic, MCP and Gemini."""
    seen: set[str] = set()
    if not traces.is_file():
        return
    with traces.open(encoding="utf-8") as lines:
        for line in lines:
            for tool in _functions(load_json(line).get("tools")):
                name = tool.get("name")
                if isinstance(name, str) and name and name not in seen:
                    seen.add(name)
                    given = [tool.get(key) for key in ("parameters", "input_schema", "inputSchema")]
                    schema = next((each for each in given if isinstance(each, dict)), {})
                    said = tool.get("description")
                    yield ToolSchema(name, said if isinstance(said, str) else None, schema)


def _functions(tools: Any) -> Iterator[Mapping[str, Any]]:
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            several = tool.get("functionDeclarations") or tool.get("function_declarations")
            if isinstance(several, list):
                yield from _functions(several)
            else:
                yield tool["function"] if isinstance(tool.get("function"), dict) else tool


def _schema_of(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of recorded arguments: their names and types, required where each call has them."""
    names = dict.fromkeys(name for call in calls for name in call)
    return {
        "type": "object",
        "properties": {name: _part([call[name] for call in calls if name in call], _DEEPEST) for name in names},
        "required": [name for name in names if all(call.get(name) is not None for call in calls)],
    }


def _part(values: Sequence[Any], depth: int) -> dict[str, Any]:
    """The schema of some values."""
    kinds = list(dict.fromkeys(kind_of(value) for value in values if value is not None))
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "integer"]
    if not kinds or not depth:
        return {}
    part: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if "array" in kinds and (items := [each for value in values if isinstance(value, list) for each in value]):
        part["items"] = _part(items, depth - 1)
    objects = [value for value in values if isinstance(value, dict)]
    if objects and len(names := dict.fromkeys(name for value in objects for name in value)) <= _MOST_FIELDS:
        part["properties"] = {n: _part([value[n] for value in objects if n in value], depth - 1) for n in names}
        part["required"] = [name for name in names if all(value.get(name) is not None for value in objects)]
    return part
