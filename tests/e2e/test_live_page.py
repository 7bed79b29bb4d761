"""`rewoo-bench report --live`: the pages of the runs in a folder; a run in progress shows its new rows by itself."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlencode

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from answering import KEY
from command_runs import start
from model_server import ModelServer

from rewoo_bench.report.live import step

GOLDEN = Path(__file__).parents[1] / "golden" / "runs"
ROWS_S = 120.0  # within which new rows have to be there: two on a quiet machine


class View:
    """`rewoo-bench report FOLDER --live` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "rewoo_bench", "report", str(folder), "--live", "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[0]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        request = urllib.request.Request(self.address + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        status, text = self.get(path)
        return json.loads(text) if status == 200 else None

    def close(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def view(tmp_path: Path) -> Iterator[Callable[[Path], View]]:
    views: list[View] = []

    def open_view(folder: Path) -> View:
        views.append(View(folder))
        return views[-1]

    yield open_view
    for each in views:
        if each.process.poll() is None:
            each.close()


@pytest.fixture
def browser_page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    page.set_default_timeout(1000 * ROWS_S)
    yield page
    page.close()


@pytest.fixture(scope="module")
def golden() -> Iterator[View]:
    """The committed runs, served to all who only read them."""
    shown = View(GOLDEN)
    yield shown
    shown.close()


def test_it_lists_the_runs_and_serves_their_pages(view: Callable[[Path], View]) -> None:
    shown = view(GOLDEN)
    status, index = shown.get("")
    assert status == 200
    assert all(f"/run/{name}/" in index for name in ("finished", "chain", "unfinished"))
    assert shown.json("run/finished/overview")["title"].startswith("rewoo, rewoo-json")
    table = shown.json("run/finished/table")
    assert len(table["ids"]) == 2
    key = urlencode({"dataset": table["datasets"][0], "id": table["ids"][0], "trial": table["trials"][0]})
    systems = shown.json(f"run/finished/question?{key}")["systems"]
    assert systems[0]["steps"][0]["tool"] == "Search"
    for other in (f"{key}1", f"{key}x", "id=1"):
        assert shown.get(f"run/finished/question?{other}")[0] == 404
    assert shown.close() == 0


def test_a_damaged_run_is_a_line_of_the_list_each_time(view: Callable[[Path], View], tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "finished", tmp_path / "sound")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{", encoding="utf-8")
    shown = view(tmp_path)
    for _ in range(2):  # the page loads itself anew
        status, index = shown.get("")
        assert status == 200
        assert "not valid JSON" in index
        assert "/run/sound/" in index


def test_a_question_stays_the_same_while_others_are_finished_before_it(
    view: Callable[[Path], View], browser_page: Any, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "run"
    shutil.copytree(GOLDEN / "finished", run)
    whole = pq.read_table(run / "questions.parquet")
    last = whole["example_id"].to_pylist()[-1]
    pq.write_table(whole.filter(pc.equal(whole["example_id"], last)), run / "questions.parquet")
    shown = view(run.parent)
    browser_page.route("**/events", lambda route: route.abort())  # the page stays as it was read
    browser_page.goto(f"{shown.address}run/run/")
    browser_page.wait_for_selector("body[data-page=ready]")
    pq.write_table(whole, run / "questions.parquet")
    browser_page.locator(".line a").first.click()
    browser_page.wait_for_selector(".trajectories")
    table = shown.json("run/run/table")
    assert len(table["ids"]) == 2
    key = urlencode({"dataset": table["datasets"][1], "id": last, "trial": 0})
    step = shown.json(f"run/run/question?{key}")["systems"][0]["steps"][0]
    assert step["argument"] in browser_page.locator(".trajectories").inner_text()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("run/finished/table", {"Host": "evil.example:80"}, 403),
        ("run/finished/table", {"Origin": "http://evil.example"}, 403),
        ("run/finished/table", {"Origin": "http://127.0.0.1:80"}, 403),
        ("run/..%2f..%2f/table", {}, 404),
        ("run/nothing/table", {}, 404),
    ],
)
def test_nothing_else_is_served(golden: View, path: str, headers: dict[str, str], status: int) -> None:
    assert golden.get(path, **headers)[0] == status


def test_no_page_of_another_site_can_frame_it(golden: View) -> None:
    for path in ("", "run/finished/"):
        with urllib.request.urlopen(golden.address + path, timeout=60) as response:
            assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


def test_all_pages_of_a_run_in_progress_take_time_in_proportion_to_its_answers() -> None:
    read = [sum(n for n in range(1, answers + 1) if step(n) != step(n - 1)) for answers in (4_000, 8_000)]
    assert read[0] < 25 * 4_000
    assert read[1] < 2.1 * read[0]


def rows(shown: View, run: str) -> int:
    table = shown.json(f"run/{run}/table")
    return 0 if table is None else sum(len(each["outcome"].replace("-", "")) for each in table["systems"])


def facts(shown: View, run: str) -> str:
    return json.dumps(shown.json(f"run/{run}/overview")["facts"])


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it never came"
        time.sleep(0.1)


def asked(server: ModelServer, *, at_once: int) -> list[str]:
    hosted = ["--model", "openai/test", "--api-base", server.api_base, "--concurrency", str(at_once)]
    return [*hosted, "--no-progress", "--no-report"]


def test_a_run_in_progress_is_shown_through_its_kill_and_resume(view: Callable[[Path], View], tmp_path: Path) -> None:
    out = tmp_path / "runs" / "live"
    with ModelServer(lambda request: "Answer: Neva", latency_s=0.15) as server:
        model = asked(server, at_once=2)
        arguments = ["--arch", "direct,cot", "-n", "100", *model, "--out", str(out)]
        running = start(*arguments, env={"OPENAI_API_KEY": KEY})
        wait_for(lambda: (out / "journal.sqlite").exists(), ROWS_S)
        shown = view(out.parent)
        wait_for(lambda: rows(shown, "live") > 0, ROWS_S)
        server.latency_s = 1.0  # it isn't done before it is killed
        assert ", running" in facts(shown, "live")
        assert re.search(r">running: \d+ of 200 answers<", shown.get("")[1])
        assert re.search(r"\d+ of 200", facts(shown, "live"))
        before, answered = rows(shown, "live"), len(server.books)
        wait_for(lambda: rows(shown, "live") >= max(before + 1, answered - 4), ROWS_S)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        server.latency_s = 0.0
        killed = rows(shown, "live")
        assert killed >= before
        assert ", killed" in facts(shown, "live")
        assert re.search(r">killed: \d+ of 200 answers<", shown.get("")[1])
        resumed = start("--resume", str(out), "--no-progress", "--no-report", env={"OPENAI_API_KEY": KEY})
        assert resumed.communicate()[1] is not None
        assert resumed.returncode == 0
    wait_for(lambda: rows(shown, "live") == 200, ROWS_S)
    assert ", done" in facts(shown, "live")


def test_the_page_in_a_browser_updates_itself(view: Callable[[Path], View], browser_page: Any, tmp_path: Path) -> None:
    out, is_open = tmp_path / "runs" / "live", Event()

    def reply(request: dict[str, Any]) -> str:
        if len(server.books) >= 3:
            is_open.wait(2 * ROWS_S)
        return "Answer: Neva"

    with ModelServer(reply) as server:
        model = asked(server, at_once=1)
        running = start("--arch", "direct", "-n", "40", *model, "--out", str(out), env={"OPENAI_API_KEY": KEY})
        wait_for(lambda: (out / "journal.sqlite").exists(), ROWS_S)
        shown = view(out.parent)
        wait_for(lambda: rows(shown, "live") > 0, ROWS_S)
        page = browser_page
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{shown.address}run/live/")
        page.wait_for_selector("body[data-page=ready]")
        count = int(page.locator(".count").inner_text().split()[0])
        is_open.set()
        wait_for(lambda: int(page.locator(".count").inner_text().split()[0]) > count, ROWS_S)
        assert errors == []
        running.kill()
        running.communicate()
