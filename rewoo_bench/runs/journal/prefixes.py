"""What an earlier call had of each prompt: the columns of calls.parquet from which the rule of any cache is applied;
what all prompts of a run share; and the recorded prompts, read in the order in which they were sent.

    found = shared_prefixes(journal.database, {"": "openai/a", "planner": "openai/b"})
    found.of(of_calls)                  # a line for each row of a table of calls, NaN where nothing is known

A prefix is there from the end of the call that sent it on: calls at the same time don't find each other's. It may end
after each message and after each 128 characters of one, so up to 127 characters are missed. Tokens are counted with the
pinned tokenizer and become those of `input_tokens` by the call's own ratio of the two; those of a whole earlier prompt
are as many as it had.

A prefix has no age where the time of either call is missing, as in imported runs (imports/write.py): such calls are in
the order in which they were made.

Each architecture, trial and model has prefixes of its own, as for a user who runs one of them.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.runs.columns import UNPRICED_ROLES
from rewoo_bench.runs.journal.beginnings import Beginnings
from rewoo_bench.runs.journal.database import JournalFile
from rewoo_bench.runs.journal.records import SECOND_ATTEMPT, TaskKey, unpacked, whole_form
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


class SharedPrefixes:
    """The columns `Shared` of each call in a journal."""

    def __init__(self) -> None:
        self._columns = array("d")
        self._lines: dict[int, list[int]] = {}  # of calls with the same task, place, role and tokens, by a hash of them

    def add(self, key: tuple[Any, ...], columns: Shared) -> None:
        """Columns of the next call with this key, by its time."""
        self._lines.setdefault(hash(key), []).append(len(self._columns))
        self._columns.extend(columns)

    def of(self, calls: pa.Table) -> NDArray[np.float64]:
        """The columns for rows of calls.parquet, all those of a question among them."""
        names = ("kind", "architecture", "example_id", "trial", "place", "role", "input_tokens", "output_tokens")
        rows = zip(*(calls[name].to_pylist() for name in names), strict=True)
        found = np.full((len(calls), len(Shared._fields)), np.nan)
        seen: Counter[int] = Counter()
        for position, (kind, architecture, example_id, trial, *rest) in enumerate(rows):
            key = hash((str(TaskKey(architecture, example_id, trial)), *rest))
            lines = self._lines.get(key, ()) if kind == "model" else ()
            if seen[key] < len(lines):
                first = lines[seen[key]]
                found[position] = self._columns[first : first + len(Shared._fields)]
                seen[key] += 1
        return found


def shared_prefixes(database: JournalFile, models: Mapping[str, str]) -> SharedPrefixes:
    """Works them out. `models` has the model of each role that has one of its own, and of every other role (`""`)."""
    found, beginnings = SharedPrefixes(), Beginnings(database)
    sent: dict[str, Sent] = {}  # of each model
    of_group: tuple[str, int] | None = None
    for recorded in recorded_calls(database, beginnings):
        if of_group != recorded.group:
            of_group, sent = recorded.group, {}
        model = models.get(recorded.role) or models.get("", "")
        found.add(recorded.key, _columns(recorded.sent, sent.setdefault(model, Sent(beginnings))))
        if recorded.is_last:
            for each in sent.values():
                each.forget(recorded.sent.task)
    return found


def _columns(call: SentCall, sent: Sent) -> Shared:
    prompt = sent.prompt(call)
    whole = prompt.size or 1.0
    own, own_age, others, others_age = sent.longest(prompt, call)
    longest = max(own, others)
    marks = marks_of(call, prompt)
    at_mark = sent.longest_marked(prompt, marks)
    sent.send(prompt, longest, call)

    def shared(length: int) -> int:
        if not length:
            return 0
        ends = sent.size(prompt, length)
        scaled = int(call.input_tokens * ends / whole + 1e-9)
        tokens = sent.tokens(prompt, length, scaled)  # a whole prompt has as many as it had
        return max(0, min(tokens, call.input_tokens - 1))

    most_of_task = sent.longest_of.get(call.task, 0)
    mine, theirs = min(shared(own), most_of_task), shared(others)
    found = mine if own >= others else theirs
    mine, theirs = min(mine, found), min(theirs, found)

    # Tokens up to a mark are rounded, where prefixes are rounded down; an earlier prompt has no fewer than its part.
    most = min(found + 1, most_of_task) if own >= others else found + 1

    def up_to(text: int) -> int:
        """Tokens up to the end of a text."""
        size, is_whole = prompt.texts[text].size, text == len(prompt.texts) - 1
        tokens = call.input_tokens if is_whole else round(call.input_tokens * size / whole)
        is_shared = longest > 0 and size <= sent.size(prompt, longest) + 1e-6
        return min(tokens, most) if is_shared else tokens

    first = up_to(marks[0]) if marks and marks[0] < len(prompt.texts) - 1 else 0
    last = up_to(marks[-1]) if marks else 0
    stored = 0
    if at_mark is not None:
        stored = sent.tokens_at(prompt.texts[at_mark], min(up_to(at_mark), most))
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
    for task, role, prompt in database.each(f"SELECT task, name, prompt FROM calls WHERE {_COUNTED} ORDER BY rowid"):
        architecture, example_id, _ = json.loads(task)
        if example_id not in questions or architecture not in tools:
            continue  # a replay of a part of a run
        last, form_id = unpacked(prompt)
        form = beginnings.text(form_id)
        if (architecture, role) not in found:
            whole = read_form(whole_form([part.form for part in beginnings.parts(last)], form))
            if not whole.roles:
                continue  # an imported prompt of which they aren't known
            found[architecture, role] = _Common(example_id, whole.roles, beginnings)
        found[architecture, role].add(example_id, last, form)
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
        """Adds a prompt by its last message."""
        self.asked.add(example_id)
        tools, before = read_form(form).tools, last
        while before and (tools, before) not in self._seen:
            before = self._beginnings.part(before).before
        self._seen.add((tools, last))
        if before:
            return  # it goes on with an earlier prompt
        texts = [tools, *(self._beginnings.text(part.text) for part in self._beginnings.parts(last))]
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


# The recorded model calls of a run, by architecture and trial, in the order in which they were sent.
#
# A judge's calls are in no question's cost, as in the column `cost_usd`; nor are those that generate nothing, which
# have prices of their own.


_COUNTED = f"kind = 'model' AND status = 'ok' AND name NOT IN ({', '.join(map(repr, sorted(UNPRICED_ROLES)))})"
_IN_ORDER = f"""
SELECT task, json_extract(task, '$[0]') AS architecture, json_extract(task, '$[2]') AS trial, place, name, prompt,
    coalesce(json_extract(facts, '$.receipt.sent_at'), 0.0) AS sent_at,
    coalesce(json_extract(facts, '$.receipt.ended_at'), 0.0), json_extract(facts, '$.receipt.cache_marks'),
    coalesce(json_extract(facts, '$.usage.input_tokens'), 0),
    coalesce(json_extract(facts, '$.usage.output_tokens'), 0),
    lead(0, 1, 1) OVER (PARTITION BY task ORDER BY json_extract(facts, '$.receipt.sent_at'), rowid)
FROM (SELECT rowid, *, iif(json_valid(answer), answer, '{{}}') AS facts FROM calls WHERE {_COUNTED})
WHERE json_extract(facts, '$.{SECOND_ATTEMPT}') IS NULL
ORDER BY architecture, trial, sent_at, rowid
"""


class RecordedCall(NamedTuple):
    """An answered model call that counts in a question's cost."""

    group: tuple[str, int]
    """Architecture and trial."""
    role: str
    key: tuple[Any, ...]
    """Task, place, role and tokens, as texts and numbers."""
    is_last: bool
    """Whether it is its question's last one."""
    sent: SentCall


@lru_cache(maxsize=256)
def read_form(text: str) -> RequestForm:
    """The form of a request from its recorded text. Tools are text, too: a provider reads them as such."""
    decoder, position, facts = json.JSONDecoder(), 0, dict[str, Any]()
    while position < len(text):
        part, position = decoder.raw_decode(text, position)
        facts |= part if isinstance(part, dict) else {}
    return RequestForm(
        tuple(str(facts.get("roles", "")).split()), json.dumps(facts["tools"]) if facts.get("tools") else ""
    )


def recorded_calls(database: JournalFile, beginnings: Beginnings) -> Iterator[RecordedCall]:
    """The answered model calls of a journal that count in a question's cost."""
    tasks: dict[str, int] = {}
    for number, row in enumerate(database.each(_IN_ORDER)):
        text, architecture, trial, place, role, prompt, start, end, marks, tokens_in, tokens_out, is_last = row
        task, (last, form_id) = tasks.setdefault(text, len(tasks)), unpacked(prompt)
        form, ends = read_form(beginnings.text(form_id)), tuple(json.loads(marks or "[]"))
        sent = SentCall(number, task, float(start), float(end), tokens_in, last, form, ends)
        yield RecordedCall((architecture, trial), role, (text, place, role, tokens_in, tokens_out), bool(is_last), sent)
