"""Figures of odd runs: every text on the sheet and readable, or a line that says what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from plot_fit import check_fits, made_run, pictures, shown
from plot_runs import model_run, oracle_run, write_questions

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.config.names import bundled_names
from rewoo_bench.report.plots.data import read
from rewoo_bench.report.plots.draw import draw

VARIANTS = [
    "rewoo?max_steps=23&max_replans=2&schedule=levels&slot_tokens=400",
    "rewoo?max_steps=23&max_replans=2&schedule=levels&slot_tokens=300",
    "react?max_steps=23",
    "my-own-architecture-with-a-name-of-sixty-characters-and-more-x",
]
NEWER = ("react-code", "react-json", "rewoo-code", "rewoo-lazy")
TWELVE = [*(name for name in bundled_names("architectures") if name not in NEWER), *VARIANTS]
LONG = "a-data-set-with-a-name-of-sixty-characters-and-then-some-more"


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve systems of the oracle, four of them variants."""
    folder = tmp_path_factory.mktemp("fit") / "run"
    names = [*TWELVE[:8], *VARIANTS[:3], "rewoo-json?max_steps=23"]
    return oracle_run(folder, *names, dataset="chain?hops=1..6", questions=12, max_steps=23)


def test_the_check_sees_what_runs_off_and_what_is_covered() -> None:
    for places in ([(0.9, 0.5)], [(0.1, 0.5), (0.12, 0.5)], [(-0.1, 0.5)]):
        figure = Figure()
        for place in places:
            figure.text(*place, "a text of some length")
        with pytest.raises(AssertionError):
            check_fits(figure)


@pytest.mark.nightly
def test_twelve_systems_with_long_names_fit_in_each_figure(chains: Path) -> None:
    drawn = pictures(chains)
    assert list(drawn) == ["ratio", "steps", "parts"]
    for picture in drawn.values():
        check_fits(picture.figure)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("cost", [None, 0.001])
def test_twelve_systems_of_a_model_fit_though_they_are_all_tied(tmp_path: Path, cost: float | None) -> None:
    run = made_run(tmp_path / "run", TWELVE, dataset=LONG, cost_usd=cost, model="openai/" + "m" * 60)
    drawn = pictures(run, only=["pareto", "latency", "paper"])
    for picture in drawn.values():
        check_fits(picture.figure)
    for name in ("pareto", "latency"):
        texts = [" ".join(text.get_text().split()) for text in shown(drawn[name].figure)]
        assert any(text.replace(" ", "").endswith("slot_tokens=300") for text in texts)


@pytest.mark.parametrize("pair", [("react", VARIANTS[0]), (VARIANTS[3], VARIANTS[1])])
def test_a_ratio_of_long_names_fits(tmp_path: Path, pair: tuple[str, str]) -> None:
    run = made_run(tmp_path / "run", TWELVE, dataset=LONG)
    ((_, picture),) = draw(read([run]), only=["ratio"], pair=pair)
    check_fits(picture.figure)


def test_one_question_one_architecture_and_two_data_sets(tmp_path: Path, chains: Path) -> None:
    one = oracle_run(tmp_path / "one", "rewoo", questions=1)
    assert list(pictures(one)) == ["parts"]
    for picture in pictures(one, chains).values():
        check_fits(picture.figure)
    assert list(pictures(made_run(tmp_path / "single", ["react"], "1"))) == ["latency", "paper"]


def test_failed_rows_are_in_no_figure_and_a_pair_with_one_is_left_out(tmp_path: Path) -> None:
    run = model_run(tmp_path / "run")
    rows = rewoo_bench.load(run)
    first = (rows["architecture"] == "react") & (rows["example_id"] == "q0")
    write_questions(run, rows[~((rows["example_id"] == "q0") & rows["architecture"].isin(["react", "rewoo"]))])
    without = pictures(run, only=["ratio"])["ratio"].title
    rows = rows.astype({"stop_reason": str})
    rows.loc[first, ["exact_match", "stop_reason"]] = [None, "error"]
    rows.loc[first, ["input_tokens", "total_tokens", "latency_s"]] = [9_000_000, 9_000_000, 9e6]
    write_questions(run, rows)
    drawn = pictures(run)
    assert drawn["ratio"].title == without
    assert "n = 5 questions (left out, failed or unmetered: react 1)" in drawn["ratio"].caption
    for name in ("pareto", "latency", "paper"):
        assert "n = 5 to 6 questions (left out, failed or unmetered: react 1)" in drawn[name].caption
        assert max(axes.get_xlim()[1] for axes in drawn[name].figure.axes) < 100_000


def test_rejected_plans_are_left_out_of_steps_and_counted(chains: Path, tmp_path: Path) -> None:
    rows = rewoo_bench.load(chains)
    rows = rows[rows["architecture"].isin(["rewoo", "react"])].astype({"stop_reason": str}).reset_index(drop=True)
    long = rows["hops"] >= 4
    rejected = long & (rows["architecture"] == "rewoo")
    rows.loc[rejected, "stop_reason"] = "invalid_plan"
    rows.loc[rejected, "tool_calls"] = 0
    rows.loc[(rows["hops"] == 6) & (rows["architecture"] == "react"), "stop_reason"] = "step_limit"
    for name in ("some", "all"):
        (tmp_path / name).mkdir()
    write_questions(tmp_path / "some", rows)
    write_questions(tmp_path / "all", rows[rows["stop_reason"] == "invalid_plan"])
    ((_, picture),) = draw(read([tmp_path / "some"]), only=["steps"])
    assert "Rejected plans, left out: rewoo 6." in picture.caption
    points = [np.asarray(line.get_xdata()) for line in picture.figure.axes[0].lines if line.get_marker() == "o"]
    (rewoo,) = [hops for hops in points if len(hops)]
    assert rewoo.tolist() == [1, 2, 3]
    reasons: dict[str, str] = {}
    assert not dict(draw(read([tmp_path / "all"]), only=["steps"], on_skip=reasons.__setitem__))
    assert reasons == {"steps": "needs questions with a valid plan; here all 6 plans were rejected"}


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_names_of_a_foreign_run_are_one_line_and_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["rewoo", "$E$_x^2 <b>@all</b>", "red\x1b[31m name", "日本"]
    run = made_run(tmp_path / "run", names, dataset="data\n\n## [x](https://example.com) set")
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(run), "--only", "pareto,ratio", "--format", "svg"])
    assert ended.value.code == 0
    said, captions = capsys.readouterr(), (run / "plots" / "captions.md").read_text(encoding="utf-8")
    assert said.err.startswith("ratio: not drawn: needs rows of 'react' and 'rewoo' on the same questions; there are")
    assert "\x1b" not in said.err + captions
    assert [line for line in captions.splitlines() if line.startswith("#")] == ["# Figures", "## pareto"]
    assert [markup for markup in ("<b>", "@all", "[x](", "https://") if markup in captions] == []
    for picture in pictures(run, only=["latency"]).values():
        check_fits(picture.figure)
        assert "$E$_x^2 <b>@all</b>" in [text.get_text() for text in shown(picture.figure)]
