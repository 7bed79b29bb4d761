"""What may stand side by side: which rows and runs are refused, and which differences are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from comparison_rows import A, B, frame, manifest, system, twice, write

from rewoo_bench.analysis.compare import compare
from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.comparability import of_agents, queued, unfinished
from rewoo_bench.runs.manifest import ArchitectureFacts, Manifest


def test_seconds_of_questions_that_share_a_local_model_are_told_to_be_a_queues() -> None:
    local = {"default": {"name": "local/a"}}
    told = {A: manifest(A, models=local, concurrency=8), B: manifest(B, models=local, concurrency=1)}
    said = [note for note in compare(twice(model="local/a"), manifests=told).notes if note.startswith("latency")]
    assert said == [
        "latency (0001): 8 questions at once shared a model on one machine, so latency includes waiting for it"
    ]


def test_beside_our_architectures_an_agents_own_sampling_is_told() -> None:
    ours, agent = ArchitectureFacts(name="rewoo", runner="rewoo"), ArchitectureFacts(name="smolagents", runner="agent")
    said = "--temperature isn't sent for smolagents: an agent sets its own or leaves it to the provider"
    for architectures, told in (([ours, agent], [said]), ([ours], []), ([agent], [])):
        assert of_agents({A: manifest(A, architectures=architectures)}) == told
    runs = {A: manifest(A, architectures=[ours]), B: manifest(B, architectures=[agent])}
    assert said in compare(twice(), manifests=runs).notes


@pytest.mark.parametrize(
    ("concurrency", "workers", "at_once"),
    [(None, None, 0), (1, None, 0), (8, None, 8), (8, 4, 2), (7, 3, 3), (4, 4, 0)],
)
def test_each_worker_of_a_cluster_has_a_model_and_a_queue_of_its_own(
    concurrency: int | None, workers: int | None, at_once: int
) -> None:
    engine = None if workers is None else {"name": "ray", "workers": workers}
    told = manifest(A, models={"default": {"name": "local/a"}}, concurrency=concurrency, engine=engine)
    assert queued(told) == at_once


def test_other_questions_are_refused_or_compared_where_shared() -> None:
    rows = frame(
        system(matches="110100"),
        system("react", "0101", ids=range(2, 6), run_id=B),
        system("direct", "11", ids=range(2), run_id=B),
    )
    for intersect in (False, True):
        with pytest.raises(UsageError, match=r"of 6 questions, 'rewoo', 'react' and 'direct' share 0$"):
            compare(rows, intersect=intersect)
    two = rows[rows["architecture"] != "direct"]
    with pytest.raises(UsageError, match=r"not comparable: .*; --intersect compares on the questions that they share$"):
        compare(two)
    shared = compare(two, intersect=True)
    assert [each.questions for each in shared.systems] == [4, 4]
    assert shared.pairs[0]["exact_match"].interval.estimate == pytest.approx(0.25)
    (warning,) = shared.warnings
    assert "not all answered the same questions: of 6 questions, 'rewoo' and 'react' share 4; " in warning
    assert "all below is of the 4 questions that all share" in warning
    assert "\n\nWARNING: not all answered the same questions" in str(shared)


def test_a_run_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=rf"'rewoo' has question 'q0', trial 0 more than once in the run '{A}'"):
        compare(frame(system(), system()))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset__seed": 3}, r"the seed of the questions: 0 \(0001\), 3 \(0002\)"),
        ({"dataset__format": "triviaqa"}, "the scoring: hotpotqa"),
        ({"dataset__source": {"sha256": "77"}}, r"the data's file \(sha256\): 5a"),
        ({"dataset__split": "train"}, "the split: file"),
        ({"options__judge_model": "openai/judge"}, "the judge: none"),
    ],
)
def test_runs_on_other_terms_are_refused_or_said_loudly(changes: dict[str, Any], reason: str) -> None:
    known = {A: manifest(A), B: manifest(B, **changes)}
    with pytest.raises(UsageError, match=f"not comparable: {reason}"):
        compare(twice(), manifests=known)
    (warning,) = compare(twice(), manifests=known, intersect=True).warnings
    assert "all below is of the 6 questions" in warning


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"options__temperature": 0.7}, "temperature: 0.0 (0001), 0.7 (0002)"),
        ({"models__default__constrain": "none"}, "openai/small_1: constrain: schema (0001), none (0002)"),
        ({"corpus": {"content_hash": "c0"}}, "the corpus: the questions' own documents (0001), c0 (0002)"),
        (
            {"corpus": {"content_hash": "c" * 40}},
            f"the corpus: the questions' own documents (0001), {'c' * 40} (0002)",
        ),
        (
            {"corpus": {"content_hash": "c" * 41}},
            f"the corpus: the questions' own documents (0001), {'c' * 12}… (0002)",
        ),
        (
            {"architectures": [{"name": "rewoo", "settings": {"max_steps": 8}, "prompts_sha256": "0" * 64}]},
            "rewoo: prompts_sha256: ec (0001), 000000000000… (0002)",
        ),
    ],
)
def test_other_prompts_models_and_settings_are_told(changes: dict[str, Any], note: str) -> None:
    comparison = compare(twice(), manifests={A: manifest(A), B: manifest(B, **changes)})
    told = [each for each in comparison.notes if not each.startswith("run ")]
    assert told == [note]
    assert note in str(comparison)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"status": "incomplete", "rows": 3, "reason": "interrupted"},
            " is incomplete, with 3 of 8 answers: interrupted",
        ),
        (
            {"status": "incomplete", "rows": 8, "reason": "2 of 8 answers failed"},
            " is incomplete: 2 of 8 answers failed",
        ),
        ({"status": "running"}, " is still running, or was killed"),
        ({"status": "done", "rows": 8}, None),
    ],
)
def test_a_run_that_is_not_done_says_so_in_a_sentence(changes: dict[str, Any], said: str | None) -> None:
    asked = {"dataset": {"examples": 2}, "options": {"trials": 2}, "architectures": [{"name": "a"}, {"name": "b"}]}
    assert unfinished({"mine": Manifest.model_validate(asked | changes)}) == ([f"the run mine{said}"] if said else [])


def test_a_run_that_was_stopped_is_compared_where_its_architectures_meet() -> None:
    stopped = frame(system(matches="11010"), system("react", "01011", ids=range(1, 6)))
    comparison = compare(stopped)
    assert [pair.questions for pair in comparison.pairs] == [4]
    assert comparison.warnings == (
        "not all answered the same questions: of 6 questions, 'rewoo' and 'react' share 4; "
        "all below is of the 4 questions that all share",
    )
    with pytest.raises(UsageError, match="share 0"):
        compare(frame(system(matches="11"), system("react", "11", ids=range(2, 4))))


def test_the_command_says_why_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [str(write(tmp_path / "a")), str(write(tmp_path / "b", B, matches="11"))]
    with pytest.raises(SystemExit) as done:
        main(["compare", *runs])
    assert done.value.code == 2
    said = "not comparable: of 6 questions, 'rewoo, run a' and 'rewoo, run b' share 2; --intersect"
    assert capfd.readouterr().err.startswith(f"rewoo-bench: {said}")
    with pytest.raises(SystemExit) as done:
        main(["compare", *runs, "--intersect", "--format", "csv"])
    out, err = capfd.readouterr()
    assert done.value.code == 0
    assert err.startswith("WARNING: not all answered the same questions")
    assert out.startswith("dataset,system,against")
