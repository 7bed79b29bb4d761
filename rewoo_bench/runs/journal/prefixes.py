"""What an earlier call had of each prompt: the columns of calls.parquet from which the rule of any cache is applied;
what all prompts of a run share; and the recorded prompts, read in the order in which they were sent.

    found = shared_prefixes(journal.database, {"": "openai/a", "planner": "openai/b"})
    found.of(of_calls)                  # a line for each row of a table of calls, NaN where nothing is known

A prefix is there from the end of the call that sent it on: calls at the same time don't find each other's. It may end
after each message and after each 128 characters of one, so up to 127 characters are missed. Characters become tokens
by the call's own ratio: input tokens as in `input_tokens`, by characters of the prompt. They are never more than the
tokens of an earlier prompt that begins with them.

A prefix has no age where the time of either call is missing, as in imported runs (imports/write.py): such calls are in
the order in which they were made.

Each architecture, trial and model has prefixes of its own, as for a user who runs one of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import UNPRICED_ROLES
from rewoo_bench.runs.journal.beginnings import Beginnings
from rewoo_bench.runs.journal.database import JournalFile
from rewoo_bench.runs.journal.records import SECOND_ATTEMPT, recorded_answer, unpacked, whole_form
from rewoo_bench.runs.journal.sent import RequestForm, Sent, SentCall, marks_of
from rewoo_bench.text.tokens import TOKENS_PER_MESSAGE, count_tokens

if TYPE_CHECKING:
    import pyarrow as pa


class Shared(NamedTuple):
    """What is known of a prompt when it is sent; the columns of calls.parquet with these names (runs/columns.py)."""

    shared_question_tokens: float
    shared_question_age_s: float
    shared_run_tokens: float
    shared_run_age_s: float
    marked_tokens: float
    last_marked_tokens: float
    shared_marked_tokens: float


@dataclass(frozen=True, slots=True)
class SharedPrefixes:
    """The columns `Shared` of each call in a journal. `keys` are hashes of task, place, role and tokens, sorted."""

    keys: NDArray[np.int64]
    lines: NDArray[np.int64]
    """Of `columns`, for each key."""
    columns: NDArray[np.float64]

    def of(self, calls: pa.Table) -> NDArray[np.float64]:
        """The columns for rows of calls.parquet, all those of a question among them."""
        names = ("kind", "architecture", "example_id", "trial", "place", "role", "input_tokens", "output_tokens")
        rows = zip(*(calls[name].to_pylist() for name in names), strict=True)
        found = np.full((len(calls), len(Shared._fields)), np.nan)
        seen: Counter[int] = Counter()
        for position, (kind, *task, place, role, input_tokens, output_tokens) in enumerate(rows):
            if kind == "model":
                key = hash((json.dumps(task), place, role, input_tokens, output_tokens))
                line = int(np.searchsorted(self.keys, key)) + seen[key]
                seen[key] += 1
                if line < len(self.keys) and self.keys[line] == key:
                    found[position] = self.columns[self.lines[line]]
        return found


def shared_prefixes(database: JournalFile, models: Mapping[str, str]) -> SharedPrefixes:
    """Works them out. `models` has the model of each role that has one of its own, and of every other role (`""`)."""
    calls = recorded_prompts(database)
    keys = np.fromiter(
        (
            hash((calls.tasks[task], calls.places[place], calls.roles[role], *sizes))
            for task, place, role, *sizes in calls.numbers("task", "place", "role", "input", "output")
        ),
        dtype=np.int64,
    )
    # Each architecture, trial and model is a group of its own.
    numbers: dict[tuple[object, ...], int] = {}
    parts = [json.loads(task)[::2] for task in calls.tasks]  # architecture and trial
    of_roles = [models.get(role) or models.get("", "") for role in calls.roles]
    groups = np.fromiter(
        (
            numbers.setdefault((*parts[task], of_roles[role]), len(numbers))
            for task, role in calls.numbers("task", "role")
        ),
        dtype=np.int32,
    )
    columns = np.full((len(keys), len(Shared._fields)), np.nan)
    for group in range(len(numbers)):
        sent = Sent(calls.beginnings)
        left = Counter(calls.kept["task"][groups == group].tolist())
        try:
            for call in calls.among(groups == group):
                columns[call.number] = _columns(call, sent)
                left[call.task] -= 1
                if not left[call.task]:
                    sent.forget(call.task)
        except DataError:  # a text of the prompts is missing: nothing is known of this call and those after it
            continue
    order = np.argsort(keys, kind="stable")
    return SharedPrefixes(keys[order], order, columns)


def _columns(call: SentCall, sent: Sent) -> Shared:
    prompt = sent.prompt(call)
    whole = prompt.characters or 1
    own, own_age, others, others_age = sent.longest(prompt, call)
    longest = max(own, others)
    marks = marks_of(call, prompt)
    at_mark = sent.longest_marked(prompt, marks)
    sent.send(prompt, longest, call)

    def shared(length: int) -> int:
        if not length:
            return 0
        ends = sent.characters(prompt, length)
        scaled = max(0, min(int(call.input_tokens * ends / whole + 1e-9), call.input_tokens - 1))
        return min(scaled, sent.tokens(prompt, length, scaled))  # a whole prompt has as many as it had

    most_of_task = sent.longest_of.get(call.task, 0)
    mine, theirs = min(shared(own), most_of_task), shared(others)
    found = mine if own >= others else theirs
    mine, theirs = min(mine, found), min(theirs, found)

    # Tokens up to a mark are rounded, where prefixes are rounded down; an earlier prompt has no fewer than its part.
    most = min(found + 1, most_of_task) if own >= others else found + 1

    def up_to(text: int) -> int:
        """Tokens up to the end of a text."""
        characters = prompt.texts[text].characters
        tokens = round(call.input_tokens * characters / whole)
        is_shared = longest > 0 and characters <= sent.characters(prompt, longest)
        return min(tokens, most) if is_shared else tokens

    first = up_to(marks[0]) if marks and marks[0] < len(prompt.texts) - 1 else 0
    last = up_to(marks[-1]) if marks else 0
    stored = 0
    if at_mark is not None:
        stored = min(up_to(at_mark), most)
        stored = min(stored, sent.tokens_at(prompt.texts[at_mark], stored))
    return Shared(mine, own_age, theirs, others_age, first, last, stored)


# The part of their prompts that the questions of a run share, and where it ends: what a prefix cache can hold.
#
#     common_prefixes(journal.database, {"q1": "Which river …?", …}, {"rewoo": ["Search", "LLM"]})
#     {"rewoo": {"planner": {"tokens": 1139, "ends_in": "question"}, "solver": {…}}}
#
# Of each architecture and role all calls are compared, whatever their order and times. Tools that go with a request are
# read first, as providers do. Tokens are those of the pinned tokenizer.


def common_prefixes(
    database: JournalFile, questions: Mapping[str, str], tools: Mapping[str, Collection[str]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """By architecture and role, of the roles that two questions or more called.

    `questions` are texts by id, `tools` names by architecture; calls of others don't count.
    """
    beginnings = Beginnings(database)
    found: dict[tuple[str, str], _Common] = {}
    for _, (task, _, _, role, _, _, _, prompt, *_) in answered_calls(database):
        architecture, example_id, _ = json.loads(task)
        if example_id not in questions or architecture not in tools:
            continue  # a replay of a part of a run
        last, form_id = unpacked(prompt)
        if (form := beginnings.text(form_id)) is None:
            continue
        try:
            if (common := found.get((architecture, role))) is not None:
                common.add(example_id, last, form)
                continue
            whole = read_form(whole_form([part.form for part in beginnings.parts(last)], form))
        except DataError:
            continue
        if whole.roles:
            common = found[architecture, role] = _Common(example_id, whole.roles, beginnings)
            common.add(example_id, last, form)
    prefixes: dict[str, dict[str, dict[str, Any]]] = {}
    for (architecture, role), common in sorted(found.items()):
        if len(common.asked) > 1:
            question, names = questions[common.first_id], tools[architecture]
            facts = {"tokens": common.tokens, "ends_in": common.part(question, names)}
            prefixes.setdefault(architecture, {})[role] = facts
    return prefixes


class _Common:
    """What prompts have in common: so many whole texts of the first prompt, tools first, and a part of the next."""

    def __init__(self, example_id: str, roles: Sequence[str], beginnings: Beginnings) -> None:
        self.first_id = example_id
        self.asked: set[str] = set()
        self._roles = roles
        self._beginnings = beginnings
        self._seen: set[tuple[str, int]] = set()
        self._texts: list[str] = []
        self._whole = 0
        self._rest = ""

    def add(self, example_id: str, last: int, form: str) -> None:
        """Raises `DataError` where messages are missing."""
        self.asked.add(example_id)
        tools, before = read_form(form).tools, last
        while before and (tools, before) not in self._seen:
            before = self._beginnings.part(before).before
        self._seen.add((tools, last))
        if before:
            return  # it goes on with an earlier prompt
        texts = [tools, *(self._beginnings.text(part.text) or "" for part in self._beginnings.parts(last))]
        if not self._texts:
            self._texts, self._whole = texts, len(texts)
        same = next((n for n in range(min(self._whole, len(texts))) if texts[n] != self._texts[n]), None)
        if same is None:
            same = min(self._whole, len(texts))
        if same < self._whole:
            self._whole, self._rest = same, self._texts[same]
        other = texts[same] if same < len(texts) else ""
        self._rest = commonprefix([self._rest, other])  # noqa: RUF071 - of texts, character by character

    @property
    def tokens(self) -> int:
        tools, *messages = self._texts[: self._whole] or [""]
        sizes = (count_tokens(text) + TOKENS_PER_MESSAGE for text in messages)
        return count_tokens(tools) + sum(sizes) + count_tokens(self._rest)

    def part(self, question: str, tools: Collection[str]) -> str:
        """The part of the first prompt in which others begin to differ."""
        message, end = self._whole - 1, len(self._rest)
        if message < 0:
            return "tool list"
        users = (n for n, role in enumerate(self._roles) if role == "user")
        place = next((n for n in users if question and question in self._texts[n + 1]), len(self._roles) - 1)
        if message > place:
            return "trace"
        text = self._texts[message + 1]
        if self._roles[message] == "system" or (place == message == 0 and end < text.find(question)):
            lines = [*re.finditer(rf"^\W*(?:{'|'.join(map(re.escape, tools))})\b.*$", text, re.MULTILINE)]
            listed = bool(tools and lines) and lines[0].start() <= end <= lines[-1].end()
            return "tool list" if listed else "instructions"
        return "question" if message == place else "exemplars"


# The recorded model calls of a run in the order in which they were sent, read from its journal without holding it.
#
#     calls = recorded_prompts(journal.database)
#     calls.tasks[3]                      # '["rewoo", "q1", 0]'
#     for call in calls.among(chosen):    # one at a time
#         call.task, call.prompt, call.input_tokens
#
# A first pass over the journal keeps some numbers of each call; then calls are read again in the order of their times.
#
# A judge's calls are in no question's cost, as in the column `cost_usd`; nor are those that generate nothing, which
# have prices of their own.


_CALLS_AT_ONCE, _NUMBERS_AT_ONCE = 200, 10_000
_KEPT = np.dtype(
    [("number", "i8"), ("task", "i4"), ("role", "i2"), ("place", "i4"), ("start", "f8"), ("end", "f8"),
     ("input", "i4"), ("output", "i4")]
)  # fmt: skip


@lru_cache(maxsize=256)
def read_form(text: str) -> RequestForm:
    """The form of a request from its recorded text. Tools and calls are text, too: a provider reads them as such."""
    decoder, position, facts = json.JSONDecoder(), 0, dict[str, Any]()
    while position < len(text):
        part, position = decoder.raw_decode(text, position)
        facts |= part if isinstance(part, dict) else {}
    tools, schema = (json.dumps(facts[name]) if facts.get(name) else "" for name in ("tools", "schema"))
    calls = tuple(json.dumps(calls) if calls or id_ else "" for calls, id_ in facts.get("calls", ()))
    return RequestForm(tuple(str(facts.get("roles", "")).split()), tools, schema, calls)


def answered_calls(database: JournalFile) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Number and record of each answered model call that counts in a question's cost."""
    for number, record in database.numbered("calls"):
        _, _, kind, role, _, _, status, *_ = record
        if kind == "model" and status == "ok" and role not in UNPRICED_ROLES:
            yield number, record


@dataclass(frozen=True, slots=True)
class RecordedPrompts:
    """The calls of a run's journal. `kept` has numbers of each answered call, in the order of their starts."""

    kept: NDArray[Any]
    tasks: tuple[str, ...]
    roles: tuple[str, ...]
    places: tuple[str, ...]
    """The names that `task`, `role` and `place` of `kept` are positions in."""
    beginnings: Beginnings
    _database: JournalFile

    def numbers(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """These fields of each call of `kept`."""
        for first in range(0, len(self.kept), _NUMBERS_AT_ONCE):
            yield from self.kept[list(names)][first : first + _NUMBERS_AT_ONCE].tolist()

    def among(self, chosen: NDArray[np.bool_]) -> Iterator[SentCall]:
        """The calls of a mask over `kept`, with their prompts. Raises `DataError` where texts are missing."""
        positions = np.flatnonzero(chosen)
        for first in range(0, len(positions), _CALLS_AT_ONCE):
            some = positions[first : first + _CALLS_AT_ONCE]
            rows = self._database.numbered_rows("calls", self.kept["number"][some].tolist())
            fields = self.kept[["task", "start", "end", "input"]][some].tolist()
            for number, (task, start, end, input_tokens), row in zip(some.tolist(), fields, rows, strict=True):
                marks = (recorded_answer(row[8]).get("receipt") or {}).get("cache_marks") or []
                last, form_id = unpacked(row[7])
                if (form := self.beginnings.text(form_id)) is None:
                    raise DataError(f"{self._database.path}: texts of its prompts are missing or damaged")
                yield SentCall(number, task, start, end, input_tokens, last, read_form(form), tuple(marks))


def recorded_prompts(database: JournalFile) -> RecordedPrompts:
    """The answered model calls of a journal that count in a question's cost."""
    tasks: dict[str, int] = {}
    roles: dict[str, int] = {}
    places: dict[str, int] = {}

    def numbers() -> Iterator[tuple[float, ...]]:
        for number, (task, place, _, role, _, _, _, _, text, *_) in answered_calls(database):
            answer = recorded_answer(text)
            if SECOND_ATTEMPT in answer:
                continue
            receipt, usage = answer.get("receipt") or {}, answer.get("usage") or {}
            times = (float(receipt.get(name, 0.0)) for name in ("sent_at", "ended_at"))
            sizes = (int(usage.get(name) or 0) for name in ("input_tokens", "output_tokens"))
            named = (each.setdefault(name, len(each)) for each, name in ((tasks, task), (roles, role), (places, place)))
            yield (number, *named, *times, *sizes)

    kept = np.fromiter(numbers(), dtype=_KEPT)
    kept = kept[np.argsort(kept["start"], kind="stable")]
    return RecordedPrompts(kept, tuple(tasks), tuple(roles), tuple(places), Beginnings(database), database)
