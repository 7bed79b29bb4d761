"""What a study.toml declares, and the faults that it may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewoo_bench.errors import RewooBenchError
from rewoo_bench.study.declaration import Study, decides, read_study

DECLARED = """
[study]
question = "When does it pay?"
declared = 2026-11-26
settings.seed = 3

[models]
oracle.model = "oracle"
hosted = { model = "openai/mine", temperature = 0.5, max_connections = 4 }

[datasets]
sample = { dataset = "sample", ids = "some.ids" }
chain.dataset = "chain?hops={hops}"

[[cells]]
name = "main"
models = ["oracle", "hosted"]
datasets = ["sample"]
architectures = ["rewoo", "react?max_steps=6"]
n = 2
conditions = { tool_failure_rate = [0.0, 0.5] }

[[cells]]
name = "map"
models = ["oracle"]
datasets = ["chain"]
architectures = ["rewoo?slot_tokens={slots}"]
conditions = { hops = [1, "2..3"], slots = [50] }
settings = { temperature = 0.7, corpus = "./pages.jsonl" }
stage = 2

[[outcomes]]
name = "tokens"
cells = "main"
architectures = ["react?max_steps=6", "rewoo"]
measure = "total_tokens"
statistic = "ratio"
"""

OUTCOME = DECLARED[DECLARED.index("[[outcomes]]") :]
OTHER_MAIN = """
[[outcomes]]
name = "other"
cells = "main"
architectures = ["rewoo", "cot"]
measure = "total_tokens"
statistic = "ratio"

[[cells]]
name = "main"
models = ["oracle"]
datasets = ["chain"]
architectures = ["cot"]
conditions.hops = [1]
"""


def declared(folder: Path, text: str = DECLARED, *changes: str) -> Study:
    (folder / "some.ids").write_text("q1\nq2\n")
    (folder / "study.toml").write_text(text)
    return read_study(folder / "study.toml", changes)


def test_each_combination_is_a_run(tmp_path: Path) -> None:
    study = declared(tmp_path)
    assert [cell.name for cell in study.cells] == [
        "main-sample-oracle-tool_failure_rate=0.0",
        "main-sample-oracle-tool_failure_rate=0.5",
        "main-sample-hosted-tool_failure_rate=0.0",
        "main-sample-hosted-tool_failure_rate=0.5",
        "map-chain-oracle-hops=1-slots=50",
        "map-chain-oracle-hops=2..3-slots=50",
    ]
    hosted, last = study.cells[3].options, study.cells[-1].options
    assert (hosted.model, hosted.temperature, hosted.max_connections, hosted.seed) == ("openai/mine", 0.5, 4, 3)
    assert (hosted.tool_failure_rate, hosted.questions, hosted.ids) == (0.5, 2, ("q1", "q2"))
    assert hosted.architectures == ("rewoo", "react?max_steps=6")
    assert (last.dataset, last.architectures) == ("chain?hops=2..3", ("rewoo?slot_tokens=50",))
    assert (last.temperature, last.corpus, last.questions) == (0.7, tmp_path / "pages.jsonl", None)
    assert [cell.stage for cell in study.cells] == [1, 1, 1, 1, 2, 2]


def test_the_hash_is_of_what_the_outcomes_rest_on_but_for_numbers_of_questions_and_this_machines_values(
    tmp_path: Path,
) -> None:
    first = declared(tmp_path)
    more = declared(tmp_path, DECLARED.replace("n = 2", "n = 200"))
    moved = declared(tmp_path, DECLARED, "datasets.sample.dataset=sample=dev.json", "models.hosted.max_retries=2")
    later = declared(tmp_path, DECLARED.replace("slots = [50]", "slots = [50, 80]"))
    capped = declared(
        tmp_path, DECLARED.replace("seed = 3", "seed = 3\nsettings.run_cost = 5\nsettings.max_retries = 9")
    )
    assert first.sha256 == more.sha256 == moved.sha256 == later.sha256 == capped.sha256
    assert moved.cells[2].options.dataset == "sample=dev.json"
    assert moved.cells[2].options.max_retries == 2
    for changed in (
        DECLARED.replace("0.5]", "0.6]"),
        DECLARED.replace("total_tokens", "cost_usd"),
        DECLARED.replace("it pay", "it not pay"),
        DECLARED.replace("temperature = 0.5", "temperature = 0.6"),
        DECLARED.replace('["rewoo", "react?max_steps=6"]\nn', '["rewoo", "react?max_steps=6", "cot"]\nn'),
    ):
        assert declared(tmp_path, changed).sha256 != first.sha256


def test_an_outcome_may_be_of_any_table_of_its_cells(tmp_path: Path) -> None:
    both = OTHER_MAIN.replace('["cot"]', '["rewoo", "cot"]')
    study = declared(tmp_path, DECLARED.replace("{ tool_failure_rate = [0.0, 0.5] }", f"{{}}\n{both}"))
    (outcome,) = (each for each in study.spec.outcomes if each.name == "other")
    assert [cell.name for cell in study.cells if decides(outcome, cell)] == ["main-chain-oracle-hops=1"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('models = ["oracle", "hosted"]', 'models = ["orakel"]', "cells 'main': unknown model 'orakel'"),
        ("seed = 3", "sed = 3", "unknown option 'sed'"),
        ("temperature = 0.7", "temperature = 'hot'", "--temperature hot: it should be a valid number"),
        ('"rewoo?slot_tokens={slots}"', '"rewoo"', "the condition 'slots' is no option of a run"),
        ('cells = "main"\n', 'cells = "mein"\n', "outcome 'tokens': unknown cells 'mein'"),
        ('["react?max_steps=6", "rewoo"]\nmeasure', '["react", "rewoo"]\nmeasure', "has both react and rewoo"),
        ('"ratio"', '"difference"', "outcome 'tokens': a ratio is of tokens, dollars or seconds"),
        ('"total_tokens"\n', '"f1"\nstatistic = "non-inferiority"\n#', "outcome 'tokens': give a margin (0.05)"),
        ('"ratio"', '"non-inferiority"\nmargin = 2', "outcomes.0.margin"),
        ('"total_tokens"', '"cost_usd"\nprices = "opnai"', "unknown price 'opnai', did you mean 'openai'?"),
        ('name = "map"', 'name = "a b/c"', "name"),
        ("[0.0, 0.5]", "[0.5, 0.5]", "two runs would be called"),
        ("[[outcomes]]", f"{OUTCOME}\n[[outcomes]]", "two outcomes would be called 'tokens/sample/oracle/tool_failure"),
    ],
)
def test_a_fault_is_one_line_that_says_where(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in DECLARED
    with pytest.raises(RewooBenchError) as raised:
        declared(tmp_path, DECLARED.replace(old, new))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("datasets.sample.dataset", "expected TABLE.NAME.KEY=VALUE"),
        ("datasets.semple.dataset=x", "unknown table 'semple', did you mean 'sample'?"),
        ("outcomes.tokens.measure=input_tokens", "expected TABLE.NAME.KEY=VALUE"),
        ("study.declared=2026-01-01", "expected TABLE.NAME.KEY=VALUE"),
        ("models.hosted.temperature=0.7", "temperature changes answers: change it in the file"),
        ("datasets.sample.dataset=chain?hops=2", "dataset changes answers: change it in the file"),
    ],
)
def test_a_change_of_what_isnt_there_is_refused(change: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RewooBenchError) as raised:
        declared(tmp_path, DECLARED, change)
    assert said in str(raised.value)
