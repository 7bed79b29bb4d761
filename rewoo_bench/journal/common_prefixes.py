"""The part of their prompts that the questions of a run share, and where it ends: what a prefix cache can hold.

    common_prefixes(journal.database, {"q1": "Which river …?", …}, {"rewoo": ["Search", "LLM"]})
    {"rewoo": {"planner": {"tokens": 1139, "ends_in": "question"}, "solver": {…}}}

Of each architecture and role all calls are compared, whatever their order and times. Tools that go with a request are
read first, as providers do. Tokens are those of the pinned tokenizer.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from os.path import commonprefix
from struct import unpack
from typing import Any

from rewoo_bench.journal.database import JournalFile, is_sound
from rewoo_bench.text.tokens import TOKENS_PER_MESSAGE, count_tokens

_TEXTS_KNOWN = 2_000
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
