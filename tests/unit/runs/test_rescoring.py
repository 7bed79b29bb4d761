"""The predictions of a run, and of its published copy, can be scored again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.evaluation.api import bench
from rewoo_bench.runs.publish import publish, rescore
from rewoo_bench.text.scoring import BUNDLED, Scorer, normalize_hotpotqa, score


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bench("rewoo,react", model="oracle?wrong_title=0.6", out=tmp_path_factory.mktemp("again") / "run").folder


@pytest.fixture(scope="module")
def published(run: Path) -> Path:
    publish(run, run.parent / "published")
    return run.parent / "published"


def changed(run: Path, out: Path, column: str, values: Sequence[object]) -> Path:
    """A copy of a run with other values in a column of its first rows."""
    out.mkdir()
    for name in ("run.json", "calls.parquet"):
        (out / name).write_bytes((run / name).read_bytes())
    table = pq.read_table(run / "questions.parquet")
    at = table.schema.get_field_index(column)
    column_of = table.schema.field(at)
    new = pa.array([*values, *table[column].to_pylist()[len(values) :]], column_of.type)
    pq.write_table(table.set_column(at, column_of, new), out / "questions.parquet")
    return out


def test_exact_match_of_a_published_run_is_its_prediction_among_the_hashes(published: Path) -> None:
    rows = rewoo_bench.load(published)
    hashes = [sha256(normalize_hotpotqa(text).encode()).hexdigest() for text in rows["prediction"].fillna("\0")]
    found = [each in answers for each, answers in zip(hashes, rows["answers_sha256"], strict=True)]
    assert found == list(rows["exact_match"])
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize("flags", [(), ("--dataset", "sample")])
def test_a_run_and_its_copy_have_the_scores_that_they_say(
    run: Path, published: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (run, published):
        assert exit_code("rescore", str(folder), *flags) == 0
        by = "exact match and F1"
        if not flags and folder == published:
            by = "exact match, by the hashes that came with the rows; --dataset checks these, too"
        said = f"200 rows scored again by 'hotpotqa' ({by}): 200 equal, 0 different\n"
        assert capsys.readouterr().out.endswith(said)


def exit_code(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_a_changed_score_is_found_and_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rewoo_bench.load(run)
    turned = [not rows["exact_match"][0]]
    publish(changed(run, tmp_path / "doctored", "exact_match", turned), tmp_path / "copy")
    assert exit_code("rescore", str(tmp_path / "copy")) == 1
    told, last = capsys.readouterr().out.splitlines()
    assert told.startswith(f"different: rewoo, question {rows['example_id'][0]}, trial 0: EM {turned[0]:d} and F1 ")
    assert last.endswith("199 equal, 1 different")


def test_f1_is_compared_with_the_data_set_alone(published: Path, tmp_path: Path) -> None:
    copy = changed(published, tmp_path / "copy", "f1", [0.123])
    assert exit_code("rescore", str(copy)) == 0
    assert exit_code("rescore", str(copy), "--dataset", "sample") == 1


def test_what_cant_be_scored_again_is_one_line(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n = len(rewoo_bench.load(published))
    bare = changed(published, tmp_path / "bare", "answers_sha256", [None] * n)
    for folder, flags, line in (
        (bare, (), "has neither gold answers nor their hashes; give --dataset"),
        (published, ("--dataset", "sample-arithmetic"), "scored by 'hotpotqa', and the data set is scored by 'gsm8k'"),
        (published, ("--dataset", "sample-parallel"), "scored by 'hotpotqa', and the data set"),
    ):
        assert exit_code("rescore", str(folder), *flags) in (2, 3)
        assert line in capsys.readouterr().err


NUMBERS = ("18", "x18", "_18_", "$18.00", "an 18 and 5", "3/4", "0.75", "1e3", "5 m/s", "eighteen")
TEXTS = st.sampled_from([*NUMBERS, "oslo!", "The Oslo", "The", "yes", "No, never", "plausible", "not plausible"])


@given(prediction=st.one_of(TEXTS, st.text(max_size=8)), answers=st.lists(TEXTS, min_size=1, max_size=3))
def test_hashes_decide_as_the_scorer_does_or_there_are_none(prediction: str, answers: list[str]) -> None:
    for name, scorer in BUNDLED.items():
        hashes = scorer.answers_sha256(answers)
        if hashes is not None:
            assert scorer.is_exact_match(prediction, hashes) == score(prediction, answers, name).exact_match
    assert BUNDLED["physics"].answers_sha256(answers) is None


def test_the_rules_that_hashes_cover() -> None:
    covered = {name for name, scorer in BUNDLED.items() if scorer.answers_sha256(["18, yes"])}
    assert covered == {"hotpotqa", "triviaqa", "gsm8k", "yes_no", "musique"}
    assert BUNDLED["gsm8k"].answers_sha256(["eighteen"]) is None
    assert Scorer("mine", lambda prediction, answers: score(prediction, answers)).answers_sha256(["Oslo"]) is None


def test_a_run_published_here_can_be_scored_again() -> None:
    run = Path(__file__).parents[3] / "results" / "gate-live"
    found = rescore(run)
    assert (found.equal, list(found.different), found.unscored) == (96, [], 0)
    assert exit_code("rescore", str(run), "--dataset", "sample") == 0
