"""What an earlier call had of each prompt: the columns of calls.parquet from which the rule of any cache is applied.

    found = shared_prefixes(journal.database, {"": "openai/a", "planner": "openai/b"})
    found.of(of_calls)                  # a line for each row of a table of calls, NaN where nothing is known

A prefix is there from the end of the call that sent it on: calls at the same time don't find each other's. It may end
after each message and after each 128 characters of one, so up to 127 characters are missed. Characters become tokens
by the call's own ratio: input tokens as in `input_tokens`, by characters of the prompt.

Each architecture, trial and model has prefixes of its own, as for a user who runs one of them.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from os.path import commonprefix
from struct import unpack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.database import JournalFile, is_sound
from rewoo_bench.runs.journal.prompts import Prompt, RecordedPrompts, SentCall, recorded_prompts
from rewoo_bench.text.tokens import TOKENS_PER_MESSAGE, count_tokens

if TYPE_CHECKING:
    import pyarrow as pa


CHUNK = 128  # characters between two places at which a common prefix may end; so may it after each text
_TEXTS_KNOWN = 2_000
_MOST = 500_000  # prefixes that are remembered; the ones not sent for longest are forgotten
_SEVERAL = -1


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
    columns: NDArray[np.float64]

    def of(self, calls: pa.Table) -> NDArray[np.float64]:
        """The columns for rows of calls.parquet, all those of a question among them."""
        names = ("kind", "architecture", "example_id", "trial", "place", "role", "input_tokens", "output_tokens")
        rows = zip(*(calls[name].to_pylist() for name in names), strict=True)
        wanted = [_key(_task(*row[1:4]), *row[4:]) if row[0] == "model" else None for row in rows]
        found = np.full((len(wanted), len(Shared._fields)), np.nan)
        seen: Counter[int] = Counter()
        for position, key in enumerate(wanted):
            if key is None:
                continue
            place = int(np.searchsorted(self.keys, key)) + seen[key]
            seen[key] += 1
            if place < len(self.keys) and self.keys[place] == key:
                found[position] = self.columns[place]
        return found


def shared_prefixes(database: JournalFile, models: Mapping[str, str]) -> SharedPrefixes:
    """Works them out. `models` has the model of each role that has one of its own, and of every other role (`""`)."""
    calls = recorded_prompts(database)
    kept = calls.kept
    columns = np.full((len(kept), len(Shared._fields)), np.nan)
    for chosen in _groups(calls, models):
        for number, values in _sent_in_turn(calls, chosen):
            columns[number] = values
    names = (calls.tasks, calls.places, calls.roles)
    fields = kept[["task", "place", "role", "input", "output"]].tolist()
    keys = np.array(
        [_key(names[0][task], names[1][place], names[2][role], *sizes) for task, place, role, *sizes in fields],
        dtype=np.int64,
    )
    order = np.argsort(keys, kind="stable")
    return SharedPrefixes(keys[order], columns[order])


def _key(*parts: object) -> int:
    return hash(parts)


def _task(architecture: str, example_id: str, trial: int) -> str:
    return json.dumps([architecture, example_id, trial])


def _groups(calls: RecordedPrompts, models: Mapping[str, str]) -> Iterator[NDArray[np.bool_]]:
    """A mask for the calls of each architecture, trial and model."""
    of_tasks = [json.loads(task) for task in calls.tasks]
    of_roles = [models.get(role) or models.get("", "") for role in calls.roles]
    numbers: dict[tuple[object, ...], int] = {}
    pairs = calls.kept[["task", "role"]].tolist()
    keys = ((of_tasks[task][0], of_tasks[task][2], of_roles[role]) for task, role in pairs)
    groups = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int32)
    yield from (groups == number for number in range(len(numbers)))


def _sent_in_turn(calls: RecordedPrompts, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, Shared]]:
    """The number of each call of a group, and its columns."""
    sent, marked = _Sent(), _Sent()
    left = Counter(calls.kept["task"][chosen].tolist())
    try:
        for call in calls.among(chosen):
            yield call.number, _columns(call, sent, marked)
            left[call.task] -= 1
            if not left[call.task]:
                sent.forget(call.task)
                marked.forget(call.task)
    except DataError:  # a text of the prompts is missing: nothing is known of this call and those after it
        return


def _columns(call: SentCall, sent: _Sent, marked: _Sent) -> Shared:
    prompt = call.prompt
    prefixes, ends = _prefixes(prompt)
    texts = list(accumulate(map(len, prompt.texts)))
    whole = ends[-1] or 1
    own, own_age, others, others_age = sent.longest(prefixes, call)
    sent.send(prefixes, prefixes[: max(own, others)], call)

    marks = [mark for mark in prompt.marks if mark < len(texts)]
    until = list(accumulate(prompt.ids, lambda before, id_: hash((before, id_)), initial=0))[1:]
    before = until[: marks[-1] + 1] if marks else []
    at_mark = max(marked.longest(before, call)[::2])
    marked.send([until[mark] for mark in marks], before[at_mark - 1 : at_mark] if at_mark else (), call)

    def shared(length: int) -> int:
        return min(int(call.input_tokens * ends[length - 1] / whole + 1e-9), call.input_tokens - 1) if length else 0

    def up_to(text: int) -> int:
        return round(call.input_tokens * texts[text] / whole)

    first = up_to(marks[0]) if marks and marks[0] < len(texts) - 1 else 0
    last = up_to(marks[-1]) if marks else 0
    found = up_to(at_mark - 1) if at_mark else 0
    return Shared(shared(own), own_age, shared(others), others_age, first, last, found)


class _Sent:
    """When each prefix was last sent, and by which question. A prefix is a hash of 61 bits of its texts.

    A call sends its prefixes when it ends; those that it finds it sends when it begins, too: a hit begins a lifetime
    anew.
    """

    def __init__(self) -> None:
        self._sent: dict[int, tuple[float, int]] = {}  # time and task, in the order of the times
        self._of_task: dict[int, set[int]] = defaultdict(set)
        self._pending: list[tuple[float, int, int, Sequence[int]]] = []

    def longest(self, prefixes: Sequence[int], call: SentCall) -> tuple[int, float, int, float]:
        """Of the prefixes that earlier calls of the question had, the place of the longest, from 1, and its age.

        And the same of those that calls of other questions had; 0 and NaN where there is none.
        """
        while self._pending and self._pending[0][0] <= call.start:
            end, _, task, before = heapq.heappop(self._pending)
            self._use(before, task, end)
            self._of_task[task].update(before)
        sent, mine, longest_first = self._sent, self._of_task[call.task], range(len(prefixes), 0, -1)
        own = next((n for n in longest_first if prefixes[n - 1] in mine and prefixes[n - 1] in sent), 0)
        others = next((n for n in longest_first if sent.get(prefixes[n - 1], (0, call.task))[1] != call.task), 0)
        ages = (call.start - sent[prefixes[n - 1]][0] if n else math.nan for n in (own, others))
        return own, next(ages), others, next(ages)

    def send(self, prefixes: Sequence[int], found: Sequence[int], call: SentCall) -> None:
        self._use(found, call.task, call.start)
        heapq.heappush(self._pending, (call.end, call.number, call.task, prefixes))

    def forget(self, task: int) -> None:
        """Forgets which prefixes were those of a question: its last call was sent."""
        self._of_task.pop(task, None)

    def _use(self, prefixes: Sequence[int], task: int, now: float) -> None:
        for prefix in prefixes:
            before = self._sent.pop(prefix, None)  # and in again: the dictionary is in the order of the times
            self._sent[prefix] = (now, task if before is None or before[1] == task else _SEVERAL)
        for prefix in list(islice(self._sent, max(0, len(self._sent) - _MOST))):
            del self._sent[prefix]


@lru_cache(maxsize=_TEXTS_KNOWN)
def _chunks(text: str) -> tuple[tuple[int, int], ...]:
    """Hash and length of each piece of a text."""
    pieces = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
    return tuple((hash(piece), len(piece)) for piece in pieces)


def _prefixes(prompt: Prompt) -> tuple[list[int], list[int]]:
    """The prefixes of a prompt at which a common one may end, as hashes, and their characters."""
    prefixes, ends, before, end = [], [], 0, 0
    for text in prompt.texts:
        for piece, length in _chunks(text):
            before = hash((before, piece))
            end += length
            prefixes.append(before)
            ends.append(end)
    return prefixes, ends or [0]


# The part of their prompts that the questions of a run share, and where it ends: what a prefix cache can hold.
#
#     common_prefixes(journal.database, {"q1": "Which river …?", …}, {"rewoo": ["Search", "LLM"]})
#     {"rewoo": {"planner": {"tokens": 1139, "ends_in": "question"}, "solver": {…}}}
#
# Of each architecture and role all calls are compared, whatever their order and times. Tools that go with a request are
# read first, as providers do. Tokens are those of the pinned tokenizer.


_UNPRICED = ("judge", "count", "embedding")


def common_prefixes(
    database: JournalFile, questions: Mapping[str, str], tools: Mapping[str, Collection[str]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """By architecture and role, of the roles that two questions or more called.

    `questions` are texts by id, `tools` names by architecture; calls of others don't count.
    """

    @lru_cache(maxsize=_TEXTS_KNOWN)
    def text_of(id_: int) -> str:
        rows = database.rows("texts", "WHERE id = ?", (id_,))
        return str(rows[0][1]) if rows else ""

    found: dict[tuple[str, str], _Common] = defaultdict(_Common)
    for record in database.each("calls"):
        task, _, kind, role, _, _, status, ids, *_ = record
        if kind == "model" and status == "ok" and role not in _UNPRICED and is_sound(record):
            architecture, example_id, _ = json.loads(task)
            if example_id not in questions or architecture not in tools:
                continue  # a replay of a part of a run
            *contents, form = unpack(f"{len(ids) // 8}q", ids)
            own_tools, roles = _form_of(text_of(form))
            if len(roles) == len(contents):  # else the text of the form is damaged
                found[architecture, role].add(example_id, contents, own_tools, roles, text_of)
    prefixes: dict[str, dict[str, dict[str, Any]]] = {}
    for (architecture, role), common in sorted(found.items()):
        if len(common.asked) > 1:
            question, names = questions[next(iter(common.asked))], tools[architecture]
            prefixes.setdefault(architecture, {})[role] = common.described(question, names)
    return prefixes


class _Common:
    """What the prompts added so far have in common: `whole` texts, and `rest`, the beginning of the next one."""

    def __init__(self) -> None:
        self.asked: dict[str, None] = {}
        self.whole: list[str] = []
        self.rest = ""
        self._first: tuple[str, ...] = ()
        """The texts of the first prompt, tools first."""
        self._ids: tuple[int | str, ...] = ()
        self._seen: set[int | str] = set()
        self._roles: tuple[str, ...] = ()

    def add(
        self,
        example_id: str,
        contents: Sequence[int],
        tools: str,
        roles: tuple[str, ...],
        text_of: Callable[[int], str],
    ) -> None:
        ids: tuple[int | str, ...] = (tools, *contents)  # a text beside the numbers of texts
        self.asked.setdefault(example_id)
        if not self._ids:
            self._ids, self._roles = ids, roles
            self._first = (tools, *map(text_of, contents))
            self.whole = [*self._first]
            return
        same = next((n for n in range(len(self.whole)) if n >= len(ids) or ids[n] != self._ids[n]), len(self.whole))
        if same < len(self.whole):
            self.rest, self._seen = self.whole[same], set()
            del self.whole[same:]
        if same >= len(ids):
            self.rest = ""
        elif self.rest and ids[same] not in self._seen:
            self._seen.add(ids[same])
            other = text_of(contents[same - 1]) if same else tools
            self.rest = commonprefix([self.rest, other])  # noqa: RUF071 - of texts, character by character

    def described(self, question: str, tools: Collection[str]) -> dict[str, Any]:
        sizes = [count_tokens(text) + TOKENS_PER_MESSAGE for text in self.whole[1:]]
        tokens = sum(sizes) + sum(map(count_tokens, (*self.whole[:1], self.rest)))
        return {"tokens": tokens, "ends_in": self._part(question, tools)}

    def _part(self, question: str, tools: Collection[str]) -> str:
        """The part of the first prompt in which others begin to differ."""
        message, end = len(self.whole) - 1, len(self.rest)
        if message < 0:
            return "tool list"
        asked = (
            n for n, text in enumerate(self._first[1:]) if question and question in text and self._roles[n] == "user"
        )
        place = next(asked, len(self._roles) - 1)
        if message > place:
            return "trace"
        text = self._first[message + 1]
        if self._roles[message] == "system" or (place == message == 0 and end < text.find(question)):
            lines = [*re.finditer(rf"^\W*(?:{'|'.join(map(re.escape, tools))})\b.*$", text, re.MULTILINE)]
            listed = bool(tools and lines) and lines[0].start() <= end <= lines[-1].end()
            return "tool list" if listed else "instructions"
        return "question" if message == place else "exemplars"


@lru_cache(maxsize=256)
def _form_of(form: str) -> tuple[str, tuple[str, ...]]:
    """The tools of a request as text, and the role of each message."""
    decoder, position, facts = json.JSONDecoder(), 0, dict[str, Any]()
    while position < len(form):
        part, position = decoder.raw_decode(form, position)
        facts |= part if isinstance(part, dict) else {}
    return json.dumps(facts["tools"]) if facts.get("tools") else "", tuple(str(facts.get("roles", "")).split())
