"""A run in other programs' formats: it is imported again as the same rows, and their schemas accept it."""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq
import pytest

from rewoo_bench.api import BenchRun, bench
from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.imports.publish import publish_as
from rewoo_bench.imports.write import ImportChoices, import_run
from rewoo_bench.runs.publish import publish

pytestmark = pytest.mark.filterwarnings("ignore")  # of what inspect_ai imports
SCHEMAS = Path(__file__).parents[2] / "golden" / "every_eval_ever"
TOKENS = [f"{name}_tokens" for name in ("input", "cached_input", "output", "reasoning", "cache_write")]
OF_QUESTIONS = [
    "architecture", "example_id", "trial", "model", "prediction", "exact_match", "stop_reason", "llm_calls",
    "tool_calls", *TOKENS, "total_tokens", "cost_usd", "usage_source",
]  # fmt: skip
OF_CALLS = ["call_index", "kind", "name", *TOKENS, "usage_source", "finish_reason", "started_at"]
WITH_TEXTS = ["question", "answers", "evidence_tokens"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    folder = tmp_path_factory.mktemp("publish") / "run"
    model = "oracle?wrong_title=0.3"
    return bench("rewoo,react,react-native,direct", model=model, out=folder, questions=5, trials=2)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    keys = ("architecture", "example_id", "trial", *(["call_index"] if table == "calls" else []))
    found: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return sorted(found, key=lambda row: [row[key] for key in keys])


@pytest.mark.parametrize("texts", [False, True], ids=["without texts", "with texts"])
@pytest.mark.parametrize("form", ["inspect", "atif"])
def test_what_was_written_is_imported_as_the_same_rows(form: str, texts: bool, run: BenchRun, tmp_path: Path) -> None:
    if form == "inspect":
        pytest.importorskip("inspect_ai", reason="needs inspect_ai (pip install 'rewoo-bench[inspect]')")
    assert publish_as(form, run.folder, tmp_path / "out", texts=texts) == 40
    done = anyio.run(partial(import_run, [tmp_path / "out"], tmp_path / "again", ImportChoices(dataset="sample")))
    assert (done.rows, done.unreadable) == (40, 0)
    assert done.lacks["results"] == (0 if texts else 30)  # `direct` uses no tool
    for table, columns in (("questions", OF_QUESTIONS), ("calls", OF_CALLS)):
        shown = [*columns, *((WITH_TEXTS if table == "questions" else ["status"]) if texts else ())]
        before, after = (rows(folder, table) for folder in (run.folder, tmp_path / "again"))
        assert len(before) == len(after) > 0
        for one, other in zip(before, after, strict=True):
            different = {name: (one[name], other[name]) for name in shown if one[name] != other[name]}
            assert not different
            if table == "calls":
                assert other["latency_s"] == pytest.approx(one["latency_s"], abs=5e-6)


@pytest.mark.parametrize("form", ["atif", "every-eval-ever"])
def test_texts_are_left_out_unless_they_are_asked_for(form: str, run: BenchRun, tmp_path: Path) -> None:
    for texts in (False, True):
        publish_as(form, run.folder, tmp_path / str(texts), texts=texts)
        files = [path for path in (tmp_path / str(texts)).rglob("*") if path.is_file()]
        told = "".join(path.read_text("utf-8") for path in files)
        questions = {json.dumps(question, ensure_ascii=False)[1:-1] for question in run.rows["question"]}
        assert [question in told for question in questions] == [texts] * len(questions)


def test_nemos_models_accept_what_is_written(run: BenchRun, tmp_path: Path) -> None:
    atif = pytest.importorskip("nat.atif", reason="needs nvidia-nat-atif")
    publish_as("atif", run.folder, tmp_path / "out", texts=True)
    files = sorted((tmp_path / "out").rglob("*.json"))
    assert len(files) == 40
    for file in files:
        made = atif.Trajectory.model_validate_json(file.read_bytes())
        assert made.final_metrics.total_prompt_tokens == sum(
            step.metrics.prompt_tokens for step in made.steps if step.metrics
        )


@pytest.mark.parametrize("texts", [False, True])
def test_every_eval_ever_accepts_what_is_written(texts: bool, run: BenchRun, tmp_path: Path) -> None:
    from jsonschema import Draft7Validator

    assert publish_as("every-eval-ever", run.folder, tmp_path / "out", texts=texts) == 40
    whole, instance = (
        Draft7Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
        for name in ("eval", "instance_level_eval")
    )
    documents = sorted((tmp_path / "out/data").rglob("*.json"))
    assert len(documents) == 4
    tokens: dict[str, int] = {}
    for file in documents:
        document = json.loads(file.read_text())
        whole.validate(document)
        lines = (tmp_path / "out" / document["detailed_evaluation_results"]["file_path"]).read_text().splitlines()
        assert len(lines) == document["detailed_evaluation_results"]["total_rows"] == 20  # exact match and F1
        agent = document["evaluation_results"][0]["generation_config"]["additional_details"]["agent"]
        mine = run.rows[run.rows["architecture"] == agent]
        means = [each["score_details"]["score"] for each in document["evaluation_results"]]
        assert means == pytest.approx([mine["exact_match"].mean(), mine["f1"].mean()])
        for line in map(json.loads, lines):
            instance.validate(line)
            if line["evaluation_name"] == "sample f1":
                tokens[agent] = tokens.get(agent, 0) + line["token_usage"]["total_tokens"]
    assert tokens == run.rows.groupby("architecture")["total_tokens"].sum().to_dict()


def test_inspect_reads_scores_and_sums_of_the_log(run: BenchRun, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = pytest.importorskip("inspect_ai.log", reason="needs inspect_ai (pip install 'rewoo-bench[inspect]')")
    publish_as("inspect", run.folder, tmp_path / "out", without=["react", "direct", "react-native"])
    (file,) = (tmp_path / "out").iterdir()
    read = log.read_eval_log(str(file))
    mine = run.rows[run.rows["architecture"] == "rewoo"]
    assert (read.status, len(read.samples), read.eval.config.epochs) == ("success", 10, 2)
    assert read.results.scores[0].metrics["accuracy"].value == mine["exact_match"].mean()
    (usage,) = read.stats.model_usage.values()
    assert usage.total_tokens == mine["total_tokens"].sum()


def test_wrong_choices_are_a_line(run: BenchRun, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--format: unknown format 'inspekt'"):
        publish_as("inspekt", run.folder, tmp_path / "out")
    with pytest.raises(UsageError, match="--without: unknown architecture"):
        publish_as("atif", run.folder, tmp_path / "out", without=["rewo"])
    publish(run.folder, tmp_path / "copy")
    with pytest.raises(UsageError, match=r"--texts: .* has no journal"):
        publish_as("atif", tmp_path / "copy", tmp_path / "out", texts=True)
    assert publish_as("atif", tmp_path / "copy", tmp_path / "out") == 40
    with pytest.raises(UsageError, match="isn't empty"):
        publish_as("atif", run.folder, tmp_path / "out")
    with pytest.raises(SystemExit):
        main(["publish", str(run.folder), "--out", str(tmp_path / "none"), "--texts"])
    assert "it is for --format" in capfd.readouterr().err
