"""The head of the page: its table, its caveats and its claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from gate_runs import FACTS, FAILED, LIVE, changed, row, write_run

from rewoo_bench.analysis.prices import Pricing, pricing_of
from rewoo_bench.report.overview import overview
from rewoo_bench.report.rows import question_table
from rewoo_bench.runs.folder import load, manifests

CRASHED: dict[str, Any] = {
    "architecture": "crash", "prediction": None, "exact_match": False, "f1": 0.0, "stop_reason": "agent_failed",
    "error": "KeyError: 'answer'", "llm_calls": 0, "total_tokens": 0, "input_tokens": 0, "output_tokens": 0,
    "cached_input_tokens": 0,
}  # fmt: skip
SEEN_NOTHING: dict[str, Any] = {"architecture": "own", "flags": ["unmetered"], "total_tokens": 0, "llm_calls": 0}
GOLDEN_RUN = Path(__file__).parents[2] / "golden" / "models" / "hotpotqa-qwen-1.5b-100"


def head_of(*runs: Path, **settings: Any) -> dict[str, Any]:
    rows, read = load(*runs), manifests(*runs)
    return overview(rows, read, settings.pop("pricing", None) or pricing_of(runs, rows, read), **settings)


def written(folder: Path, rows: Iterable[Mapping[str, Any]], facts: Mapping[str, Any] = FACTS) -> Path:
    return write_run(folder, [{**row(), **LIVE, "flags": [], "startup_s": 0.0, **each} for each in rows], facts)


def cells(head: dict[str, Any], system: str, table: str = "table") -> dict[str, str]:
    shown = next(cells for cells in head[table]["rows"] if cells[0] == system)
    return dict(zip(head[table]["head"], shown, strict=True))


def questions(count: int, **values: Any) -> list[dict[str, Any]]:
    return [{"example_id": f"q{number:03}", **values} for number in range(count)]


def test_an_agent_that_failed_on_every_question_is_named_with_its_error(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [*questions(10), *questions(10, **CRASHED)])
    head = head_of(run)
    said = "crash failed on all of its 10 questions (10 agent_failed)"
    assert head["notes"][0] == f"{said}; most common error: KeyError: 'answer'"
    assert cells(head, "crash", "ends")["agent_failed"] == "10"
    assert head_of(run, texts=False)["notes"][0] == said


def test_the_table_has_a_column_for_each_reason_without_an_answer(tmp_path: Path) -> None:
    cut = {"prediction": None, "exact_match": False, "f1": 0.0, "stop_reason": "unparsable"}
    run = written(tmp_path / "run", [*questions(3), *questions(4, architecture="plan", **cut), {**row(3), **FAILED}])
    head = head_of(run)
    assert cells(head, "plan", "ends")["unparsable"] == "4"
    assert cells(head, "rewoo", "ends")["unparsable"] == "0"
    assert cells(head, "rewoo", "ends")["failed"] == "1"
    assert "plan ended all of its 4 questions without an answer (4 unparsable)" in head["notes"]


def test_what_an_unmetered_question_took_is_not_known(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [*questions(4), *questions(4, **SEEN_NOTHING)])
    head = head_of(run)
    assert [cells(head, "own")[name] for name in ("tokens", "LLM calls", "$ / 1000")] == [
        "not counted", "not counted", "no price"
    ]  # fmt: skip
    assert [line[0] for line in head["times"]["rows"]] == ["rewoo"]
    own = question_table(load(run)).columns["systems"][1]
    assert own["tokens"] == own["calls"] == own["cost"] == [None] * 4


@pytest.mark.parametrize(("count", "shown"), [(10, ["1.00 [1.00, 1.00]", "too few"]), (3, ["too few"] * 2)])
def test_the_seconds_have_the_rule_of_compare(tmp_path: Path, count: int, shown: list[str]) -> None:
    trials = [{**each, "trial": trial, "startup_s": 0.0} for trial in range(3) for each in questions(count)]
    run = written(tmp_path / "run", trials[:-2])  # stopped before its end
    assert head_of(run)["times"]["rows"] == [["rewoo", *shown]]


def test_each_data_set_has_its_rows_and_its_sentences(tmp_path: Path) -> None:
    both = [*questions(4), *questions(4, architecture="react", total_tokens=2000)]
    facts = [{**changed("dataset", name=name), "run_id": name, "models": FACTS["models"]} for name in ("a", "b", "c")]
    runs = [
        written(tmp_path / name, [{**each, "run_id": name} for each in rows], own)
        for name, own, rows in zip("abc", facts, (both, both, questions(4)), strict=True)
    ]
    head = head_of(*runs)
    assert head["notes"] == []
    assert len(head["table"]["rows"]) == 5
    assert [each["text"].split()[0] for each in head["sentences"]] == ["a:", "b:"]
    assert dict(head["facts"])["Questions"] == "12"


def test_in_a_world_the_score_is_what_was_solved(tmp_path: Path) -> None:
    oracle = [*questions(4), *questions(4, architecture="react")]
    facts = {**changed("dataset", scoring="solved"), "models": {"default": {"name": "oracle"}}}
    head = head_of(written(tmp_path / "world", [{**each, "model": "oracle"} for each in oracle], facts))
    assert head["checked"]
    assert head["table"]["head"][2] == "solved"
    assert not {"EM", "F1"} & {*head["table"]["head"], *head["ends"]["head"]}
    said = [line for line in head["threats"] if "racle" in line]
    assert said[0] == "* An oracle makes no mistake: what it solved, the architecture can do."
    other = head_of(written(tmp_path / "other", questions(4)))
    assert not other["checked"]
    assert {"EM", "F1"} < {*other["table"]["head"], *other["ends"]["head"]}


def test_what_failed_and_what_is_estimated_in_part_are_caveats(tmp_path: Path) -> None:
    mixed = {"architecture": "react", "usage_source": "mixed"}
    run = written(tmp_path / "run", [*questions(4), *questions(3, **mixed), {**row(3), **mixed, **FAILED}])
    caveats = head_of(run)["threats"]
    assert "Tokens are estimated with a tokenizer for some questions: their usage wasn't reported." in caveats
    assert "1 of 8 rows failed (a provider's error, say): no figure has them." in caveats


def test_a_models_name_keeps_its_small_letter(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [*questions(4), *questions(4, architecture="react")])
    pricing = Pricing("gpt-5-mini's prices", "gpt-5-mini's prices are those of a sheet")
    said = "Dollars are at gpt-5-mini's prices; gpt-5-mini's prices are those of a sheet."
    assert said in head_of(run, pricing=pricing)["threats"]
    unknown = head_of(run, pricing=Pricing(note="no dollars: no prompts"))["threats"]
    assert "No dollars: no prompts." in unknown
