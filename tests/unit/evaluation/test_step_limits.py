"""What a generated question needs of each architecture is what its oracle takes, and no step more."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.api import bench
from rewoo_bench.evaluation.inputs import check_step_limits, step_limit_notes
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runs.folder import load
from rewoo_bench.types import CountsSteps

ARCHITECTURES = (
    *("rewoo", "rewoo-lazy", "react", "react-json", "react-native", "plan-execute", "rewoo-react", "llmcompiler"),
    *("router", "rewoo-code", "react-code"),
)
SHAPES = ("chain?hops=1", "chain?hops=4", "chain?hops=2&width=2", "chain?hops=5&branching=4")
UNSOUND = {"invalid_plan", "step_limit"}


def steps_wanted(architecture: str, dataset: str, out: Path) -> int:
    """What `run` says it needs; 1 where that is enough."""
    try:
        bench(architecture, out=out, dataset=dataset, questions=2, max_steps=1)
    except UsageError as error:
        return int(str(error).rpartition("give --max-steps ")[2])
    return 1


def ends(architecture: str, dataset: str, out: Path, max_steps: int) -> pd.Series[str]:
    rows = bench(architecture, out=out, dataset=dataset, questions=2, max_steps=max_steps).rows
    return rows["stop_reason"].astype(str)


@pytest.mark.by_day(15)
@pytest.mark.parametrize("dataset", SHAPES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_flag_that_is_named_is_enough_and_one_less_is_refused(
    architecture: str, dataset: str, tmp_path: Path
) -> None:
    wanted = steps_wanted(architecture, dataset, tmp_path / "least")
    assert set(ends(architecture, dataset, tmp_path / "enough", wanted)) == {"answered"}
    if wanted > 1:
        with pytest.raises(UsageError, match=f"give --max-steps {wanted}$"):
            ends(architecture, dataset, tmp_path / "short", wanted - 1)


@pytest.mark.parametrize(
    ("dataset", "plan", "turns", "shared_turns"),
    [
        ("chain?hops=1", 1, 2, 2),
        ("chain?hops=4", 4 + 3, 4 + 1, 4 + 1),  # look-ups, and pages that are read for the next title, or the answer
        ("chain?hops=2&width=2", 2 * (2 + 1), 2 * 2 + 1, 2 + 1),
        ("chain?hops=5&branching=4", 2 + 1, 5 + 1, 5 + 1),  # three pages have no name before another one was read
    ],
)
def test_what_is_needed_is_counted_on_the_chain(dataset: str, plan: int, turns: int, shared_turns: int) -> None:
    chain = load_dataset_examples(dataset, limit=1).examples[0].chain
    wanted = {
        **dict.fromkeys(("rewoo", "rewoo-react", "llmcompiler"), plan),
        "rewoo-lazy": plan + 2,  # it reads the last page, too, and ends with Finish
        **dict.fromkeys(("react", "react-json", "plan-execute"), turns),
        "react-native": shared_turns,
    }
    runners = {name: load_architecture(name, style="multihop").runner for name in wanted}
    needed = {name: runner.steps_needed(chain) for name, runner in runners.items() if isinstance(runner, CountsSteps)}
    assert needed == wanted


def test_the_largest_need_of_several_architectures_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"need 15 steps of 'rewoo', which takes at most 8: give --max-steps 15$"):
        bench("react,rewoo", out=tmp_path / "run", dataset="chain?hops=1..8", questions=16)
    assert not (tmp_path / "run").exists()


def test_questions_that_were_not_made_to_measure_are_asked_whatever_the_limit(tmp_path: Path) -> None:
    run = bench("react", out=tmp_path / "run", dataset="sample", questions=3, max_steps=1)
    assert set(run.rows["stop_reason"].astype(str)) <= {"answered", "step_limit"}
    check_step_limits(load_dataset_examples("sample", limit=3), ())


def test_a_run_that_was_begun_goes_on_as_it_is(tmp_path: Path) -> None:
    """Its limit may be too small for questions yet to come: refusing to resume it would lose what was paid for."""
    begun = bench("rewoo?invalid_plan=stop", out=tmp_path / "run", dataset="chain?hops=1..8", questions=1)
    with pytest.raises(SystemExit) as end:
        main(["run", "--resume", str(begun.folder), "-n", "8", "--no-progress"])
    assert end.value.code == 0
    ended = load(begun.folder)["stop_reason"].astype(str).value_counts()
    assert (ended["answered"], ended["invalid_plan"]) == (4, 4)  # 5 hops and more are 9 steps and more


def test_a_question_that_no_model_can_answer_within_the_steps_is_said() -> None:
    dataset = load_dataset_examples("sample")
    architectures = [load_architecture(name, style="multihop") for name in ("rewoo", "llmcompiler", "react", "router")]
    assert step_limit_notes(dataset, architectures) == [
        f"sample: 1 of 100 questions need more than the 8 steps that {name} may take; --max-steps 9 is enough"
        for name in ("rewoo", "llmcompiler")
    ]


def test_it_is_said_without_progress_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ids, out = tmp_path / "ids", str(tmp_path / "run")
    ids.write_text("sample-100")
    with pytest.raises(SystemExit):
        main(["run", "--arch", "rewoo", "--ids", str(ids), "--model", "oracle", "--no-progress", "--out", out])
    assert "sample: 1 of 1 questions need more than the 8 steps that rewoo may take" in capfd.readouterr().err


def test_map_tokens_counts_for_each_question_of_a_task_unless_an_option_says_otherwise() -> None:
    def caps(*names: str) -> list[int]:
        loaded = [load_architecture(name, style="multihop", objectives=3) for name in names]
        return [each.manifest["settings"]["map_tokens"] for each in loaded]

    assert caps("rewoo", "react-code", "rewoo?map_tokens=700") == [4500, 4500, 700]
    assert caps("rewoo-react", "rewoo-react?map_tokens=700") == [4500, 700]
    router = load_architecture("router", style="multihop", objectives=3)
    assert router.parents[0].manifest["settings"]["map_tokens"] == 4500
    assert "map_tokens" not in load_architecture("react", style="multihop", objectives=3).manifest["settings"]


@pytest.mark.parametrize("architecture", ["rewoo", "llmcompiler", "react-code?max_calls=65"])
def test_the_evidence_of_a_task_of_many_questions_fits_the_prompt(architecture: str, tmp_path: Path) -> None:
    run = bench(architecture, out=tmp_path / "run", dataset="sample?objectives=20", questions=2, max_steps=65)
    assert run.rows["exact_match"].all()
