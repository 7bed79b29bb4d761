"""The paper's other data sets, and its averages: a real run of each claim's architectures gives each a verdict."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from claim_runs import one_claim, run_folder
from comparison_rows import system
from real_data import EXTRA, RealData

from rewoo_bench import bench
from rewoo_bench.analysis.claims import check, gather, read_claims
from rewoo_bench.analysis.claims.check import needed, needed_by_all, render_claims
from rewoo_bench.analysis.claims.claim_file import Claim
from rewoo_bench.analysis.claims.run_groups import BY_FORMAT
from rewoo_bench.analysis.stats.paired import Interval, mean_of_differences, ratio_of_means, ratio_of_summed_means
from rewoo_bench.errors import DataError
from rewoo_bench.runs.manifest import read_manifest, write_manifest
from rewoo_bench.testing.server import ModelServer

NEW = ("gsm8k", "strategyqa", "physics", "sports", "sotu")
CLAIMS = [claim for claim in read_claims() if claim.test]
FILES = {
    "gsm8k": "gsm8k_test.jsonl",
    "strategyqa": "strategyqa_229.jsonl",
    "physics": "rewoo_physics_question.csv",
    "sports": "rewoo_sports_understanding.csv",
    "sotu": "rewoo_SOTU_QA.csv",
}
OF_NEW = [claim for claim in CLAIMS if claim.test and claim.test.on.data and claim.test.on.data[0] in NEW]
AVERAGES = [claim for claim in CLAIMS if claim.test and claim.test.measure.data]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One run over HTTP with a judge, as the data set of each of the paper's rows; a token costs a millionth dollar."""
    folder = tmp_path_factory.mktemp("runs")
    with ModelServer(reply) as server:
        options = {"api_base": server.api_base, "judge_model": "openai/gpt-4o-mini"}
        bench("rewoo,react,direct,cot", out=folder / "run", questions=4, model="openai/gpt-4o-mini", **options)
    return [as_data_set(folder / "run", folder / name, name) for name in BY_FORMAT]


def reply(request: dict[str, Any]) -> str:
    """An answer that is wrong nearly everywhere, and what the judge says of it."""
    return "no" if str(request["messages"][-1]["content"]).endswith("Same?") else "Answer: Lund"


def as_data_set(run: Path, copy: Path, name: str) -> Path:
    shutil.copytree(run, copy)
    rows = pq.read_table(copy / "questions.parquet")
    dollars = pa.compute.multiply(rows["total_tokens"].cast(pa.float64()), 1e-6)
    place = rows.schema.get_field_index("cost_usd")
    pq.write_table(rows.set_column(place, "cost_usd", dollars), copy / "questions.parquet")
    manifest = read_manifest(copy)
    dataset = manifest.dataset.model_copy(update={"name": name, "format": name})
    zero_shot = [  # as in the paper
        each.model_copy(update={"exemplars": {}}) if each.name == "direct" else each for each in manifest.architectures
    ]
    manifest = manifest.model_copy(update={"architectures": zero_shot})
    write_manifest(copy, manifest.model_copy(update={"dataset": dataset, "run_id": f"{manifest.run_id}-{name}"}))
    return copy


def test_each_row_of_the_papers_table_has_its_claims() -> None:
    ids = {claim.id for claim in OF_NEW}
    for name in NEW:
        kinds = ("tokens-react-rewoo",)
        judged = [f"judged-rewoo-{other}" for other in ("react", "direct", "cot")]
        steps = ("steps-react", "steps-rewoo")
        assert {f"{name}-{kind}" for kind in (*kinds, *judged, *steps)} <= ids
    with_em = {claim.id.partition("-")[0] for claim in OF_NEW if "-em-" in claim.id}
    assert with_em == {"strategyqa", "sports"}


@pytest.mark.by_day(14)
@pytest.mark.parametrize("claim", [*OF_NEW, *AVERAGES], ids=lambda claim: claim.id)
def test_a_run_gives_each_new_claim_a_verdict(claim: Claim, runs: list[Path]) -> None:
    (finding,) = check([claim], gather(*runs))
    assert finding.verdict in ("reproduced", "contradicted", "undecided")
    assert finding.decided is not None
    assert finding.decided.interval.n == 4 * len(finding.decided.runs)


@pytest.mark.parametrize("name", FILES)
def test_a_run_of_real_rows_is_known_by_its_data_set(name: str, real_data: RealData, tmp_path: Path) -> None:
    folder = real_data(EXTRA)
    with ModelServer(reply) as server:
        options: dict[str, Any] = {"api_base": server.api_base, "judge_model": "openai/judge"}
        options |= {} if name == "gsm8k" else {"corpus": folder / "rewoo_state_of_the_union.txt"}
        dataset = f"{name}={folder / FILES[name]}"
        bench(
            "rewoo,react,direct,cot",
            dataset=dataset,
            out=tmp_path / "run",
            questions=2,
            model="openai/small",
            **options,
        )
    own = [claim for claim in OF_NEW if claim.test and claim.test.on.data == (name,)]
    assert "no data" not in {finding.verdict for finding in check(own, gather(tmp_path / "run"))}


def test_an_average_needs_every_data_set_with_the_same_model(runs: list[Path], tmp_path: Path) -> None:
    (claim,) = (claim for claim in AVERAGES if claim.id == "average-tokens")
    (finding,) = check([claim], gather(*runs[1:]))
    assert finding.verdict == "no data"
    asked = (
        "needs run --arch rewoo,react --dataset hotpotqa; and --dataset triviaqa --corpus PASSAGES; "
        "and --dataset gsm8k; "
    )
    assert finding.reason.startswith(asked)
    assert "and --dataset physics=FILE" in finding.reason
    other = run_folder(tmp_path / "a", system(), system("react", "110100", 2600))  # of another model
    (still,) = check([claim], gather(other, *runs[1:]))
    assert still.verdict == "no data"
    (found,) = check([claim], gather(other, *runs))
    assert found.decided is not None
    assert found.decided.label == "6 data sets, openai/gpt-4o-mini"


def test_an_average_counts_every_data_set_alike(tmp_path: Path) -> None:
    runs = [
        run_folder(tmp_path / "1", system(matches="1" * 20), system("react", "0" * 20, 1000)),
        run_folder(tmp_path / "2", system(matches="1" * 80), system("react", "1" * 80, 1000), data="gsm8k"),
    ]
    measure = 'name = "average_difference", column = "exact_match", of = "rewoo", minus = "react", data = {data}'
    text = one_claim("above = 0", measure.format(data='["hotpotqa", "gsm8k"]'))
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    (finding,) = check(read_claims(path), gather(*runs))
    assert finding.interval is not None
    assert (finding.interval.estimate, finding.interval.n) == (0.5, 100)


def test_one_stratum_is_a_ratio_of_means() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.lognormal(7, 1, 60), draw.lognormal(6, 1, 60)
    alone, plain = ratio_of_summed_means([(a, b, None)]), ratio_of_means(a, b)
    assert (alone.estimate, alone.low, alone.high) == pytest.approx((plain.estimate, plain.low, plain.high))


def test_intervals_over_strata_hold_the_truth() -> None:
    """Six strata of other sizes and costs, where the second system takes half of the tokens; and 5 points more."""
    draw, held, within, estimates, widths = np.random.default_rng(0), [], [], [], []
    for _ in range(300):
        sizes = (300, 200, 100, 50, 50, 50)
        strata = []
        for position, n in enumerate(sizes):
            a = 1000 * (1 + position) * draw.lognormal(0, 0.6, n)
            strata.append((a, 0.5 * a * draw.lognormal(-0.045, 0.3, n), None))
        ratio = ratio_of_summed_means(strata)
        held.append(ratio.low <= 0.5 <= ratio.high)
        estimates.append(np.log(ratio.estimate))
        widths.append(np.log(ratio.high / ratio.low))
        differences = []
        for n in sizes:
            values = draw.normal(0.05, 0.5, n)
            half = 1.96 * 0.5 / n**0.5
            differences.append(Interval(values.mean(), values.mean() - half, values.mean() + half, n))
        mean = mean_of_differences(differences)
        within.append(mean.low <= 0.05 <= mean.high)
    assert np.mean(held) >= 0.95  # more, where no question runs into a limit: the interval allows for some that do
    assert np.mean(widths) < 2 * (2 * 1.96 * np.std(estimates))
    assert 0.92 <= np.mean(within) <= 0.98


def test_nothing_to_average_is_refused() -> None:
    for average in (ratio_of_summed_means, mean_of_differences):
        with pytest.raises(DataError, match="no stratum"):
            average([])


def test_claims_without_a_run_are_one_line_of_their_data_set(runs: list[Path]) -> None:
    findings = check(read_claims(), gather(runs[BY_FORMAT.index("gsm8k")]))
    short = " ".join(render_claims(findings, "terminal").split())
    assert (
        "STRATEGYQA: 9 claims without data here; to test: run --arch react,rewoo,direct,cot --dataset strategyqa "
        "--corpus PASSAGES --judge-model JUDGE (--all shows each)"
    ) in short
    assert "gsm8k-tokens-react-rewoo: " in short
    assert "no data: " not in short
    whole = " ".join(render_claims(findings, "terminal", everything=True).split())
    assert whole.count("needs run --arch") == sum(finding.verdict == "no data" for finding in findings)
    assert all(f"{finding.claim.id}: " in whole for finding in findings)


def test_the_commands_of_a_data_set_serve_all_of_its_claims() -> None:
    tests = [claim.test for claim in OF_NEW if claim.test and claim.test.on.data == ("sotu",)]
    (command,) = needed_by_all(tests)
    architectures = command.split()[2].split(",")
    for test in tests:
        assert set(test.measure.architectures()) <= set(architectures)
        assert (
            f"--dataset sotu=FILE --corpus PASSAGES{' --judge-model JUDGE' if 'JUDGE' in needed(test) else ''}"
            in needed(test)
        )
    assert command.endswith("--judge-model JUDGE")
