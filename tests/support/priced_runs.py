"""Run folders with a journal and tables of made-up calls, whose tokens and times a test chooses.

    ask(0, 10, 1380, 50, text("P", 1280), text("q1", 100))      # sent at second 0, answered at 10
    write(folder, {("react", "q1"): [ask(…), ask(…)]})
    costs(folder, "openai")["react"].usd_per_1000

A text of n tokens has 4 n characters, so that characters are converted without rounding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anyio
from gate_runs import row, write_run

from rewoo_bench.analysis.call_costs import priced, read_calls
from rewoo_bench.analysis.prices import pricing_of
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import CallKey, CallRecord, TaskKey, as_bytes, prompt_with
from rewoo_bench.runs.journal.store import JournalReader, open_journal
from rewoo_bench.runs.journal.tables import export
from rewoo_bench.text.tokens import TOKENS_BEFORE_ANSWER, TOKENS_PER_MESSAGE, count_tokens

BEGUN = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
SHEET = """title = "A sheet of a test"
unit = "USD per million tokens"
source = "made up"
as_of = 2026-11-24
"""


class Ask(NamedTuple):
    """A model call; seconds are counted from `BEGUN`. `lost`: tokens of its failed attempts."""

    start: float
    end: float
    tokens_in: int
    tokens_out: int
    texts: tuple[str, ...]
    marks: tuple[int, ...] = ()
    role: str = "agent"
    status: Literal["ok", "error"] = "ok"
    answer: str = "Neva"
    lost: int = 0
    is_timed: bool = True
    schema: Mapping[str, Any] | None = None


def ask(start: float, end: float, tokens_in: int, tokens_out: int, *texts: str, **more: Any) -> Ask:
    return Ask(start, end, tokens_in, tokens_out, texts, **more)


def text(name: str, tokens: int) -> str:
    """A message of so many tokens, with those of its marks, that begins with its name.

    A prompt has `TOKENS_BEFORE_ANSWER` more than its messages: the last one of its question is that much shorter.
    """
    begin = f"{name}:"
    return begin + " a" * (tokens - TOKENS_PER_MESSAGE - count_tokens(begin))


def asked(name: str, tokens: int) -> str:
    """The message with the question of a prompt: with the tokens before the answer it has so many."""
    return text(name, tokens - TOKENS_BEFORE_ANSWER)


def write(folder: Path, calls: Mapping[tuple[str, str], Sequence[Ask]], **rows: Any) -> Path:
    """A run of some questions: by architecture and id their calls. `rows` are values of all rows."""
    lines = [
        row(architecture=architecture, example_id=id_, started_at=BEGUN, tool_calls=len(asked) - 1, **rows)
        for (architecture, id_), asked in calls.items()
    ]
    write_run(folder, lines)
    records = [
        _record(TaskKey(architecture, id_, 0), number, each)
        for (architecture, id_), asked in calls.items()
        for number, each in enumerate(asked)
    ]
    questions = [
        (TaskKey(architecture, id_, 0), as_bytes({"question": line, "calls": list(_rows(architecture, id_, asked))}))
        for line, ((architecture, id_), asked) in zip(lines, calls.items(), strict=True)
    ]
    anyio.run(_write_journal, folder, records, questions)
    with closing(connect_to_read(folder / "journal.sqlite")) as database:
        export(folder, JournalReader(database), [task for task, _ in questions], lines[0])
    return folder


class Cost(NamedTuple):
    """What an architecture costs under a price: means per question, of the calls as `priced` counts them."""

    usd_per_1000: float
    cached_share: float
    """Of all input tokens."""
    cache_write_tokens: float
    input_tokens: float


def costs(run: Path, price: str | Path) -> dict[str, Cost]:
    """The costs of each architecture of a run; the dollars are those of `pricing_of`."""
    rows = load(run)
    calls, pricing = read_calls(run, rows), pricing_of([run], rows, manifests(run), [str(price)])
    assert pricing.cost_usd is not None
    of_calls, sizes = priced(calls, {"": named_tariff(str(price))}), calls.columns
    tokens = calls.of_rows(sizes["input_tokens"] + sizes["lost_input_tokens"])
    found = {}
    for name in rows["architecture"].astype(str).unique():
        own = (rows["architecture"] == name).to_numpy(bool)
        cached, written = (calls.of_rows(values)[own] for values in (of_calls.cached, of_calls.written))
        usd = 1000 * float(pricing.cost_usd[own].mean())
        found[name] = Cost(usd, cached.sum() / tokens[own].sum(), float(written.mean()), float(tokens[own].mean()))
    return found


def sheet(folder: Path, body: str, head: str = SHEET) -> Path:
    """A file of prices."""
    path = folder / "sheet.toml"
    path.write_text(head + body)
    return path


def _record(task: TaskKey, number: int, call: Ask) -> CallRecord:
    usage = {"input_tokens": call.tokens_in, "output_tokens": call.tokens_out, "cached_input_tokens": 0}
    billed = {**usage, "input_tokens": call.tokens_in + call.lost}
    receipt: dict[str, Any] = {"attempts": 1, "billed": billed, "latency_s": call.end - call.start}
    if call.is_timed:
        receipt |= {"sent_at": BEGUN.timestamp() + call.start, "ended_at": BEGUN.timestamp() + call.end}
    if call.marks:
        receipt["cache_marks"] = list(call.marks)
    answer: dict[str, Any] = {"receipt": receipt}
    if call.status == "ok":
        answer |= {"text": call.answer, "usage": usage, "finish_reason": "stop", "tool_calls": []}
    form = json.dumps({"roles": " ".join(["user"] * len(call.texts)), "grammar": None})
    form += json.dumps({"schema": call.schema}) if call.schema else ""
    key = CallKey(f"turn {number}", "model", call.role, number.to_bytes(8, "big"))
    prompt = prompt_with([(text, "") for text in call.texts], form)
    return CallRecord(task, key, call.status, prompt, answer, call.tokens_in + call.lost, None)


async def _write_journal(
    folder: Path, records: Sequence[CallRecord], questions: Sequence[tuple[TaskKey, bytes]]
) -> None:
    async with open_journal(folder / "journal.sqlite") as journal:
        for record in records:
            await journal.add_call(record)
        for task, rows in questions:
            await journal.add_question(task, rows, b"{}", failed=False)


def _rows(architecture: str, id_: str, asked: Sequence[Ask]) -> Iterator[dict[str, Any]]:
    """The rows of calls.parquet."""
    for number, call in enumerate(asked):
        ok = call.status == "ok"
        yield {
            "run_id": "r", "architecture": architecture, "example_id": id_, "trial": 0, "call_index": number,
            "kind": "model", "name": "m", "role": call.role, "place": f"turn {number}", "plan_depth": 0,
            "status": call.status, "attempts": 1, "input_tokens": call.tokens_in * ok, "cached_input_tokens": None,
            "output_tokens": call.tokens_out * ok, "reasoning_tokens": 0, "cache_write_tokens": 0,
            "billed_tokens": call.tokens_in + call.tokens_out + call.lost, "usage_source": "provider",
            "latency_s": call.end - call.start, "waiting_s": 0.0, "replayed": False,
            "started_at": BEGUN + timedelta(seconds=call.start),
        }  # fmt: skip
