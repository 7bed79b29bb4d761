"""`rewoo-bench route` and `rewoo_bench.route`: the report, its formats, and what stops it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from claim_runs import run_folder
from comparison_rows import FAILED
from routing_runs import comparison, description, parent, where_chance_decides, where_text_decides, write_run

import rewoo_bench
from rewoo_bench.analysis.routing import Way
from rewoo_bench.cli.main import main
from rewoo_bench.config.router import read_router
from rewoo_bench.errors import DataError, UsageError

pytest.importorskip("sklearn")


def route(*arguments: object) -> int:
    with pytest.raises(SystemExit) as done:
        main(["route", *map(str, arguments)])
    return int(done.value.code or 0)


def ways(folder: Path) -> dict[str, Way]:
    return {way.name: way for way in rewoo_bench.route(folder).ways}


def test_a_run_where_the_text_decides_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = where_text_decides(tmp_path / "0001"), tmp_path / "router.json"
    assert route(folder, "--out", out) == 0
    said = capsys.readouterr()
    assert re.match(r"Routing buys accuracy here: '(rule|learned, out of fold)' is right more often than", said.out)
    assert "80 questions, 80 with another exact match of the two" in said.out
    assert f"--arch 'router?policy=learned&file={out}'" in said.err
    router = read_router(out)
    assert (router.choose(comparison(99)), router.choose(description(99))) == ("rewoo", "react")


def test_a_run_where_chance_decides_buys_nothing(tmp_path: Path) -> None:
    report = rewoo_bench.route(where_chance_decides(tmp_path / "0001", seed=1))
    assert report.verdict.startswith(
        "Routing buys nothing that these 150 questions show: no policy is right more often"
    )
    assert "n = 150" in report.verdict
    assert report.verdict in str(report)


def test_amounts_are_those_of_the_parents_that_are_taken(tmp_path: Path) -> None:
    found = ways(where_text_decides(tmp_path / "0001"))
    tokens = {name: way.total_tokens.estimate for name, way in found.items() if way.total_tokens}
    assert tokens["always rewoo"] < tokens["learned, out of fold"] < tokens["always react"]
    biased = found["best of both by question, biased upward"]
    assert (biased.kind, biased.exact_match.estimate) == ("biased bound", 1.0)
    (_, against_react) = found["always rewoo"].against
    alike = found["always rewoo"].exact_match.estimate - found["always react"].exact_match.estimate
    assert against_react.exact_match.estimate == pytest.approx(alike)
    assert against_react.cost_usd is not None
    assert against_react.cost_usd.estimate == pytest.approx(0.34, abs=0.01)


def test_cost_is_for_a_policy_that_is_as_good_for_less(tmp_path: Path) -> None:
    """Both are right on everything that the rules send to ReWOO, and ReAct alone on nothing else."""
    texts = [comparison(i) if i % 2 else description(i) for i in range(300)]
    react = [True] * 300
    folder = write_run(tmp_path / "0001", texts, [i % 2 == 1 for i in range(300)], react)
    verdict = rewoo_bench.route(folder).verdict
    assert verdict.startswith("Routing saves tokens here: 'rule' takes 0.")
    assert "of the tokens of the better parent, 'react', and a loss of 2.0 points is ruled out: EM +0.000" in verdict


def test_json_has_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = where_text_decides(tmp_path / "0001")
    assert route(folder, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(rewoo_bench.route(folder).as_dict()))
    assert [way["kind"] for way in found["ways"]] == ["parent", "parent", "policy", "policy", "biased bound"]
    assert found["missing"][-1].endswith("needs a run with --trials 2 or more")
    assert route(folder, "--format", "markdown") == 0
    assert "| choice " in capsys.readouterr().out


def test_failed_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    texts = [comparison(i) if i % 2 else description(i) for i in range(20)]
    rows = [parent(name, texts, [bool(i % 3) for i in range(20)]) for name in ("rewoo", "react")]
    rows[0][3] |= FAILED
    report = rewoo_bench.route(run_folder(tmp_path / "0001", *rows))
    assert (report.questions, report.left_out) == (19, 1)
    assert any(reason.startswith("learned: nothing to learn") for reason in report.missing)


def test_pairs_that_nobody_scored_are_left_out_and_counted(tmp_path: Path) -> None:
    texts = [comparison(i) if i % 2 else description(i) for i in range(20)]
    rows = [parent(name, texts, [bool(i % 3) for i in range(20)]) for name in ("rewoo", "react")]
    rows[0][3]["exact_match"] = None
    report = rewoo_bench.route(run_folder(tmp_path / "0001", *rows))
    assert (report.questions, report.left_out) == (19, 1)
    unscored = [[{**row, "exact_match": None} for row in own] for own in rows]
    with pytest.raises(DataError, match="questions that both parents finished and have a score of, and there is none"):
        rewoo_bench.route(run_folder(tmp_path / "0002", *unscored))


def test_two_data_sets_are_pooled(tmp_path: Path) -> None:
    first, second = where_text_decides(tmp_path / "0001"), tmp_path / "0002"
    texts = [description(i) for i in range(20)]
    write_run(second, texts, [i % 2 == 0 for i in range(20)], [i % 3 == 0 for i in range(20)], data="triviaqa")
    report = rewoo_bench.route(first, second)
    assert (report.questions, report.datasets) == (100, ("hotpotqa", "triviaqa"))


def test_one_parent_alone_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_folder(tmp_path / "0001", parent("rewoo", ["Who?"], [True]))
    assert route(folder) == 2
    assert capsys.readouterr().err == (
        "rewoo-bench: routing needs rows of both parents, and the run has none of 'react'; "
        "it has rewoo: choose with --parents A,B\n"
    )


def test_nothing_to_learn_writes_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "0001", ["Who?", "What?"], [True, True], [True, False])
    out = tmp_path / "router.json"
    assert route(folder, "--out", out) == 2
    assert "nothing to learn: 'react' alone is right nowhere on 2 questions" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--parents", "rewoo"), "--parents: expected two architectures, as in rewoo,react; got 'rewoo'"),
        (("--parents", "rewoo,rewoo"), "parents: expected two different architectures"),
        (("--router", "rewoo"), "--router: 'rewoo' is no router: its runner is 'rewoo'"),
        (("--router", "ruter"), "--router: unknown architecture 'ruter', did you mean 'router'?"),
        (("--out", "none/router.json"), "--out: can't write 'none/router.json'"),
    ],
)
def test_a_wrong_flag_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert route(where_text_decides(tmp_path / "0001"), *arguments) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
    assert message in line


def test_a_published_run_takes_its_texts_from_the_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rewoo_bench.bench("rewoo,react", out=tmp_path / "run", model="oracle", questions=6)
    assert run.folder is not None
    rewoo_bench.publish(run.folder, tmp_path / "published")
    assert route(tmp_path / "published") == 2
    assert "6 questions of 6 have no text here, such as 'sample-0" in capsys.readouterr().err
    assert route(tmp_path / "published", "--dataset", "sample") == 0
    assert capsys.readouterr().out.startswith("An oracle answered: accuracy means nothing here")


def test_a_router_that_asked_a_model_is_a_policy_with_its_own_cost(tmp_path: Path) -> None:
    arch = "rewoo,react,router,router?policy=model"
    run = rewoo_bench.bench(arch, out=tmp_path / "run", model="oracle", dataset="chain?hops=3&branching=2", questions=6)
    assert run.folder is not None
    rows = run.rows.set_index("architecture")
    found = ways(run.folder)["model (router?policy=model)"]
    assert found.share == 1.0  # a branch can't be foreseen, so the oracle sends all to the second parent
    assert found.total_tokens is not None
    assert found.total_tokens.estimate == pytest.approx(rows.loc["router?policy=model"]["total_tokens"].mean())
    assert found.total_tokens.estimate > rows.loc["react"]["total_tokens"].mean()


def test_without_scikit_learn_the_line_has_the_command(tmp_path: Path) -> None:
    folder = where_text_decides(tmp_path / "0001")
    code = (
        "import sys; sys.modules['sklearn'] = None\n"  # as where it isn't installed
        f"from rewoo_bench.cli.main import main; main(['route', {str(folder)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "rewoo-bench: fitting a router needs scikit-learn: pip install 'rewoo-bench[route]'\n"


def test_arguments_from_python_are_checked(tmp_path: Path) -> None:
    folder = where_text_decides(tmp_path / "0001")
    with pytest.raises(UsageError, match="threshold: expected a number from 0 to 1, got 2"):
        rewoo_bench.route(folder, threshold=2)
    with pytest.raises(UsageError, match="parents: expected two different architectures, got 'ab'"):
        rewoo_bench.route(folder, parents="ab")  # type: ignore[arg-type]


@pytest.mark.parametrize("run", ["sample-qwen-1.5b-eight", "sample-smollm2-135m"])
def test_the_table_of_published_runs_is_what_route_says(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of its rows: the others need the texts of public data sets."""
    root = Path(__file__).parents[3]
    assert route(root / "tests" / "golden" / "models" / run, "--dataset", "sample") == 0
    said = capsys.readouterr().out
    page = (root / "architectures" / "router" / "README.md").read_text(encoding="utf-8")
    (cells,) = re.findall(rf"^\| `{run}` \| (.*) \|$", page, re.MULTILINE)
    n, one_alone, *figures = cells.split(" | ")
    found = []
    for policy in ("rule", "learned, out of fold", "best of both by question, biased upward"):
        (figure,) = re.findall(rf"^{policy} - rewoo +{n} +(\S+ \[.*?\])", said, re.MULTILINE)
        found.append(figure)
    assert figures == [*found[:2], found[2].split(" ")[0]]
    assert f"{one_alone} with another exact match of the two" in said
