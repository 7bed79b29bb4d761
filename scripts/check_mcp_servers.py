"""Call every tool of five public MCP servers from four architectures with a scripted model, and print what came of it.

    python scripts/check_mcp_servers.py                          # installs the servers into a temporary folder
    python scripts/check_mcp_servers.py memory git --arch rewoo  # some of them

The servers are server-everything, server-filesystem and server-memory (npm), mcp-server-sqlite and mcp-server-git
(PyPI); it needs npm. The calls have several inputs, none, enums and nested objects, by name, by position and as JSON in
turn. A call is refused where the server answered with an error, and failed where it didn't reach the server. The exit
code is 1 where a call failed.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

import rewoo_bench
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.testing import ScriptedModel
from rewoo_bench.tools.mcp_server import McpServers
from rewoo_bench.types import Completion, Step, Tool, ToolCall

ARCHITECTURES = ("rewoo", "rewoo-json", "react", "react-native")
NPM = ("everything", "filesystem", "memory")
# mcp-server-sqlite doesn't run with the second version of the SDK.
PYPI = {"sqlite": ("mcp<2", "mcp-server-sqlite"), "git": ("mcp-server-git",)}
OUTCOMES = ("answered", "refused by the server", "failed")
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Server:
    """A server: the command that starts it, and the calls of its tools by name of the tool, in this order."""

    command: str
    calls: Sequence[Call]


@dataclass(frozen=True)
class Outcome:
    """What came of one call."""

    server: str
    tool: str
    architecture: str
    arguments: Mapping[str, Any]
    what: str
    said: str


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("servers", nargs="*", help=f"some of {', '.join([*NPM, *PYPI])}; all where none is given")
    parser.add_argument("--arch", default=",".join(ARCHITECTURES), help="architectures, separated by commas")
    parser.add_argument("--folder", type=Path, help="where the servers are installed, and stay")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (flags.folder or Path(temporary)).absolute()
        names = flags.servers or [*NPM, *PYPI]
        install(folder, names)
        outcomes: list[Outcome] = []
        for name in names:
            for architecture in flags.arch.split(","):
                with tempfile.TemporaryDirectory() as work:
                    server = SERVERS[name](folder, Path(work).resolve())
                    outcomes += anyio.run(check, name, server, architecture)
                print(f"{name}, {architecture}: done", file=sys.stderr)
    print(table(outcomes))
    if any(outcome.what == "failed" for outcome in outcomes):
        raise SystemExit(1)


def install(folder: Path, names: Sequence[str]) -> None:
    """Installs the servers that aren't in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in NPM and not package(folder, name).exists():
            run("npm", "install", "--silent", "--prefix", str(folder), f"@modelcontextprotocol/server-{name}")
        if name in PYPI and not (folder / name).exists():
            venv.create(folder / name, with_pip=True)
            run(str(folder / name / "bin" / "pip"), "install", "--quiet", *PYPI[name])


def run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd, stdout=sys.stderr)


def package(folder: Path, name: str) -> Path:
    return folder / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"


async def check(name: str, server: Server, architecture: str) -> list[Outcome]:
    """Every call of a server by one architecture, in one question. A tool that isn't in the list is called, too."""
    async with McpServers() as servers:
        connected = await servers.connect(server.command)
        tools = {remote: connected.tool(remote) for remote in connected.schemas}
    wanted = [call for call in server.calls if call[0] in tools]
    calls = [*wanted, *((tool, made_up(tools[tool])) for tool in tools if tool not in dict(wanted))]
    in_order = "&schedule=sequential" if architecture.startswith("rewoo") else ""
    results = await rewoo_bench.evaluate(
        "sample",
        f"{architecture}?max_steps={len(calls) + 1}{in_order}",
        model=ScriptedModel(SCRIPTS[architecture](calls, tools)),
        questions=1,
        mcp=(server.command,),
    )
    (result,) = results
    if result.error:
        raise SystemExit(f"{name}, {architecture}: {result.error}")
    steps = [step for step in result.trajectory.steps if step.tool != "Finish"]
    faults = [draft["faults"] for draft in result.trajectory.notes.get("drafts", ())]
    if len(steps) != len(calls):
        return [Outcome(name, tool, architecture, given, "failed", str(faults)) for tool, given in calls]
    return [
        Outcome(name, tool, architecture, given, outcome_of(step), step.observation)
        for (tool, given), step in zip(calls, steps, strict=True)
    ]


def outcome_of(step: Step) -> str:
    if not step.failed:
        return "answered"
    ours = re.match(r"ERROR: (no tool|not run|.* doesn't fit |.*can't be used)", step.observation, re.DOTALL)
    return "failed" if ours else "refused by the server"


def made_up(tool: Tool) -> dict[str, Any]:
    """Values of the required inputs."""
    samples = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    about = inputs(tool.arguments)
    made: dict[str, Any] = {}
    for each in about:
        if each.required:
            part = about.schema.resolve(each.schema)
            made[each.name] = part["enum"][0] if "enum" in part else samples.get(str(part.get("type")), "a")
    return made


def written(call: Call, tool: Tool, number: int) -> str:
    """A call in the text notation: by name, by position or as JSON in turn; a tool of one text has that."""
    name, given = call
    about = inputs(tool.arguments)
    if about.is_text and len(given) == 1:
        return f"{name}[{next(iter(given.values()))}]"
    literals = {field: json.dumps(value, ensure_ascii=False) for field, value in given.items()}
    order = [each.name for each in about]
    if number % 3 == 0 and order[: len(given)] == list(given):
        return f"{name}[{', '.join(literals.values())}]"
    if number % 3 == 1 or not given:
        return f"{name}[{', '.join(f'{field}={literal}' for field, literal in literals.items())}]"
    return f"{name}[{json.dumps(given, ensure_ascii=False)}]"


def rewoo_script(calls: Sequence[Call], tools: Mapping[str, Tool]) -> list[str]:
    lines = [
        f"Plan: call it.\n#E{number} = {written(call, tools[call[0]], number)}"
        for number, call in enumerate(calls, start=1)
    ]
    return ["\n".join(lines), "Answer: done"]


def rewoo_json_script(calls: Sequence[Call], tools: Mapping[str, Tool]) -> list[str]:
    steps = [
        {"id": f"E{number}", "thought": "call it", "tool": tool, "args": given, "depends_on": []}
        for number, (tool, given) in enumerate(calls, start=1)
    ]
    return [json.dumps({"steps": steps}), "Answer: done"]


def react_script(calls: Sequence[Call], tools: Mapping[str, Tool]) -> list[str]:
    turns = [
        f"Thought: call it.\nAction: {written(call, tools[call[0]], number)}"
        for number, call in enumerate(calls, start=1)
    ]
    return [*turns, "Thought: done.\nAction: Finish[done]"]


def react_native_script(calls: Sequence[Call], tools: Mapping[str, Tool]) -> list[str | Completion]:
    turns = [
        Completion("", tool_calls=(ToolCall(str(number), re.sub(r"\W+", "_", tool), given),))
        for number, (tool, given) in enumerate(calls, start=1)
    ]
    return [*turns, "Answer: done"]


SCRIPTS: Mapping[str, Callable[[Sequence[Call], Mapping[str, Tool]], Any]] = {
    "rewoo": rewoo_script,
    "rewoo-json": rewoo_json_script,
    "react": react_script,
    "react-native": react_native_script,
}


def everything(folder: Path, work: Path) -> Server:
    calls: list[Call] = [
        ("echo", {"message": 'a, "b" [c] = {d}'}),
        ("get-sum", {"a": 2, "b": 3.5}),
        ("get-sum", {"b": -1, "a": 1e3}),
        ("get-annotated-message", {"messageType": "success", "includeImage": True}),
        ("get-annotated-message", {"messageType": "debug"}),
        ("get-env", {}),
        ("get-resource-links", {"count": 2}),
        ("get-resource-links", {}),
        ("get-resource-reference", {"resourceType": "Blob", "resourceId": 2}),
        ("get-structured-content", {"location": "New York"}),
        ("get-tiny-image", {}),
        ("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
        ("toggle-simulated-logging", {}),
        ("toggle-simulated-logging", {}),
        ("toggle-subscriber-updates", {}),
        ("trigger-long-running-operation", {"duration": 0.1, "steps": 1}),
        ("simulate-research-query", {"topic": "rivers, lakes", "ambiguous": False}),
    ]
    return Server(shlex.join(["node", str(package(folder, "everything"))]), calls)


def filesystem(folder: Path, work: Path) -> Server:
    text, moved, below = str(work / "a [1].txt"), str(work / "b.txt"), str(work / "below")
    edits = [{"oldText": "second ] line", "newText": 'a "new", line'}, {"oldText": "third", "newText": "3rd"}]
    calls: list[Call] = [
        ("list_allowed_directories", {}),
        ("write_file", {"path": text, "content": "first, line\nsecond ] line\nthird = {line}\n"}),
        ("edit_file", {"path": text, "edits": edits, "dryRun": True}),
        ("edit_file", {"path": text, "edits": edits}),
        ("read_file", {"path": text, "tail": 1}),
        ("read_text_file", {"path": text, "head": 2}),
        ("read_multiple_files", {"paths": [text, str(work / "none")]}),
        ("create_directory", {"path": below}),
        ("list_directory", {"path": str(work)}),
        ("list_directory_with_sizes", {"path": str(work), "sortBy": "size"}),
        ("directory_tree", {"path": str(work), "excludePatterns": ["*.md", "x"]}),
        ("search_files", {"path": str(work), "pattern": "*.txt", "excludePatterns": []}),
        ("get_file_info", {"path": text}),
        ("move_file", {"source": text, "destination": moved}),
        ("read_media_file", {"path": moved}),
        ("read_text_file", {"path": "/not/allowed"}),
    ]
    return Server(shlex.join(["node", str(package(folder, "filesystem")), str(work)]), calls)


def memory(folder: Path, work: Path) -> Server:
    kyiv = {"name": "Kyiv, city", "entityType": "city [capital]", "observations": ["on the Dnieper", 'said "hello"']}
    dnieper = {"name": "Dnieper", "entityType": "river", "observations": []}
    relation = {"from": "Kyiv, city", "to": "Dnieper", "relationType": "lies on"}
    calls: list[Call] = [
        ("create_entities", {"entities": [kyiv, dnieper]}),
        ("create_relations", {"relations": [relation]}),
        ("add_observations", {"observations": [{"entityName": "Dnieper", "contents": ["long", "wide"]}]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "Dnieper"}),
        ("open_nodes", {"names": ["Kyiv, city", "Dnieper"]}),
        ("delete_observations", {"deletions": [{"entityName": "Dnieper", "observations": ["wide"]}]}),
        ("delete_relations", {"relations": [relation]}),
        ("delete_entities", {"entityNames": ["Dnieper"]}),
        ("add_observations", {"observations": [{"entityName": "nobody", "contents": ["x"]}]}),
    ]
    command = ["node", str(package(folder, "memory"))]
    return Server(f"MEMORY_FILE_PATH={work / 'memory.jsonl'} {shlex.join(command)}", calls)


def sqlite(folder: Path, work: Path) -> Server:
    calls: list[Call] = [
        ("create_table", {"query": "CREATE TABLE rivers (name TEXT, length INTEGER)"}),
        ("write_query", {"query": "INSERT INTO rivers VALUES ('Dnieper, the [long] one', 2201), ('Seine', 777)"}),
        ("read_query", {"query": "SELECT name, length FROM rivers WHERE length > 800"}),
        ("list_tables", {}),
        ("describe_table", {"table_name": "rivers"}),
        ("append_insight", {"insight": "The Dnieper is longer: 2,201 km"}),
        ("read_query", {"query": "DROP TABLE rivers"}),
    ]
    program = folder / "sqlite" / "bin" / "mcp-server-sqlite"
    return Server(shlex.join([str(program), "--db-path", str(work / "test.db")]), calls)


def git(folder: Path, work: Path) -> Server:
    path = str(work)
    for command in ("init --quiet", "config user.name check", "config user.email check@localhost"):
        run("git", *command.split(), cwd=work)
    (work / "a.txt").write_text("first\n", encoding="utf-8")
    (work / "b.txt").write_text("second\n", encoding="utf-8")
    run("git", "add", "a.txt", cwd=work)
    run("git", "commit", "--quiet", "-m", "first", cwd=work)
    (work / "a.txt").write_text("changed\n", encoding="utf-8")
    calls: list[Call] = [
        ("git_status", {"repo_path": path}),
        ("git_diff_unstaged", {"repo_path": path, "context_lines": 1}),
        ("git_add", {"repo_path": path, "files": ["a.txt", "b.txt"]}),
        ("git_diff_staged", {"repo_path": path}),
        ("git_reset", {"repo_path": path}),
        ("git_add", {"repo_path": path, "files": ["a.txt"]}),
        ("git_commit", {"repo_path": path, "message": 'second, with "quotes" and [brackets]'}),
        ("git_log", {"repo_path": path, "max_count": 1, "start_timestamp": "2 weeks ago", "end_timestamp": None}),
        ("git_create_branch", {"repo_path": path, "branch_name": "other", "base_branch": None}),
        ("git_checkout", {"repo_path": path, "branch_name": "other"}),
        ("git_diff", {"repo_path": path, "target": "HEAD~1", "context_lines": 0}),
        ("git_show", {"repo_path": path, "revision": "HEAD"}),
        ("git_branch", {"repo_path": path, "branch_type": "local"}),
        ("git_checkout", {"repo_path": path, "branch_name": "no-such-branch"}),
    ]
    return Server(shlex.join([str(folder / "git" / "bin" / "mcp-server-git"), "--repository", path]), calls)


SERVERS: Mapping[str, Callable[[Path, Path], Server]] = {
    "everything": everything,
    "filesystem": filesystem,
    "memory": memory,
    "sqlite": sqlite,
    "git": git,
}


def table(outcomes: Sequence[Outcome]) -> str:
    """Each call in Markdown, and the counts."""
    lines = ["| server | tool | arguments | architecture | outcome |", "|---|---|---|---|---|"]
    for each in outcomes:
        names = ", ".join(each.arguments) or "none"
        said = "" if each.what == "answered" else f": {' '.join(each.said.split())[:100]}".replace("|", "\\|")
        lines.append(f"| {each.server} | {each.tool} | {names} | {each.architecture} | {each.what}{said} |")
    lines += [
        "",
        f"| architecture | servers | tools | calls | {' | '.join(OUTCOMES)} |",
        "|---|---|---|---|---|---|---|",
    ]
    for architecture in dict.fromkeys(each.architecture for each in outcomes):
        own = [each for each in outcomes if each.architecture == architecture]
        counts = Counter(each.what for each in own)
        servers, tools = {each.server for each in own}, {(each.server, each.tool) for each in own}
        figures = [len(servers), len(tools), len(own), *(counts[what] for what in OUTCOMES)]
        lines.append(f"| {architecture} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
