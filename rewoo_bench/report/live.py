"""`rewoo-bench report --live`: the pages of all runs in a folder, on this machine; a run in progress updates itself.

The server is for this machine only, and reads only.

    /                     all runs, newest first
    /run/NAME/            the page of a run; the same program as report.html, with its data from the addresses below
    /run/NAME/overview    JSON
    /run/NAME/table       JSON
    /run/NAME/question    JSON; ?dataset=…&id=…&trial=… say which
    /run/NAME/events      server-sent events: a line whenever the run has something new

Requests with another Host or a foreign Origin are refused, so no web page can read runs through a visitor's browser.

A run in progress is read from its journal, while its writer is at work: what it has taken in so far is shown. Its page
is made again with each of the first answers, later with each twentieth part more (`step`), so all pages together take
time in proportion to the answers.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
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
from rewoo_bench.errors import RewooBenchError
from rewoo_bench.report.overview import claim_lines
from rewoo_bench.report.planned import read_planned
from rewoo_bench.report.rows import QuestionKey, QuestionTable
from rewoo_bench.report.trajectories import Trajectories
from rewoo_bench.report.write import live_page, read_page
from rewoo_bench.runs.folder import JOURNAL_FILE, QUESTIONS_FILE
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.journal.tables import export
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.past_runs import PastRun, current_status, find_runs, past_run
from rewoo_bench.system.http_session import server_log
from rewoo_bench.text.words import counted

HOST = "127.0.0.1"
POLL_S = 0.5
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_NO_FRAMES = "frame-ancestors 'none'"  # which counts in a header alone
_HEADS = ("run", "status", "exact match", "tokens", "data set", "model", "started")
_MARK = "*"  # of an oracle's exact match


class Viewer:
    """The runs of a folder, and the last snapshot of each that was looked at; tables of runs in progress in `work`."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder = folder.resolve()
        self.closing = asyncio.Event()
        """Ends the streams of events."""
        self._work = work
        self._snapshots: dict[Path, Snapshot] = {}
        self._locks: dict[Path, asyncio.Lock] = {}

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

    async def index(self, request: web.Request) -> web.Response:
        page = await to_thread.run_sync(_index, self.folder)
        headers = {**_HEADERS, "Content-Security-Policy": _NO_FRAMES}  # beside that of the page
        return web.Response(text=page, content_type="text/html", headers=headers)

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
                line = QuestionKey(key["dataset"], key["id"], int(key["trial"]))
                return _json(await to_thread.run_sync(snapshot.question, line))
            except (KeyError, ValueError):
                raise web.HTTPNotFound(text="no such question") from None

    async def events(self, request: web.Request) -> web.StreamResponse:
        """A line of `changed` whenever the run has something new; ends when the visitor leaves."""
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
        """The folder of the run in the address; none outside the folder that is shown."""
        for run in (self.folder, *self.folder.iterdir()):
            if run.name == request.match_info["name"] and (run / MANIFEST).is_file():
                return run
        raise web.HTTPNotFound(text="no such run")

    @asynccontextmanager
    async def _snapshot(self, folder: Path) -> AsyncIterator[Snapshot]:
        """The run as it is now; read again only where it has changed. Inside, no other request replaces its files."""
        async with self._locks.setdefault(folder, asyncio.Lock()):
            shown = self._snapshots.get(folder)
            if shown is None or shown.stamp != await to_thread.run_sync(stamp, folder):
                try:
                    shown = await to_thread.run_sync(take_snapshot, folder, self._work)
                except (RewooBenchError, OSError) as error:
                    raise web.HTTPServiceUnavailable(text=str(error)) from None
                self._snapshots[folder] = shown
            yield shown


@web.middleware
async def _local_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    assert request.transport is not None  # it is None only after the connection ended
    _, port = request.transport.get_extra_info("sockname")
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    origin = request.headers.get("Origin")
    foreign = origin is not None and origin.removeprefix("http://") not in hosts
    if foreign or request.headers.get("Host") not in hosts:
        raise web.HTTPForbidden(text="this server answers to its own page only")
    return await handler(request)


def _json(value: Any) -> web.Response:
    return web.Response(body=to_json(value), content_type="application/json", headers=_HEADERS)


def _index(folder: Path) -> str:
    """The list of the runs in a folder: those of `rewoo-bench runs`, with links to their pages."""
    lines = list(map(_line, find_runs(folder)))
    rows = "\n".join(lines) or f"<tr><td colspan={len(_HEADS)}>No runs yet.</td></tr>"
    heads = "".join(f"<th scope=col>{name}</th>" for name in _HEADS)
    note = f"<p>{_MARK} {ORACLE_ACCURACY}. Tokens are means per question.</p>" if lines else ""
    title = f"Runs in {escape(str(folder))}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta http-equiv="refresh" content="5"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:15px/1.5 system-ui,sans-serif;margin:1.5rem}}div{{overflow-x:auto}}table{{border-collapse:collapse}}
th,td{{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #8884}}</style></head>
<body><main><h1>{title}</h1>
<div tabindex=0><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}</main></body></html>
"""


def _line(run: PastRun) -> str:
    folder = Path(run.folder)
    name = folder.name
    try:
        so_far = "" if run.error else progress(folder, run)
    except RewooBenchError as error:  # of its journal
        run = replace(run, error=str(error))
    if run.error:
        return f"<tr><th scope=row>{escape(name)}</th><td colspan={len(_HEADS) - 1}>{escape(run.error)}</td></tr>"
    scores, tokens = [], []
    for each in run.architectures:  # `rewoo 0.98*` and `rewoo 1,711`; `rewoo` and `rewoo -` without an answer
        score, spent = run.exact_match.get(each), run.tokens.get(each)
        scores.append(each if score is None else f"{each} {score:.2f}{_MARK if run.is_meaningless else ''}")
        tokens.append(f"{each} {'-' if spent is None else f'{spent:,.0f}'}")
    status, started = f"{run.status}: {so_far}" if so_far else run.status, (run.started_at or "")[:16]
    cells = (status, ", ".join(scores), ", ".join(tokens), run.dataset, run.model, started.replace("T", " "))
    shown = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f"<tr><th scope=row><a href='/run/{quote(name, safe='')}/'>{escape(name)}</a></th>{shown}</tr>"


@asynccontextmanager
async def serving(folder: Path, port: int = 0) -> AsyncIterator[str]:
    """The server, at the address that is given. Raises `OSError` where the port is taken."""
    with TemporaryDirectory(prefix="rewoo-bench-live-") as work:
        viewer = Viewer(folder, Path(work))
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


# The run in a folder as the page's data: from its tables, or from its journal while it is in progress.


Stamp = tuple[tuple[str | int, ...], ...]

MOST_PATHS = 2_000  # questions whose traces are read for the filter by the look-up at which systems part


def step(answers: int) -> int:
    """Rises with each of the first twenty answers, and then whenever there is a twentieth part more."""
    return answers if answers < 20 else 20 + int(math.log(answers / 20, 1.05))


def stamp(folder: Path) -> Stamp:
    """Changes when a run's status, manifest or tables do, or its journal has some answers more (`step`)."""
    stamps: list[tuple[str | int, ...]] = []
    with suppress(RewooBenchError):
        stamps = [(current_status(folder, read_manifest(folder).status), step(_answers(folder)))]
    for name in (MANIFEST, QUESTIONS_FILE):
        with suppress(OSError):
            status = (folder / name).stat()
            stamps.append((name, status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def in_progress(folder: Path) -> bool:
    """Whether the journal may have more than the tables: the run goes on, or was killed."""
    is_unfinished = read_manifest(folder).status == "running" or not (folder / QUESTIONS_FILE).is_file()
    return is_unfinished and (folder / JOURNAL_FILE).is_file()


def _answers(folder: Path) -> int:
    """The number of answers in the journal of a run in progress."""
    if not in_progress(folder):
        return 0
    with closing(connect_to_read(folder / JOURNAL_FILE)) as database:
        ((answers,),) = database.read("SELECT count(*) FROM questions WHERE NOT failed")
    return int(answers)


def progress(folder: Path, run: PastRun) -> str:
    """`3 of 20 answers` for a run that isn't finished; else nothing."""
    if not in_progress(folder):
        return ""
    done = _answers(folder)
    return f"{done:,} of {counted(run.tasks, 'answer')}" if run.tasks else counted(done, "answer")


@dataclass
class Snapshot:
    """The data of a run's page at one moment."""

    stamp: Stamp
    head: dict[str, Any]
    table: QuestionTable
    trajectories: Trajectories

    def question(self, line: QuestionKey) -> dict[str, Any]:
        """The trajectories of a question, with the labels of their systems. Raises `ValueError`."""
        question = self.trajectories.question(self.table.lines.index(line))
        return {**question, "labels": [system["label"] for system in self.table.columns["systems"]]}


def take_snapshot(folder: Path, work: Path) -> Snapshot:
    """Reads a run; the tables of one in progress are made in `work`.

    Raises `DataError` where it has no finished question yet, or can't be read.
    """
    now = stamp(folder)
    live = in_progress(folder)
    source = _export(folder, work / folder.resolve().name) if live else folder
    head, table = read_page([source], [folder])
    if so_far := progress(folder, past_run(folder)):
        head["facts"].append(("Progress", so_far))
    if live:  # what takes longest waits for the run's end
        return Snapshot(now, head, table, Trajectories([source], table))
    planned = read_planned([folder])
    head |= {"claims": claim_lines([folder]), "planned": planned.shown}
    trajectories = Trajectories([folder], table, planned=planned)
    if len(table.lines) <= MOST_PATHS:
        answered = [trajectories.question(number)["systems"] for number in range(len(table.lines))]
        for place, system in enumerate(table.columns["systems"]):
            system["paths"] = [each[place] and each[place]["path"] for each in answered]
    return Snapshot(now, head, table, trajectories)


def _export(folder: Path, into: Path) -> Path:
    """The tables of what a journal has by now, in a folder of their own."""
    into.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / MANIFEST, into / MANIFEST)
    with closing(connect_to_read(folder / JOURNAL_FILE)) as database:
        journal = JournalReader(database)
        tasks = [TaskKey(*json.loads(name)) for name in journal.finished()]
        order = {facts.name: place for place, facts in enumerate(read_manifest(folder).architectures)}
        tasks.sort(key=lambda task: (task.example_id, task.trial, order.get(task.architecture, len(order))))
        export(into, journal, tasks, {})
    return into
