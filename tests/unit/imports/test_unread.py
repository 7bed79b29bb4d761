"""Texts of a record that its reader left out are counted and said, whatever the format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rewoo_bench.cli.main import group
from rewoo_bench.imports.formats import read_files

ASKED = {"role": "user", "content": "Which tide is it in Oban?"}
SAID = {"role": "assistant", "content": "It is high tide."}
SPAN = {
    "traceId": "a" * 32, "spanId": "b" * 16, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
}  # fmt: skip


def unread(folder: Path, *records: Any) -> Mapping[str, int]:
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    (found,) = read_files([path])
    assert found.trajectory is not None, found.fault
    return found.unread


def span(**attributes: str) -> dict[str, Any]:
    listed = [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**SPAN, "attributes": listed}]}]}]}


def test_a_record_whose_texts_are_all_read_has_none(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "The table\nof tides:"},
        {"type": "text", "text": '{"high": "six in the morning"}'},
    ]
    called = {"id": "a", "type": "function", "function": {"name": "tides", "arguments": '{"place": "Oban North Pier"}'}}
    messages = [
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "a", "content": parts},
        {"role": "assistant", "content": "<think>I have to look.</think> It is high tide."},
    ]
    tool = {"type": "function", "function": {"name": "tides", "description": "The tides of a place."}}
    assert unread(tmp_path, {"id": "one-word", "messages": messages, "tools": [tool]}) == {}
    assert unread(tmp_path, messages) == {}


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"judge": {"reasons": [{"why": "It is too short."}]}}, "judge.reasons[].why"),
        ({"notes": json.dumps({"why": "It is too short."})}, "notes.why"),
        ({"notes": "短すぎる"}, "notes"),
    ],
    ids=["nested", "JSON in a text", "without blanks"],
)
def test_texts_elsewhere_are_counted_by_their_field(more: dict[str, Any], place: str, tmp_path: Path) -> None:
    assert unread(tmp_path, {"messages": [ASKED, SAID], **more}) == {place: 1}


def test_each_format_is_held_against_its_record(tmp_path: Path) -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([SAID])}
    left = unread(tmp_path, span(**told, **{"acme.request.0.text": "Which tide is it in Oban?"}))
    assert left == {"attributes.acme.request[].text": 1}


@pytest.mark.parametrize("is_there", [True, False])
def test_prompts_werent_recorded_is_said_only_where_all_was_read(is_there: bool, tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    told = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([SAID])}
    path.write_text(json.dumps(span(**told, **({"acme.request": "Which tide is it in Oban?"} if is_there else {}))))
    shown = CliRunner().invoke(group, ["import", str(path), "--out", str(tmp_path / "run")]).stdout
    assert ("prompts weren't recorded" in shown) is not is_there
    assert ("acme.request" in shown) is is_there
    assert (json.loads((tmp_path / "run" / "run.json").read_text())["imported"]["unread"] != {}) is is_there
