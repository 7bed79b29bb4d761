"""report.html: one file with everything in it.

    write_page([Path("results/local/my-run")], Path("report.html"))

    <script type="application/json" id="overview">   the head of the page, small
    <script type="text/plain" class="chunk">         trajectories of some questions each, compressed
    <script type="text/plain" id="table">            the table of questions, compressed
    <script>                                         the program (page/built/report.js), which the policy names by hash

Nothing is fetched: the policy (CSP) forbids it. Compressed parts are deflate in Base64, which the browser's own
DecompressionStream reads when a question is opened.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from rewoo_bench.analysis.prices import pricing_of
from rewoo_bench.errors import DataError
from rewoo_bench.report.overview import claim_lines, overview
from rewoo_bench.report.planned import TraceKey, read_planned
from rewoo_bench.report.rows import QuestionTable, question_table
from rewoo_bench.report.trajectories import PromptsOf, Trajectories
from rewoo_bench.runs.folder import JOURNAL_FILE, load, manifests
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.past_runs import current_status
from rewoo_bench.system.files import replaced

BUNDLE = Path(__file__).parent / "page" / "built"
QUESTIONS_A_CHUNK = 32
_LEVEL = 6  # of deflate: 9 takes three times as long for 2% less


def write_page(
    runs: Sequence[Path],
    out: Path,
    *,
    texts: bool = True,
    figures: bool = True,
    prompts: bool = False,
) -> int:
    """Writes the page of some runs; returns its number of bytes.

    `texts` False leaves out what a data set, a tool or a model said. `prompts` adds the prompt and the raw completion
    of every model call of a run with a journal.
    Raises `DataError` for what is no run, and `UsageError` where `out` can't be written.
    """
    head, table = read_page(runs, runs, texts=texts)
    planned = read_planned(runs, texts=texts)
    head |= {"figures": list(_figures(runs)) if figures else [], "claims": claim_lines(runs), "planned": planned.shown}
    is_of_a_run = (out.parent / MANIFEST).is_file()  # somebody else's, perhaps, with links in it
    out.parent.mkdir(exist_ok=True)
    with _journal_prompts(runs if prompts else ()) as prompts_of, replaced(out, follows=not is_of_a_run) as file:
        trajectories = Trajectories(runs, table, prompts_of, planned)
        parts = _parts(head, table, lambda number: trajectories.question(number, texts=texts))
        return sum(file.write(part) for part in parts)


def read_page(
    runs: Sequence[Path], folders: Sequence[Path], *, texts: bool = True
) -> tuple[dict[str, Any], QuestionTable]:
    """The head of the page, without figures, claims and plans, and its table.

    `folders` are those of the runs, whose tables may be copies.

    Raises `DataError`.
    """
    rows = load(*runs)
    if not len(rows):
        raise DataError(f"{str(folders[0])!r} has no finished question")
    present = {
        run: manifest.model_copy(update={"status": current_status(folder, manifest.status)})
        for tables, folder in zip(runs, folders, strict=True)
        for run, manifest in manifests(tables).items()
    }
    pricing = pricing_of(runs, rows, present)
    head = overview(rows, present, pricing, texts=texts)
    return {**head, "texts": texts, "figures": [], "claims": [], "planned": []}, question_table(
        pricing.of(rows), texts=texts
    )


def live_page(address: str) -> tuple[str, str]:
    """The page without data, which it fetches from `address`, and its policy (for the header)."""
    start, end, policy = _frame("rewoo_bench", f' data-live="{escape(address)}"', "connect-src 'self'; ")
    return start + end, policy


def _frame(title: str, attributes: str = "", more: str = "") -> tuple[str, str, str]:
    """What is before and after the page's data, and its policy, with `more` in it."""
    script, style = ((BUNDLE / name).read_text(encoding="utf-8") for name in ("report.js", "report.css"))
    script_hash, style_hash = (b64encode(sha256(each.encode()).digest()).decode() for each in (script, style))
    policy = (
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; {more}"
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    start = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="rewoo_bench">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<div id="app"{attributes}><noscript><p>This page shows its tables with JavaScript.</p></noscript></div>
"""
    return start, f"<script>{script}</script>\n</body>\n</html>\n", policy


def _parts(head: dict[str, Any], table: QuestionTable, question: Callable[[int], dict[str, Any]]) -> Iterator[bytes]:
    """The page, piece by piece."""

    start, end, _ = _frame(str(head["title"]))
    yield start.encode("utf-8", "replace")
    # JSON that can stand in a script element: no `<` begins a tag, and no line separator ends a line.
    overview = json.dumps(head, ensure_ascii=True, default=str).replace("<", "\\u003c").replace("&", "\\u0026")
    yield f'<script type="application/json" id="overview">{overview}</script>\n'.encode()
    numbers = range(len(table.lines))
    systems = [{**system, "paths": []} for system in table.columns["systems"]]
    for first in numbers[::QUESTIONS_A_CHUNK]:
        chunk = [question(number) for number in numbers[first : first + QUESTIONS_A_CHUNK]]
        for each in chunk:
            for system, trajectory in zip(systems, each["systems"], strict=True):
                system["paths"].append(trajectory and trajectory["path"])
        yield b'<script type="text/plain" class="chunk">'
        yield _packed(chunk)
        yield b"</script>\n"
    yield f'<script type="text/plain" id="table" data-chunk="{QUESTIONS_A_CHUNK}">'.encode()
    yield _packed({**table.columns, "systems": systems})
    yield b"</script>\n"
    yield end.encode()


def _packed(value: Any) -> bytes:
    return b64encode(zlib.compress(to_json(value), _LEVEL, wbits=-zlib.MAX_WBITS))


def _figures(runs: Sequence[Path]) -> Iterator[dict[str, str]]:
    """The plots that these runs have data for, as pictures in the page: SVG in a data address.

    A picture is a document of its own, so nothing in it can run, and its styles need no place in the page's policy.
    """
    from rewoo_bench.report.plots import data, draw, style  # matplotlib, which a page without figures needn't wait for

    for name, picture in draw.draw(data.read(runs)):
        buffer = BytesIO()
        with style.styled():
            picture.figure.savefig(buffer, format="svg", metadata=draw.PICTURE_METADATA["svg"])
        yield {
            "name": name,
            "alt": picture.caption,
            "src": f"data:image/svg+xml;base64,{b64encode(buffer.getvalue()).decode()}",
        }


@contextmanager
def _journal_prompts(runs: Sequence[Path]) -> Iterator[PromptsOf]:
    """A function from a run's question to the prompts and raw completions of its model calls, from the journal.

    A run without a journal has none. Raises `DataError`.
    """
    journals: dict[str, JournalReader] = {}
    with ExitStack() as stack:
        for folder in runs:
            if (folder / JOURNAL_FILE).is_file():
                database = stack.enter_context(closing(connect_to_read(folder / JOURNAL_FILE)))
                journals[read_manifest(folder).run_id] = JournalReader(database)

        def prompts(key: TraceKey) -> list[dict[str, Any]]:
            run, architecture, example_id, trial = key
            task = TaskKey(architecture, example_id, trial)
            shown = []
            for record in journals[run].calls(task) if run in journals else ():
                if record.key.kind == "model":
                    said = record.answer.get("text" if record.status == "ok" else "message")
                    *texts, _ = journals[run].texts(record)  # the last one is the request's form: roles, grammar, tools
                    shown.append({"place": record.key.place, "prompt": texts, "completion": str(said or "")})
            return shown

        yield prompts
