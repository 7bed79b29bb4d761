"""The plot command: which figures there are of which runs, the same bytes every time, and what isn't drawn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from plot_fit import check_fits
from plot_runs import model_run, oracle_run, write_questions

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.report.plots.data import read
from rewoo_bench.report.plots.draw import FIGURES, draw

ROOT = Path(__file__).parents[3]
DRAWN_OF_AN_ORACLE = ["ratio", "steps", "parts"]


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "chains"
    return oracle_run(folder, "rewoo", "react", "direct", dataset="chain?hops=1..3", questions=6)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("failing")
    whole = oracle_run(folder / "whole", "rewoo", "react", "direct", questions=6)
    return [whole, oracle_run(folder / "broken", "rewoo", "react", questions=4, tool_failure_rate=1.0)]


def test_of_a_stopped_run_only_what_all_architectures_came_to_is_drawn(chains: Path, tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    shutil.copytree(chains, stopped)
    rows = pd.read_parquet(chains / "questions.parquet")
    last = rows["example_id"].iloc[-1]
    write_questions(stopped, rows[(rows["example_id"] != last) | (rows["architecture"] != "react")])
    found, whole = read([stopped]), read([chains])
    assert set(found.rows["example_id"]) == set(whole.rows["example_id"]) - {last}
    assert set(found.calls["example_id"]) == set(whole.calls["example_id"]) - {last}
    assert len(whole.rows) - len(found.rows) == 3
    assert found.facts().startswith("n = 5 questions")


class Drawn(NamedTuple):
    folder: Path
    said: str
    errors: str


@pytest.fixture(scope="module")
def drawn(chains: Path, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """All figures of a run, by the script, in a process of its own."""
    folder = tmp_path_factory.mktemp("drawn")
    command = [sys.executable, "scripts/plot.py", str(chains), "--out", str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment)
    return Drawn(folder, done.stdout, done.stderr)


def plot(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["plot", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def texts(picture: rewoo_bench.report.plots.Picture) -> str:
    """Every text in a figure."""
    return "\n".join(
        text.get_text() for text in picture.figure.findobj(match=lambda artist: hasattr(artist, "get_text"))
    )


def test_each_figure_is_a_picture_in_both_formats_with_its_caption(chains: Path, drawn: Drawn) -> None:
    names = [f"{name}.{form}" for name in DRAWN_OF_AN_ORACLE for form in ("png", "svg")]
    assert drawn.said.split() == [str(drawn.folder / name) for name in [*names, "captions.md"]]
    for name in DRAWN_OF_AN_ORACLE:
        png = (drawn.folder / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG")
        assert len(png) > 20_000
        assert len(list(ElementTree.parse(drawn.folder / f"{name}.svg").iter())) > 100
    captions = (drawn.folder / "captions.md").read_text(encoding="utf-8")
    assert captions.count("n = 6 questions · oracle · chain?hops=1..3 · 20") == len(DRAWN_OF_AN_ORACLE)


def test_what_cannot_be_drawn_is_told_in_a_line_each(drawn: Drawn) -> None:
    lines = drawn.errors.splitlines()
    left_out = [name for name in FIGURES if name not in DRAWN_OF_AN_ORACLE]
    assert [line.split(": not drawn: needs ")[0] for line in lines] == left_out
    assert "pareto: not drawn: needs a model: an oracle is told the answers: its accuracy means nothing" in lines


def test_the_same_rows_give_the_same_bytes_without_the_journal_and_in_another_process(
    chains: Path, drawn: Drawn, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(chains, copy, ignore=shutil.ignore_patterns("journal.sqlite*"))
    assert plot(copy) == 0
    again = {path.name: path.read_bytes() for path in (copy / "plots").iterdir()}
    before = {path.name: path.read_bytes() for path in drawn.folder.iterdir()}
    assert len(before) == 2 * len(DRAWN_OF_AN_ORACLE) + 1
    assert [name for name in before if again.get(name) != before[name]] == []


def test_what_lacks_the_usual_pair_names_the_flag_and_a_pair_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = oracle_run(tmp_path / "run", "direct", "rewoo-lazy", questions=4)
    assert plot(run, "--only", "ratio") == 2
    said = "ratio: not drawn: needs rows of 'react' and 'rewoo' on the same questions; there are direct, rewoo-lazy"
    assert f"{said}: give --pair" in capsys.readouterr().err
    assert plot(run, "--only", "ratio", "--pair", "rewoo-lazy,direct") == 0


def test_python_and_the_command_line_have_one_list_of_figures(
    chains: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plot(chains, "--only", "foo") == 2
    with pytest.raises(UsageError, match=r"^unknown figure 'foo'; available: failure, ") as raised:
        rewoo_bench.plot(chains, out=tmp_path, only=["foo"])
    assert str(raised.value) in capsys.readouterr().err
    files = rewoo_bench.plot(chains, out=tmp_path, only=["parts"], formats=["svg"])
    assert [path.name for path in files] == ["parts.svg", "captions.md"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--only", "ratio,parto"],
            "unknown figure 'parto', did you mean 'pareto'? available: failure, latency",
        ),
        (["--format", "svgz"], "unknown format 'svgz', did you mean 'svg'? available: png, svg"),
        (
            ["--pair", "react,rewo"],
            "unknown architecture 'rewo', did you mean 'rewoo'? available: direct, react, rewoo",
        ),
        (["--pair", "react"], "--pair 'react': expected two architectures, as in react,rewoo"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    flags: list[str], said: str, chains: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plot(chains, *flags) == 2
    assert said in capsys.readouterr().err
    assert not (chains / "plots").exists()


def test_the_ratio_is_that_of_the_comparison(chains: Path) -> None:
    ((_, picture),) = draw(read([chains]), only=["ratio"])
    rows = rewoo_bench.load(chains)
    compared = rewoo_bench.compare(rows[rows["architecture"] != "direct"], baseline="rewoo")
    found = compared.pairs[0]["total_tokens"].interval
    assert picture.title.lower() == compared.verdicts[0].lower().removesuffix(".")
    assert f"{found.estimate:.2f} times in mean tokens" in picture.caption
    assert f"95% interval {found.low:.2f} to {found.high:.2f}" in picture.caption


def test_the_ratio_where_both_answered_and_loops_are_in_the_caption(tmp_path: Path) -> None:
    run = model_run(tmp_path / "run")
    rows = rewoo_bench.load(run)
    unfinished = (rows["architecture"] == "react") & (rows["example_id"] == "q1")
    steps = np.where(unfinished, 2.0, np.nan)
    stops = np.where(unfinished, "step_limit", "answered")
    write_questions(run, rows.assign(stop_reason=stops, loop_step=steps, loop_tokens=0.0))
    ((_, picture),) = draw(read([run]), only=["ratio"])
    rest = rewoo_bench.compare(rows[rows["example_id"] != "q1"], baseline="rewoo")
    (found,) = [each["total_tokens"].interval for each in rest.pairs if each.b == "react"]
    assert f"Where both answered: {found.estimate:.2f} times (n = {found.n}). In loops: react 1." in picture.caption


def test_failing_tools_and_a_run_without_make_one_figure_of_the_questions_they_share(failing: list[Path]) -> None:
    ((name, picture),) = draw(read(failing), only=["failure"])
    assert name == "failure"
    assert {"0%", "100%", "rewoo", "react"} <= set(texts(picture).splitlines())
    assert "A failing tool finds nothing." in picture.caption
    assert "n = 4 questions" in picture.caption


def test_a_models_run_has_accuracy_latency_and_the_paper_beside_it(tmp_path: Path) -> None:
    drawn = dict(draw(read([model_run(tmp_path / "run")])))
    assert list(drawn) == ["ratio", "pareto", "latency", "paper"]
    assert "than 'direct' or 'rewoo'" in drawn["pareto"].caption.replace("'cot' or ", "")
    assert "No dollars: not all calls have a price." in drawn["pareto"].caption
    assert "Questions at once: 4." in drawn["latency"].caption
    assert "HotpotQA, ReAct / ReWOO tokens: 4.93× in the paper" in drawn["paper"].caption
    assert {"9,795", "1,986", "32.2", "30.4", "50.0", "66.7"} <= set(texts(drawn["paper"]).splitlines())
    assert "n = 6 questions · openai/small_1 · hotpotqa · 2026-03-04" in texts(drawn["ratio"])


def test_known_prices_add_dollars(tmp_path: Path) -> None:
    ((_, picture),) = draw(read([model_run(tmp_path / "run", cost_usd=0.001)]), only=["pareto"])
    assert "US$ per 1,000 questions (log scale)" in texts(picture)
    assert (
        "Dollars are at prices that run.json doesn't name, cached input as the endpoint counted it." in picture.caption
    )
    assert "No dollars" not in picture.caption


def test_two_data_sets_and_two_models_are_figures_of_their_own_and_one_of_the_paper_a_model(tmp_path: Path) -> None:
    runs = [model_run(tmp_path / form, form) for form in ("hotpotqa", "triviaqa")]
    runs.append(model_run(tmp_path / "local", model="local/big", solver_model="local/bigger"))
    drawn = dict(draw(read(runs), only=["ratio", "paper"]))
    assert list(drawn) == [
        "ratio-hotpotqa-openai-small_1",
        "ratio-triviaqa-openai-small_1",
        "ratio-hotpotqa-local-big-solver-local-bigger",
        "paper-openai-small_1",
        "paper-local-big-solver-local-bigger",
    ]
    assert "local/big (solver local/bigger)" in drawn["paper-local-big-solver-local-bigger"].caption
    assert "TriviaQA" in texts(drawn["paper-openai-small_1"])


def test_steps_says_how_bars_of_few_questions_are_made(tmp_path: Path) -> None:
    run = oracle_run(tmp_path / "run", "rewoo", "react", dataset="chain?hops=1..6", questions=30, max_steps=14)
    ((_, picture),) = draw(read([run]), only=["steps"])
    check_fits(picture.figure)
    assert "may reach beyond the points" in picture.caption
