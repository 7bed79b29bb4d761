"""The report in a real browser: opened from a file, with the network off.

Skipped where there is no chromium or no playwright.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened_page import CHROMIUM, Opened, unfold

from rewoo_bench import compare, load
from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.cli.main import main
from rewoo_bench.report.overview import overview
from rewoo_bench.report.write import write_page
from rewoo_bench.runs.columns import QUESTIONS
from rewoo_bench.runs.folder import manifests

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")

AXE = Path(__file__).parents[2] / "rewoo_bench" / "report" / "page" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "javascript:window.hacked=1",
    "\u202egnp.exe\u202c and \u0000 NUL and \x1b[2J",
    "`${window.hacked = 1}` {{constructor.constructor('window.hacked=1')()}}",
    "long " * 20_000,
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ReWOO, ReAct and direct prompting on 60 questions, by an oracle that looks up wrong pages now and then."""
    out = tmp_path_factory.mktemp("report") / "run"
    arguments = ["--arch", "rewoo,react,direct", "--model", "oracle?wrong_title=0.3", "-n", "60", "--no-progress"]
    program = [sys.executable, "-m", "rewoo_bench", "run"]  # a process of its own: playwright has this one's event loop
    subprocess.run([*program, *arguments, "--out", str(out)], check=True, capture_output=True)
    write_page([out], out / "report.html", figures=False)
    return out


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of five architectures."""
    out = tmp_path_factory.mktemp("five") / "run"
    arguments = ["--arch", "rewoo,react,direct,cot,plan-execute", "--model", "oracle", "-n", "60", "--no-progress"]
    program = [sys.executable, "-m", "rewoo_bench", "run"]
    subprocess.run([*program, *arguments, "--out", str(out)], check=True, capture_output=True)
    return out / "report.html"


def test_it_opens_from_a_file_without_a_request_or_an_error(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html") as opened:
        assert opened.page.locator("h1").inner_text() == "rewoo, react and direct on sample"
        assert opened.page.locator(".means").first.locator("tbody tr").count() == 3
        assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
        assert opened.console == []


def test_the_filters_count_what_compare_counts(browser: Any, run: Path) -> None:
    pair = next(pair for pair in compare(load(run)).pairs if (pair.a, pair.b) == ("rewoo", "react"))
    discordant = pair["exact_match"].discordant
    assert discordant is not None
    assert discordant.only_a + discordant.only_b > 0
    with Opened(browser, run / "report.html", "#a=rewoo&a=react") as opened:
        for label, count in (("rewoo", discordant.only_a), ("react", discordant.only_b)):
            button = opened.page.locator(f'button[data-show="only:{label}"]')
            assert button.locator("b").inner_text() == str(count)
            button.click()
            assert opened.page.locator(".count").inner_text() == f"{count} of 60 questions"


def test_sorting_puts_the_dearest_first(browser: Any, run: Path) -> None:
    rows = load(run)
    dearest = rows[rows["architecture"] == "react"].sort_values("total_tokens").iloc[-1]
    with Opened(browser, run / "report.html", "#sort=-tokens:1") as opened:
        assert opened.page.locator(".line a").first.inner_text() == dearest["question"]


def test_a_link_opens_the_same_view_and_back_works(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html", "#q=sample-001&a=rewoo&a=react") as opened:
        page = opened.question()
        assert page.locator(".trajectories thead th").count() == 2
        page.get_by_role("button", name="← All questions").click()
        page.wait_for_selector(".lines")
        page.go_back()
        assert opened.question().locator(".trajectories thead th").count() == 2


def changed_copy(run: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the run, as another run, with each row of its table changed."""
    shutil.copytree(run, to)
    manifest = json.loads((to / "run.json").read_text(encoding="utf-8"))
    (to / "run.json").write_text(json.dumps({**manifest, "run_id": to.name}), encoding="utf-8")
    rows = pq.read_table(to / "questions.parquet").to_pylist()
    for row in rows:
        row["run_id"] = to.name
        change(row)
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS), to / "questions.parquet")
    return to


def opened_titles(opened: Opened, count: int) -> list[str]:
    """The titles of the first questions, each opened from the list."""
    titles = []
    for number in range(count):
        opened.page.locator(".line a").nth(number).click()
        titles.append(opened.page.locator("#question-title").inner_text())
        opened.page.keyboard.press("Escape")
        opened.page.wait_for_selector(".lines")
    return titles


def test_two_data_sets_with_the_same_ids_have_their_own_questions(browser: Any, run: Path, tmp_path: Path) -> None:
    other = changed_copy(
        run, tmp_path / "other", lambda row: row.update(dataset="b~%", question=f"B {row['question']}")
    )
    write_page([run, other], tmp_path / "both.html", figures=False)
    with Opened(browser, tmp_path / "both.html", "#sort=id") as opened:
        a, b = opened_titles(opened, 2)
        assert b == f"B {a}"


def test_the_keyboard_is_enough(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html") as opened:
        opened.page.locator(".lines").focus()
        opened.page.keyboard.press("ArrowDown")
        opened.page.keyboard.press("Enter")
        first = opened.question().locator("h1").inner_text()
        opened.page.keyboard.press("j")
        opened.page.wait_for_selector(f"h1:not(:text-is({json.dumps(first)}))")
        opened.page.keyboard.press("k")
        opened.page.wait_for_selector(f"h1:text-is({json.dumps(first)})")
        opened.page.keyboard.press("Escape")
        opened.page.wait_for_selector(".lines")


def test_a_line_stands_where_trajectories_part(browser: Any, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parting"
    shutil.copytree(run, folder)
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    for trace in traces:  # rewoo: Kyiv, Dnieper, Volga; react: Kyiv, Volga
        names = ["Kyiv", *(["Dnieper"] if trace["architecture"] == "rewoo" else []), "Volga"]
        trace["steps"] = [{"id": f"E{i}", "tool": "Search", "argument": name} for i, name in enumerate(names, start=1)]
        trace["notes"] = {"turns": [{"text": f"```python\nSearch({name!r})\n```", "output": name} for name in names]}
    (folder / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces), encoding="utf-8")
    write_page([folder], folder / "report.html", figures=False)
    with Opened(browser, folder / "report.html", "#q=sample-001&a=rewoo&a=react") as opened:
        rows = [
            " ".join(text.split()) for text in opened.question().locator(".trajectories tbody tr").all_inner_texts()
        ]
        (line,) = (i for i, text in enumerate(rows) if text == "They part after 1 shared look-up: Dnieper | Volga")
        steps = {
            name: [i for i, text in enumerate(rows) if f"asks: {name}" in text] for name in ("Kyiv", "Dnieper", "Volga")
        }
        assert len(steps["Kyiv"]) == len(steps["Dnieper"]) == len(steps["Volga"]) == 1
        assert steps["Kyiv"][0] < line < steps["Dnieper"][0] < steps["Volga"][0]
        assert rows[steps["Volga"][0]].count("Volga") == 2
        assert opened.page.locator(".block pre").first.inner_text() == "Search('Kyiv')"
        assert opened.console == []


def test_what_is_hostile_is_text(browser: Any, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    shutil.copytree(run, folder)
    rows = pq.read_table(folder / "questions.parquet").to_pylist()
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, (row, trace) in enumerate(zip(rows, traces, strict=True)):
        text = HOSTILE[number % len(HOSTILE)]
        row |= {"question": text, "prediction": text, "question_type": text[:50], "answers": [text], "error": text}
        for step in trace["steps"]:
            step |= {"observation": text, "argument": text, "thought": text}
        trace["answer"] = text
        trace["notes"] = {
            "drafts": [{"text": text, "faults": [text]}],
            "turns": [{"text": text, "output": text}] * (number % 2),
        }
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS), folder / "questions.parquet")
    (folder / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces), encoding="utf-8")
    write_page([folder], folder / "report.html", figures=False)
    with Opened(browser, folder / "report.html") as opened:
        for line in (0, 1, 2, 3):
            opened.page.evaluate(f"location.hash = '#q={rows[3 * line]['example_id']}'")
            page = opened.question()
            page.wait_for_selector(".step")
            assert page.evaluate("window.hacked") is None
            assert page.locator("main img, main script, main iframe").count() == 0
        assert opened.console == []


def test_a_page_without_texts_has_none(browser: Any, run: Path, tmp_path: Path) -> None:
    out, folder = tmp_path / "bare.html", tmp_path / "run"
    shutil.copytree(run, folder)
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    for trace in traces:
        trace["steps"].append({"id": "9", "tool": "a name of the model's own"})
    (folder / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces), encoding="utf-8")
    with pytest.raises(SystemExit) as done:
        main(["report", str(folder), "--out", str(out), "--without-texts", "--no-figures"])
    assert done.value.code == 0
    with Opened(browser, out, "#q=sample-001") as opened:
        page = opened.question()
        assert page.locator(".observation").count() == 0
        assert set(page.locator(".step header b").all_inner_texts()) == {"Search", "LLM", "Finish", "unknown tool"}
        rows = load(run)
        question = str(rows.loc[rows["example_id"] == "sample-001", "question"].iloc[0])
        assert question not in page.inner_text("main")


def test_prompts_unfold_where_they_were_asked_for(browser: Any, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "prompts.html"
    with pytest.raises(SystemExit) as done:
        main(["report", str(run), "--out", str(out), "--with-prompts", "--no-figures"])
    assert done.value.code == 0
    with Opened(browser, out, "#q=sample-001&a=rewoo") as opened:
        page = opened.question()
        summary = page.locator("summary", has_text="prompt at planner").first
        summary.click()
        prompt, completion = summary.locator("xpath=..").locator("pre").all_inner_texts()
        assert "Question:" in prompt
        assert "#E1 = Search[" in completion


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["", "#q=sample-001"])
def test_axe_finds_nothing_serious(browser: Any, run: Path, scheme: str, fragment: str) -> None:
    if not AXE.is_file():
        pytest.skip("needs axe-core (npm ci in rewoo_bench/report/page)")
    with Opened(browser, run / "report.html", fragment, color_scheme=scheme, bypass_csp=True) as opened:
        if fragment:
            opened.question()
        else:
            unfold(opened.page)
        opened.page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        found = opened.page.evaluate("axe.run()")
        serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious] == []


def flagged_copy(run: Path, to: Path, example: str, flags: list[str]) -> Path:
    """A copy of the run in which rewoo's row of this question has these flags."""
    shutil.copytree(run, to)
    table = pq.read_table(to / "questions.parquet")
    keys = zip(table["example_id"].to_pylist(), table["architecture"].to_pylist(), strict=True)
    column = pa.array([flags if key == (example, "rewoo") else [] for key in keys], pa.list_(pa.string()))
    kept = [name for name in table.column_names if name != "flags"]
    pq.write_table(table.select(kept).append_column("flags", column), to / "questions.parquet")
    return to


def test_the_answers_stand_above_the_steps(browser: Any, run: Path) -> None:
    row = load(run).query("example_id == 'sample-001' and architecture == 'react'").iloc[0]
    with Opened(browser, run / "report.html", "#q=sample-001&a=rewoo&a=react") as opened:
        page = opened.question()
        answer = page.locator(".answers .answer", has_text="react")
        assert row["prediction"] in answer.inner_text()
        assert f"{row['total_tokens']:,} tokens" in answer.inner_text()
        assert answer.bounding_box()["y"] < page.locator(".step").first.bounding_box()["y"]


@pytest.mark.parametrize("fragment", ["", "#q=sample-001"])
def test_five_architectures_fit_a_narrow_window(browser: Any, five: Path, fragment: str) -> None:
    width = 400
    with Opened(browser, five, fragment, viewport={"width": width, "height": 800}) as opened:
        page = opened.question() if fragment else opened.page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ends = page.evaluate(
            "[...document.querySelectorAll('.means td, .answer')].map(e => e.getBoundingClientRect().right)"
        )
        assert max(ends) <= width
        if not fragment:
            unfold(page)
            cells = page.locator(".claims td").all()
            assert all(cell.bounding_box()["x"] + cell.bounding_box()["width"] <= width for cell in cells)
            marks = page.locator(".line:not(.header)").first.locator(".outcome").all()
            assert len(marks) == 5
            assert all(mark.bounding_box()["x"] < width - 10 for mark in marks)


def test_a_narrow_window_shows_the_steps_of_one_architecture_at_a_time(browser: Any, five: Path) -> None:
    with Opened(browser, five, "#q=sample-001", viewport={"width": 400, "height": 800}) as opened:
        page = opened.question()
        assert page.locator(".trajectories thead th").all_inner_texts() == ["rewoo"]
        page.get_by_role("group", name="Steps of").get_by_role("button", name="plan-execute").click()
        assert page.locator(".trajectories thead th").all_inner_texts() == ["plan-execute"]


def test_short_words_are_explained(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html") as opened:
        unfold(opened.page)
        term = opened.page.locator("th .term", has_text="F1")
        term.focus()
        tip = opened.page.locator(f"[id='{term.get_attribute('aria-describedby')}']")
        assert tip.is_visible()
        assert "precision and recall" in tip.inner_text()
        opened.page.keyboard.press("Escape")
        assert not tip.is_visible()


def test_each_model_is_compared_within_itself(run: Path, tmp_path: Path) -> None:
    other = changed_copy(run, tmp_path / "other", lambda row: row.update(model="openai/another"))
    pairs = [(each["a"], each["b"]) for each in overview(load(run, other), manifests(run, other))["sentences"]]
    assert len(pairs) == 4
    assert all(a.partition(", ")[2] == b.partition(", ")[2] for a, b in pairs)


def test_a_flag_of_a_row_is_a_badge_and_stands_above_the_figures(browser: Any, run: Path, tmp_path: Path) -> None:
    flagged = flagged_copy(run, tmp_path / "flagged", "sample-001", ["unmetered"])
    write_page([flagged], tmp_path / "flagged.html", figures=False)
    with Opened(browser, tmp_path / "flagged.html") as opened:
        unfold(opened.page)
        shown = opened.page.locator("body").inner_text()
        assert shown.count("rewoo answered without a metered model call") == 1
        assert shown.index("rewoo answered without a metered model call") < shown.index("Few questions (60)")
        opened.page.evaluate("location.hash = '#q=sample-001'")
        assert opened.question().locator(".answer .flag").all_inner_texts() == ["unmetered"]
        took = opened.question().locator(".answer .numbers").first.inner_text()
        assert took.startswith("tokens unknown · calls unknown")  # and not free


Turn = tuple[str, str, dict[str, Any], str]


def recorded(folder: Path, *conversations: list[Turn]) -> Path:
    """An imported run. A conversation is what the user says before a call, its tool, its arguments and its result."""
    records = []
    for number, turns in enumerate(conversations):
        messages: list[dict[str, Any]] = []
        for place, (said, tool, arguments, result) in enumerate(turns):
            call = {"id": f"c{place}", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            messages += [{"role": "user", "content": said}] * bool(said)
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": result},
            ]
        messages.append({"role": "assistant", "content": "Done."})
        records.append({"task_id": f"t{number}", "messages": messages})
    folder.mkdir()
    (folder / "recorded.json").write_text(json.dumps(records), encoding="utf-8")
    command = [sys.executable, "-m", "rewoo_bench", "import", str(folder / "recorded.json"), "--agent", "bot"]
    subprocess.run([*command, "--out", str(folder / "run")], check=True, capture_output=True)
    return folder / "run"


BOOKING: list[Turn] = [
    ("I am mia", "user", {"id": "mia"}, '{"cards": ["card_77"], "city": "Austin"}'),
    ("", "search", {"city": "Austin", "stops": None, "note": "quickly"}, "[]"),
    ("", "pay", {"card": "card_77"}, "paid"),
    ("Thanks, now to Dallas", "search", {"city": "Dallas"}, "HAT1"),
]


@pytest.fixture(scope="module")
def booking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tasks of which three are alike, and the page of them."""
    conversations = [BOOKING, BOOKING[:1], BOOKING[:1], BOOKING]
    run = recorded(tmp_path_factory.mktemp("booking") / "in", *conversations)
    write_page([run], run / "report.html", figures=False)
    return run


def test_the_page_has_the_figures_of_plannable(browser: Any, booking: Path) -> None:
    found = plannable(booking)
    calls = found.calls
    tables_ = [
        *(tables.ways_table(found, "bot"), tables.errors_table()),
        *(tables.values_table(calls), tables.calls_table(calls)),
    ]
    with Opened(browser, booking / "report.html") as opened:
        unfold(opened.page)
        section = opened.page.locator(".planned-loops")
        assert opened.page.locator(".head .sentences li").all_inner_texts() == [
            tables.reading(found, "bot"),
            *tables.verdicts(found, "bot"),
        ]
        assert section.locator(".sentences").count() == 0, "they are the verdict where nothing is compared"
        for shown, expected in zip(section.locator("table").all(), tables_, strict=True):
            rows = [row.locator("th, td").all_inner_texts() for row in shown.locator("tr").all()]
            assert [[cell.replace("\u00a0", " ") for cell in row] for row in rows] == expected
        assert opened.console == []


def test_a_plan_graph_shows_where_each_value_comes_from(browser: Any, booking: Path) -> None:
    with Opened(browser, booking / "report.html", "#q=t0") as opened:
        page = opened.question()
        calls = page.locator(".planned-call")
        assert [each.get_attribute("aria-label") for each in calls.all()] == [
            "1. user: 1 known",
            "2. search: 1 copied, 1 constant, 1 derived",
            "3. pay: 1 copied; after an empty result",
            "4. search: 1 known",
        ]
        assert page.locator(".edge").count() == 2
        assert page.locator(".turn").count() == 1
        assert page.locator(".node.chosen").count() == 2  # and one in the key
        letters = {
            kind: set(page.locator(f".call-row .value.{kind} text").all_text_contents())
            for kind in ("known", "constant", "copied", "derived")
        }
        assert letters == {"known": {"K"}, "constant": {"K"}, "copied": {"C"}, "derived": {"D"}}
        shapes = [page.locator(f".value.{kind} path").first.get_attribute("d") for kind in letters]
        assert len(set(shapes)) == 3
        calls.nth(2).focus()
        page.keyboard.press("Enter")
        assert "card = card_77 copied from 1. user, cards[0]" in page.locator(".values").inner_text()
        page.get_by_role("button", name="Show the step").click()
        assert "pay" in page.locator(".step:focus").inner_text()


def test_a_page_without_texts_has_kinds_and_no_values(browser: Any, booking: Path, tmp_path: Path) -> None:
    write_page([booking], tmp_path / "bare.html", figures=False, texts=False)
    with Opened(browser, tmp_path / "bare.html", "#q=t0") as opened:
        page = opened.question()
        page.locator(".planned-call").nth(2).click()
        assert page.locator(".values li").all_text_contents() == ["C  copied from 1. unknown tool"]
        assert "card" not in page.inner_text("main")
