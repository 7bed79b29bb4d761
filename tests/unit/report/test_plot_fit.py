"""Figures of odd runs: every text on the sheet and readable, or a line that says what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from plot_fit import check_fits, made_run, pictures, shown
from plot_runs import model_run, oracle_run, write_questions

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.config.names import bundled_names
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots.draw import draw, read
from rewoo_bench.report.plots.style import GREY

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
        assert any(text.endswith("slot tokens 300") for text in texts)


@pytest.mark.parametrize("pair", [("react", VARIANTS[0]), (VARIANTS[3], VARIANTS[1])])
def test_a_ratio_of_long_names_fits(tmp_path: Path, pair: tuple[str, str]) -> None:
    run = made_run(tmp_path / "run", TWELVE, dataset=LONG)
    ((_, picture),) = draw(read([run]), only=["ratio"], pair=pair)
    check_fits(picture.figure)


def test_markers_at_nothing_and_at_everything_are_whole(tmp_path: Path) -> None:
    for matches in ("000000", "111111"):
        run = made_run(tmp_path / matches, ["rewoo", "react"], matches)
        for picture in pictures(run, only=["pareto"]).values():
            picture.figure.draw_without_rendering()
            axes = picture.figure.axes[0]
            low, high = axes.get_ylim()
            at = float(matches[0])
            radius = 6 * picture.figure.dpi / 72  # of the larger of two tied markers
            assert low < at < high
            spot, bottom, top = (axes.transData.transform((1000, y))[1] for y in (at, low, high))
            assert spot - bottom >= radius
            assert top - spot >= radius
            assert all(0 <= tick <= 1 for tick in axes.get_yticks())


def test_names_of_tied_points_are_apart_and_their_markers_seen(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ["rewoo", "react", "cot"], cost_usd=None)
    rows = rewoo_bench.load(run)
    write_questions(run, rows.assign(total_tokens=1000))
    ((_, picture),) = draw(read([run]), only=["pareto"])
    check_fits(picture.figure)
    sizes = [line.get_markersize() for line in picture.figure.axes[0].lines if line.get_marker() in ("o", "^", "p")]
    assert sorted(set(sizes)) == [8, 11, 14]


def test_numbers_to_the_right_of_long_names_are_on_the_sheet(tmp_path: Path) -> None:
    tools = ["Search", "Search+LLM+Lookup", "Search+LLM+Lookup+Calculator"]
    run = made_run(tmp_path / "run", ["rewoo", *(f"rewoo?tools={names}" for names in tools)], "10" * 50)
    rows = rewoo_bench.load(run)
    write_questions(run, rows.assign(latency_s=[30.0 + i % 60 for i in range(len(rows))]))
    ((_, picture),) = draw(read([run]), only=["latency"])
    assert "p95" in [text.get_text() for text in shown(picture.figure)]
    check_fits(picture.figure)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("cost", [None, 0.001])
def test_many_points_have_numbers_and_their_names_a_list(tmp_path: Path, cost: float | None) -> None:
    names = [f"{name}?max_exemplars={n}" for n in range(8) for name in ("rewoo", "react")]
    run = made_run(tmp_path / "run", names, "110100", cost_usd=cost)
    rows = rewoo_bench.load(run)
    tokens = rows["architecture"].map({name: 500 + 400 * i for i, name in enumerate(names)}).astype(int)
    write_questions(run, rows.assign(total_tokens=tokens))
    ((_, picture),) = draw(read([run]), only=["pareto"])
    check_fits(picture.figure)
    panels = picture.figure.axes
    assert [[text.get_text() for text in panel.texts] for panel in panels] == [[str(i + 1) for i in range(16)]] * len(
        panels
    )
    (legend,) = [*picture.figure.legends, *filter(None, (panel.get_legend() for panel in panels))]
    assert legend.get_texts()[3].get_text() == "4  ReAct, max exemplars 1"


def test_a_line_from_a_name_to_its_data_doesnt_look_like_data(chains: Path) -> None:
    ((_, picture),) = draw(read([chains]), only=["steps"])
    arrows = [text.arrow_patch for text in picture.figure.axes[0].texts if isinstance(text, Annotation)]
    assert {to_hex(arrow.get_edgecolor()) for arrow in arrows if arrow} == {GREY}


def test_a_95th_percentile_is_of_72_questions_or_more(tmp_path: Path) -> None:
    for n in (5, 71, 72):
        run = made_run(tmp_path / str(n), ["rewoo", "react"], "10" * (n // 2) + "1" * (n % 2))
        ((_, picture),) = draw(read([run]), only=["latency"])
        texts = [text.get_text() for text in shown(picture.figure)]
        assert ("p95" in texts) == (n >= 72)
        assert ("p95 needs 72 questions for a 95% interval" in picture.caption) == (n < 72)
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
    assert "n = 5 questions (left out, failed by the infrastructure: ReAct 1)" in drawn["ratio"].caption
    for name in ("pareto", "latency", "paper"):
        assert "n = 5 to 6 questions (left out, failed by the infrastructure: ReAct 1)" in drawn[name].caption
        assert max(axes.get_xlim()[1] for axes in drawn[name].figure.axes) < 100_000


def test_where_the_infrastructure_failed_all_it_is_said_in_a_line_and_the_command_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made_run(tmp_path / "run", ["rewoo", "react"], "----")
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(run)])
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "ratio: not drawn: needs questions that were answered; the infrastructure failed all 8 rows"
    assert said[-1] == f"rewoo-bench: no figure could be drawn for {str(run)!r}"


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
    assert "Rejected plans, left out: ReWOO 6." in picture.caption
    assert "In the means but in no fit, because a limit cut them off: ReAct 2." in picture.caption
    points = [np.asarray(line.get_xdata()) for line in picture.figure.axes[0].lines if line.get_marker() == "o"]
    (rewoo,) = [hops for hops in points if len(hops)]
    assert rewoo.tolist() == [1, 2, 3]
    reasons: dict[str, str] = {}
    assert not dict(draw(read([tmp_path / "all"]), only=["steps"], on_skip=reasons.__setitem__))
    assert reasons == {"steps": "needs questions with a valid plan; here all 6 plans were rejected"}


def test_the_laws_in_the_caption_are_in_words(tmp_path: Path) -> None:
    run = oracle_run(tmp_path / "run", "rewoo", "react", questions=50)
    caption = dict(draw(read([run]), only=["steps"]))["steps"].caption
    assert re.search(
        r"ReAct \(h \+ 1\) × [\d,]+ \+ h \(h \+ 1\) / 2 × \d+ \(off by 0\.\d% on 1 longer question\);", caption
    )
    assert re.search(r"the LLM tool \d+ per look-up less \d+ \(off by \d\.\d% on 1 longer question\)", caption)


def test_a_figure_that_was_asked_for_and_cant_be_drawn_gives_the_reason(chains: Path) -> None:
    with pytest.raises(NothingToDraw, match=r"^pareto: needs a model: an oracle"):
        dict(draw(read([chains]), only=["steps", "pareto"]))
    assert "pareto" not in dict(draw(read([chains])))


def test_the_paper_names_the_architectures_that_are_missing(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ["rewoo?max_steps=3", "react?max_steps=3"])
    reason = "needs direct, cot, react or rewoo without options; the runs on HotpotQA have rewoo.max_steps=3, react"
    with pytest.raises(NothingToDraw, match=reason):
        dict(draw(read([run]), only=["paper"]))


def test_numbers_of_the_paper_keep_off_the_edge(tmp_path: Path) -> None:
    ((_, picture),) = draw(read([model_run(tmp_path / "run")]), only=["paper"])
    (dearest,) = [text for text in shown(picture.figure) if text.get_text() == "9,795"]
    assert dearest.get_window_extent().x1 < picture.figure.axes[1].bbox.x1 - 8


def test_totals_of_parts_are_those_of_the_tables(chains: Path) -> None:
    rows = rewoo_bench.load(chains)
    ((_, picture),) = draw(read([chains]), only=["parts"])
    bars = [sum(bar[i].get_width() for bar in picture.figure.axes[0].containers[:6]) for i in range(12)]
    means = rows.groupby("architecture", sort=False, observed=True)["total_tokens"].mean()
    assert bars == pytest.approx(means.tolist())


def test_an_architecture_that_took_no_tokens_has_an_empty_bar(chains: Path, tmp_path: Path) -> None:
    rows, calls = rewoo_bench.load(chains), pd.read_parquet(chains / "calls.parquet")
    tokens = [name for name in rows.columns if name.endswith("_tokens")]
    rows.loc[rows["architecture"] == "direct", tokens] = 0
    calls.loc[calls["architecture"] == "direct", ["input_tokens", "output_tokens"]] = 0
    write_questions(tmp_path, rows)
    calls.to_parquet(tmp_path / "calls.parquet")
    drawn = pictures(tmp_path, only=["parts"])
    check_fits(drawn["parts"].figure)
    assert "0" in [text.get_text() for text in drawn["parts"].figure.axes[0].texts]


def test_a_run_without_the_values_of_some_columns_is_drawn(chains: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    rows = pd.read_parquet(chains / "questions.parquet")
    unknown = ["hops", "difficulty", "gold_pages_found", "seed", "temperature", "tool_failure_rate"]
    rows.assign(**dict.fromkeys(unknown)).to_parquet(old / "questions.parquet", index=False)
    assert list(pictures(old)) == ["ratio", "steps"]  # no calls.parquet, so no parts


def test_bad_files_and_folders_are_a_line_each(
    chains: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = made_run(tmp_path / "damaged", ["rewoo", "react"])
    (damaged / "calls.parquet").write_bytes(b"PAR1")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for said, *arguments in (
        ("damaged/calls.parquet: not a parquet file, or a damaged one: ", damaged),
        (f"can't write figures to {str(tmp_path / 'file' / 'x')!r}: Not a directory", chains, "--out",
         tmp_path / "file" / "x"),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(["plot", *map(str, arguments), "--only", "parts"])
        assert ended.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_names_of_a_foreign_run_are_one_line_and_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["rewoo", "$E$_x^2 <b>@all</b>", "red\x1b[31m\nname", "日本"]
    run = made_run(tmp_path / "run", names, dataset="data\n\n## [x](https://example.com) set")
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(run), "--only", "pareto,ratio", "--format", "svg"])
    assert ended.value.code == 0
    said, captions = capsys.readouterr(), (run / "plots" / "captions.md").read_text(encoding="utf-8")
    assert said.err.splitlines()[1:] == [
        "the font of the figures lacks some letters of names, which are drawn as boxes; captions.md has the names"
    ]
    assert said.err.startswith("ratio: not drawn: needs rows of 'react' and 'rewoo' on the same questions; there are")
    assert "\x1b" not in said.err + captions
    assert [line for line in captions.splitlines() if line.startswith("#")] == ["# Figures", "## pareto"]
    assert [markup for markup in ("<b>", "@all", "[x](", "https://") if markup in captions] == []
    for picture in pictures(run, only=["latency"]).values():
        check_fits(picture.figure)
        assert "$E$_x^2 <b>@all</b>" in [text.get_text() for text in shown(picture.figure)]


def test_empty_cells_and_no_tokens_are_left_out(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", ["rewoo", "react", "cot"])
    rows = rewoo_bench.load(run)
    for name in ("total_tokens", "input_tokens", "latency_s", "started_at", "f1"):
        rows.loc[rows.index[::3], name] = None
    write_questions(run, rows)
    assert list(pictures(run)) == ["ratio", "pareto", "latency", "paper"]
    for tokens in (0, None):
        write_questions(run, rows.assign(total_tokens=tokens))
        drawn = pictures(run)
        assert list(drawn) == ["latency", "paper"]
        assert "4.93× in the paper." in drawn["paper"].caption
        check_fits(drawn["paper"].figure)
