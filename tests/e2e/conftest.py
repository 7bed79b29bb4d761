"""What runs from end to end share: a folder of their own, a server that answers, pages to search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import KEY, Script
from garbage import collect_without_warnings
from model_server import ModelServer
from opened_page import CHROMIUM

from rewoo_bench.config.names import bundled_folder
from rewoo_bench.tools import Corpus


@pytest.fixture(scope="module", autouse=True)
def clients_left_open() -> Iterator[None]:
    """The clients that a module's agents left open are collected here, and are no other module's warning."""
    yield
    collect_without_warnings()


@pytest.fixture(scope="session")
def common_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands keep what they would make again: the index of the sample's passages is built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def own_folder(common_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in an empty folder; whatever they keep goes into it, but for the common cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REWOO_BENCH_CACHE", str(common_cache))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "cache" / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; skips where there is none, or no playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
    if CHROMIUM is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def script() -> Script:
    """What `server` answers, until a test sets something else."""
    return Script("Thought: I know.\nAnswer: Neva")


@pytest.fixture
def server(script: Script) -> Iterator[ModelServer]:
    with ModelServer(script) as server:
        yield server


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.open(bundled_folder("datasets") / "sample" / "passages.jsonl", tmp_path_factory.mktemp("cache"))
