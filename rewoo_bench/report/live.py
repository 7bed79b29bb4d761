"""`rewoo-bench report --live`: the pages of all runs in a folder, on this machine; a run in progress updates itself.

The server is for this machine only, reads only, and shows nothing outside the folder.

    /                     all runs, newest first
    /run/NAME/            the page of a run; the same program as report.html, with its data from the addresses below
    /run/NAME/overview    JSON
    /run/NAME/table       JSON
    /run/NAME/question    JSON; ?dataset=…&id=…&trial=… say which
    /run/NAME/events      server-sent events: a line whenever the run has something new

Requests with another Host or a foreign Origin are refused, so no web page can read runs through a visitor's browser.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler
from anyio import to_thread
from pydantic_core import to_json

from rewoo_bench.config.names import ORACLE_ACCURACY
from rewoo_bench.errors import DataError, RewooBenchError
from rewoo_bench.report.rows import QuestionKey, QuestionTable
from rewoo_bench.report.trajectories import Planned, Trajectories, read_planned
from rewoo_bench.report.write import live_page, read_page
from rewoo_bench.runs.folder import JOURNAL_FILE, QUESTIONS_FILE
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.journal.tables import export
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.past_runs import PastRun, current_status, past_run
from rewoo_bench.system.http_session import server_log
from rewoo_bench.text.words import counted

HOST = "127.0.0.1"
POLL_S = 0.5
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_NO_FRAMES = "frame-ancestors 'none'"  # which counts in a header alone
_HEADS = ("run", "status", "exact match", "tokens", "data set", "model", "started")
_MARK = "*"  # of an oracle's exact match
_ATTEMPTS = 3  # to read a run while it is being written
MOST_READ = 1_000  # answers of a run in progress, whose figures are in the list of runs


class Viewer:
    """The runs of a folder, and the last snapshot of each that was looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.snapshots: dict[Path, Snapshot] = {}
        self.closing = asyncio.Event()
        """Ends the streams of events."""
        self._locks: dict[Path, asyncio.Lock] = {}
        self._lines: dict[tuple[str, Path], tuple[Stamp, str]] = {}

    def app(self) -> web.Application:
        """The application, to be run by aiohttp."""
        app = web.Application(middlewares=[_local_only])
        app.add_routes(
            [
                web.get("/", self.index),
                web.get("/run/{name}/", self.page),
                web.get("/run/{name}/{part:overview|table}", self.part),
                web.get("/run/{name}/question", self.question),
                web.get("/run/{name}/events", self.events),
            ]
        )
        return app

    def runs(self) -> dict[str, Path]:
        """The folders that hold a run, by a name of their own, newest first. The folder itself may be one.

        Links to folders outside are left out: the folder may be somebody else's.
        """
        candidates = self.folder.iterdir() if self.folder.is_dir() else ()
        inside = self.folder.resolve()
        runs = {
            path.name: path
            for path in candidates
            if os.access(path, os.X_OK)
            and (path / MANIFEST).is_file()
            and (path / MANIFEST).resolve().is_relative_to(inside)
        }
        if (self.folder / MANIFEST).is_file():
            name = self.folder.resolve().name
            while name in runs:  # a run inside the folder of a run
                name = f"{name} (outer)"
            runs[name] = self.folder
        return dict(sorted(runs.items(), key=lambda run: (run[1] / MANIFEST).stat().st_mtime, reverse=True))

    async def index(self, request: web.Request) -> web.Response:
        runs = await to_thread.run_sync(self.runs)
        lines = [await to_thread.run_sync(self._line, name, path) for name, path in runs.items()]
        headers = {**_HEADERS, "Content-Security-Policy": _NO_FRAMES}  # beside that of the page
        return web.Response(text=_index(self.folder, lines), content_type="text/html", headers=headers)

    def _line(self, name: str, path: Path) -> str:
        """The run's row in the list; made again only where its files have changed, or while it goes on."""
        now = stamp(path)
        try:
            if (before := self._lines.get((name, path))) and before[0] == now and not in_progress(path):
                return before[1]
            run = past_run(path)
            so_far, answers = progress(path, run)
            run = with_figures(path, run) if 0 < answers <= MOST_READ else run
            problem = run.error
        except (RewooBenchError, OSError) as error:
            problem = str(error)
        if problem:
            line = f"<tr><th scope=row>{_shown(name)}</th><td colspan={len(_HEADS) - 1}>{_shown(problem)}</td></tr>"
        else:
            status = f"{run.status}: {so_far}" if so_far else run.status
            started = (run.started_at or "")[:16].replace("T", " ")
            scores, tokens = [], []
            for each in run.architectures:  # `rewoo 0.98*` and `rewoo 1,711`; `rewoo` and `rewoo -` without an answer
                score, spent = run.exact_match.get(each), run.tokens.get(each)
                scores.append(each if score is None else f"{each} {score:.2f}{_MARK if run.oracle else ''}")
                tokens.append(f"{each} {'-' if spent is None else f'{spent:,.0f}'}")
            cells = (status, ", ".join(scores), ", ".join(tokens), run.dataset, run.model, started)
            named = zip(_HEADS[1:], cells, strict=True)
            shown = "".join(f"<td data-name='{head}'>{_shown(cell)}</td>" for head, cell in named)
            line = f"<tr><th scope=row><a href='/run/{quote(name, safe='')}/'>{_shown(name)}</a></th>{shown}</tr>"
        self._lines[name, path] = now, line
        return line

    async def page(self, request: web.Request) -> web.Response:
        self._run(request)
        text, policy = live_page(f"/run/{quote(request.match_info['name'], safe='')}/")
        headers = {**_HEADERS, "Content-Security-Policy": f"{policy}; {_NO_FRAMES}"}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def part(self, request: web.Request) -> web.Response:
        async with self._snapshot(self._run(request)) as snapshot:
            return _json(snapshot.head if request.match_info["part"] == "overview" else snapshot.table.columns)

    async def question(self, request: web.Request) -> web.Response:
        key = request.query
        async with self._snapshot(self._run(request)) as snapshot:
            try:
                if not re.fullmatch("[0-9]{1,9}", key["trial"]):
                    raise KeyError(key["trial"])
                line = QuestionKey(key["dataset"], key["id"], int(key["trial"]))
                return _json(await to_thread.run_sync(snapshot.question, line))
            except KeyError:
                raise web.HTTPNotFound(text="no such question") from None

    async def events(self, request: web.Request) -> web.StreamResponse:
        """A line of `changed` whenever the run's files change; ends when the visitor leaves."""
        folder = self._run(request)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        before = await to_thread.run_sync(stamp, folder)
        with suppress(ConnectionResetError):
            await response.write(b"retry: 1000\n\n")
            while not self.closing.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.closing.wait(), POLL_S)
                now = await to_thread.run_sync(stamp, folder)
                if now != before:
                    before = now
                    await response.write(b"data: changed\n\n")
        return response

    def _run(self, request: web.Request) -> Path:
        """The folder of the run in the address: one of those listed, so none outside the folder."""
        run = self.runs().get(request.match_info["name"])
        if run is None:
            raise web.HTTPNotFound(text="no such run")
        return run

    @asynccontextmanager
    async def _snapshot(self, folder: Path) -> AsyncIterator[Snapshot]:
        """The run as it is now; read again only where its files have changed. Inside, no other request closes it."""
        async with self._locks.setdefault(folder, asyncio.Lock()):
            shown = self.snapshots.get(folder)
            if shown is None or shown.stamp != await to_thread.run_sync(stamp, folder):
                try:
                    now = await to_thread.run_sync(_read, folder)
                except RewooBenchError as error:
                    raise web.HTTPServiceUnavailable(text=str(error)) from None
                if shown is not None:
                    shown.close()
                shown = self.snapshots[folder] = now
            yield shown


def _read(folder: Path) -> Snapshot:
    """A snapshot; tried again where a file was replaced while it was read."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(OSError, DataError):
            return take_snapshot(folder)
    return take_snapshot(folder)


@web.middleware
async def _local_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    assert request.transport is not None  # it is None only after the connection ended
    _, port = request.transport.get_extra_info("sockname")
    hosts = hosts_of(port)
    origin = request.headers.get("Origin")
    foreign = origin is not None and origin.removeprefix("http://") not in hosts
    if foreign or request.headers.get("Host") not in hosts:
        raise web.HTTPForbidden(text="this server answers to its own page only")
    return await handler(request)


def hosts_of(port: int) -> set[str]:
    """What a browser may send as the host of this server; it leaves out the port of HTTP."""
    names = (HOST, "localhost")
    return {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())


def _json(value: Any) -> web.Response:
    return web.Response(body=to_json(value), content_type="application/json", headers=_HEADERS)


def _shown(text: str) -> str:
    return escape(text)


def _index(folder: Path, lines: list[str]) -> str:
    rows = "\n".join(lines) or f"<tr><td colspan={len(_HEADS)}>No runs yet.</td></tr>"
    heads = "".join(f"<th scope=col>{name}</th>" for name in _HEADS)
    note = f"<p>{_MARK} {ORACLE_ACCURACY}. Tokens are means per question.</p>" if lines else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Runs in {_shown(str(folder))}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta http-equiv="refresh" content="5"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:15px/1.5 system-ui,sans-serif;margin:1.5rem}}h1{{overflow-wrap:anywhere}}
table{{border-collapse:collapse}}
th,td{{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #8884}}div{{overflow-x:auto}}
th,td:last-child{{white-space:nowrap}}
@media(max-width:700px){{thead{{display:none}}table,tbody,tr,th,td{{display:block}}
tr{{padding:.4rem 0;border-bottom:1px solid #8884}}
th,td{{border:0;padding:.1rem 0;overflow-wrap:anywhere;white-space:normal}}
td::before{{content:attr(data-name) ": ";opacity:.7}}}}</style></head>
<body><main><h1>Runs in {_shown(str(folder))}</h1>
<div tabindex=0><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}</main></body></html>
"""


@asynccontextmanager
async def serving(folder: Path, port: int = 0) -> AsyncIterator[str]:
    """The server, at the address that is given. Raises `OSError` where the port is taken."""
    viewer = Viewer(folder)
    runner = web.AppRunner(viewer.app(), access_log=None, logger=server_log(__name__), shutdown_timeout=2)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        await site.start()
        (address, bound, *_) = runner.addresses[0]
        yield f"http://{address}:{bound}/"
    finally:
        viewer.closing.set()
        await runner.cleanup()
        for snapshot in viewer.snapshots.values():
            snapshot.close()


# The run in a folder as the page's data: from its tables, or from its journal while it is in progress.
#
# A journal is only read. Its writer may be at work at the same time: what it has taken in so far is shown.


Stamp = tuple[tuple[str | int, ...], ...]

MOST_PATHS = 2_000  # questions whose traces are read for the filter by the look-up at which systems part


def stamp(folder: Path) -> Stamp:
    """Changes when a run's manifest, tables or journal do (names, sizes and times in nanoseconds), or it is killed."""
    stamps: list[tuple[str | int, ...]] = []
    with suppress(DataError):
        stamps.append((current_status(folder, read_manifest(folder).status),))
    for name in (MANIFEST, QUESTIONS_FILE, JOURNAL_FILE, f"{JOURNAL_FILE}-wal"):
        with suppress(OSError):
            status = (folder / name).stat()
            stamps.append((name, status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def in_progress(folder: Path) -> bool:
    """Whether the journal may have more than the tables: the run goes on, or was killed."""
    manifest = read_manifest(folder)
    is_unfinished = manifest.status == "running" or not (folder / QUESTIONS_FILE).is_file()
    return is_unfinished and (folder / JOURNAL_FILE).is_file()


def progress(folder: Path, run: PastRun) -> tuple[str, int]:
    """`3 of 20 answers, 2 min to go` for a run that isn't finished, and the number of answers; else nothing."""
    if not in_progress(folder):
        return "", 0
    with closing(connect_to_read(folder / JOURNAL_FILE)) as database:
        done = len(JournalReader(database).finished())
    shown = f"{done:,} of {counted(run.tasks, 'answer')}" if run.tasks else counted(done, "answer")
    if run.status == "running" and done and run.tasks and run.started_at and not read_manifest(folder).sessions:
        elapsed = datetime.now(UTC) - datetime.fromisoformat(run.started_at)
        minutes = round(elapsed.total_seconds() * (run.tasks - done) / done / 60)
        rest = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
        shown += f", {rest if minutes else 'less than a minute'} to go"
    return shown, done


def with_figures(folder: Path, run: PastRun) -> PastRun:
    """A run in progress with the figures that it has by now."""
    with TemporaryDirectory(prefix="rewoo-bench-view-") as temporary:
        _export(folder, Path(temporary) / "run")
        now = past_run(Path(temporary) / "run")
    return replace(run, exact_match=now.exact_match, tokens=now.tokens, oracle=now.oracle)


@dataclass
class Snapshot:
    """The data of a run's page at one moment. `close` frees its files."""

    stamp: Stamp
    head: dict[str, Any]
    table: QuestionTable
    trajectories: Trajectories
    _stack: ExitStack

    def question(self, line: QuestionKey) -> dict[str, Any]:
        """The trajectories of a question, with the labels of their systems. Raises `KeyError`."""
        question = self.trajectories.question(self.trajectories.numbers[line])
        return {**question, "labels": [system["label"] for system in self.table.columns["systems"]]}

    def close(self) -> None:
        self._stack.close()


def take_snapshot(folder: Path) -> Snapshot:
    """Reads a run. Raises `DataError` where it has no finished question yet, or can't be read."""
    now = stamp(folder)
    with ExitStack() as stack:
        source = folder
        if in_progress(folder):
            source = Path(stack.enter_context(TemporaryDirectory(prefix="rewoo-bench-view-"))) / folder.resolve().name
            _export(folder, source)
        head, table = read_page([source], [folder])
        if so_far := progress(folder, past_run(folder))[0]:
            head["facts"].append(("Progress", so_far))
        planned = read_planned([source]) if source is folder else Planned()  # a run in progress is read again and again
        head["planned"] = planned.shown
        trajectories = stack.enter_context(Trajectories([source], table, planned=planned))
        if len(table.lines) <= MOST_PATHS:
            answered = [trajectories.question(number)["systems"] for number in range(len(table.lines))]
            for place, system in enumerate(table.columns["systems"]):
                system["paths"] = [each[place] and each[place]["path"] for each in answered]
        return Snapshot(now, head, table, trajectories, stack.pop_all())


def _export(folder: Path, into: Path) -> None:
    """The tables of what a journal has by now, in a folder of their own."""
    into.mkdir()
    shutil.copyfile(folder / MANIFEST, into / MANIFEST)
    with closing(connect_to_read(folder / JOURNAL_FILE)) as database:
        journal = JournalReader(database)
        tasks = [TaskKey(*json.loads(name)) for name in journal.finished()]
        order = {facts.name: place for place, facts in enumerate(read_manifest(folder).architectures)}
        tasks.sort(key=lambda task: (task.example_id, task.trial, order.get(task.architecture, len(order))))
        export(into, journal, tasks, {})
