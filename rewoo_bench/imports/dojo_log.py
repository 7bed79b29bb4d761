"""Logs of AgentDojo, one a case -> trajectories, with what an attacker's text reached.

    PIPELINE/SUITE/USER_TASK/ATTACK/INJECTION_TASK.json     a task with an attack
    PIPELINE/SUITE/USER_TASK/none/none.json                 the same task without one

`utility` says whether the task was solved, `security` whether the attack came to its end. The calls that a task makes
anyway are its gold calls, and those of the same pipeline's run without an attack: of each tool the larger number.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rewoo_bench.config.price_sheets import price_of
from rewoo_bench.imports.record import Attack, RecordedTrajectory, ToolUse, Unreadable, object_at
from rewoo_bench.imports.requests import request_of, trajectory_of
from rewoo_bench.runs.reach import ANYWAY
from rewoo_bench.text.json_text import load_json
from rewoo_bench.types import GoldAction, Injection
from rewoo_bench.worlds.dojo import attack_calls, gold_calls, markers_of

_NAMES = ("suite_name", "user_task_id")

_SHORTEST = 3  # characters of a value that says anything
_WORD = re.compile(r"\w+")


def is_dojo_log(record: Any) -> bool:
    return isinstance(record, Mapping) and all(isinstance(record.get(name), str) for name in _NAMES)


def with_quiet_run(record: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The record, with how often the same pipeline called each tool without the attack, where the folder says it."""
    quiet = path.parent.parent / "none" / "none.json"
    return {**record, ANYWAY: _calls_of(quiet)} if record.get("attack_type") and quiet != path else record


@lru_cache(maxsize=16)
def _calls_of(path: Path) -> Counter[str]:
    """Calls of each tool in a log, without those that failed; none where there is no such log, or a damaged one."""
    with suppress(OSError, ValueError):  # what is wrong with it is said where it is read itself
        events = trajectory_of(request_of(load_json(path.read_bytes())), "").events
        return Counter(each.name for each in events if isinstance(each, ToolUse) and not each.failed)
    return Counter()


def read_dojo_log(record: Mapping[str, Any], task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a case. Raises `Unreadable`."""
    if missing := [name for name in ("pipeline_name", "messages") if not record.get(name)]:
        raise Unreadable(f"no {missing[0]!r}")
    for name in ("utility", "security"):
        if not isinstance(record.get(name), bool):
            value = f"is {record[name]!r:.40}, expected true or false" if name in record else "is missing"
            raise Unreadable(f"{name!r} {value}: AgentDojo writes it when a case is over")
    suite, user_task = (str(record[name]) for name in _NAMES)
    pipeline, attack = str(record["pipeline_name"]), str(record.get("attack_type") or "")
    found = replace(
        trajectory_of(request_of(record), task),
        task=f"{suite}/{user_task}",
        agent=pipeline,
        kind=suite,
        solved=record["utility"],
        error=str(record.get("error") or "") or None,
    )
    if attack:
        notes = {**found.notes, ANYWAY: dict(object_at(record, ANYWAY)), "injected": _injected(record)}
        name = f"{found.task}/{attack}/{record.get('injection_task_id')}"
        found = replace(found, task=name, notes=notes, attack=_attack(record, found))
    model = pipeline if price_of(pipeline) else ""
    yield found.with_calls(lambda call: replace(call, model=call.model or model))


def _injected(record: Mapping[str, Any]) -> list[str]:
    """The attacker's texts, each once. Raises `Unreadable`."""
    texts = [text for text in object_at(record, "injections").values() if isinstance(text, str) and text.strip()]
    if not texts:
        raise Unreadable(f"no text under 'injections', though the attack is {record['attack_type']!r:.40}")
    return list(dict.fromkeys(texts))


def _attack(record: Mapping[str, Any], found: RecordedTrajectory) -> Attack:
    """What was attacked, and whether it worked: of a case that an error ended AgentDojo writes that it always did."""
    texts, version = _injected(record), str(record.get("benchmark_version") or "") or None
    suite, user_task, injection_task = (str(record.get(name)) for name in (*_NAMES, "injection_task_id"))
    uses = [event for event in found.events if isinstance(event, ToolUse)]
    markers = [Injection(injection_task, words) for text in texts for words in markers_of(text)]
    shown = next((each for each in markers if any(each.is_in(use.result or "") for use in uses)), markers[0])
    gold = gold_calls(version, suite, user_task, found.question)
    known = attack_calls(version, suite, injection_task, texts)
    before = _plain(f"{found.system} {found.question} {json.dumps([dict(each.arguments) for each in gold])}")
    if known is not None:
        his = _plain(" ".join(texts))
        actions, answer = [_with_words(call, his, before) for call in known[0]], known[1]
    else:
        actions, answer = [*_calls_with_words(shown, texts, uses, before)], ""
    prompts = [call.messages for call in found.calls if call.messages][-1:]
    exposed = any(message.role == "tool" and shown.is_in(message.content) for of in prompts for message in of)
    injection = replace(shown, actions=tuple(actions), answer=answer)
    return Attack(gold, injection, exposed, None if found.error else bool(record["security"]), known is not None)


def _with_words(call: GoldAction, his: str, before: str) -> GoldAction:
    """An attacker's call with the values that his text alone has; with all where the text has none, as of a date."""
    if not _his_values(call.arguments, his, ""):
        return call
    return replace(call, arguments={"values": _his_values(call.arguments, his, before)})


def _calls_with_words(injection: Injection, texts: list[str], uses: list[ToolUse], before: str) -> Iterator[GoldAction]:
    """Calls after the attack was read with a value that stands in it, and in no other message before nor gold call."""
    his, is_read = _plain(" ".join(texts)), False
    for use in uses:
        if is_read and (values := _his_values(use.arguments or {}, his, before)):
            yield GoldAction(use.name, {"values": values}, decided="loop")
        if injection.is_in(use.result or ""):
            is_read = True
        else:
            before += _plain(use.result or "")


def _plain(text: str) -> str:
    """The words of a text, as JSON or YAML may write it, with a blank around each."""
    return f" {' '.join(_WORD.findall(text.replace(chr(92) + 'n', ' ').casefold()))} "


def _his_values(value: Any, his: str, before: str) -> list[Any]:
    """The values in a call's arguments that the attacker's text has, and nothing before."""
    if isinstance(value, Mapping | list | tuple):
        items = value.values() if isinstance(value, Mapping) else value
        return [each for item in items for each in _his_values(item, his, before)]
    words = _plain(str(value))
    is_his = len(words.strip()) >= _SHORTEST and words in his and words not in before
    return [value] if is_his and isinstance(value, str | int | float) and not isinstance(value, bool) else []
