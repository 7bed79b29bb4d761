"""What every test sees: asyncio as the one event loop, and no model or data set hub."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from real_data import RealData, find

# A shell starts background jobs with SIGINT ignored, and nohup with SIGHUP ignored. Commands that a test starts and
# interrupts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub, which reads it once

# Files that take half of the time, the longest first, as CI begins them. A plain `pytest` leaves them out; `pytest
# --all` and a file's name run them.
SLOW_FILES = """
    test_killed test_cluster test_architectures test_live_page test_agent_processes test_long_run test_signals
    test_report_page test_page_order test_mcp_servers test_mcp_tools test_output test_new test_hub test_secrets
    test_plot_fit test_copied_folders test_gateway_faults test_folders test_readme_examples test_gateway_fields
    test_claims_decide test_program_runs test_local_inputs test_hostile_programs test_llama_server test_nasty_replies
    test_installed_plugins test_committed_study test_coverage test_gateway_replay test_linear_parsers
    test_rewoo_as_agent test_fuzz test_dojo test_dojo_attacks test_dojo_log
    test_attack_plans test_frozen_in_dojo test_measure_agents
"""
SLOW = SLOW_FILES.split()

settings.register_profile("any machine", deadline=None)  # a busy one is no fault
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the slow tests, too")
    parser.addoption("--rest", action="store_true", help="run the slow tests and those of real rows, no others")
    parser.addoption("--nightly", action="store_true", help="every test, and all kills, flipped bits and other draws")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No workers for one file: to start them would take longer than most files do. Tests wait for a quarter of their
    time, so else there is one more than cores."""
    files = {argument.partition("::")[0] for argument in config.args}
    return 0 if len(files) == 1 and Path(*files).is_file() else (os.cpu_count() or 1) + 1


def _is_by_day(config: pytest.Config) -> bool:
    is_named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or "nightly" in config.getoption("markexpr")
    return not (is_named or config.getoption("--nightly"))


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.getoption("--rest") or not _is_by_day(config):
        return None
    slow = "" if config.getoption("--all") else "slow tests are left out; pytest --all runs them; "
    return f"{slow}pytest --nightly runs every test"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which no test runs is not imported: each worker would do so, which takes minutes of all of them."""
    if not collection_path.match("test_*.py"):
        return None
    is_slow = collection_path.stem in SLOW
    if config.getoption("--rest"):
        text = collection_path.read_text(encoding="utf-8")
        return not (is_slow or "pytest.mark.slow" in text or "real_data" in text) or None
    return (is_slow and _is_by_day(config) and not config.getoption("--all")) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker("slow")
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
    left_out = set(_only_at_night(items)) if _is_by_day(config) else set()
    if config.getoption("--rest"):
        left_out |= {item for item in items if not {"slow", "data"} & {mark.name for mark in item.iter_markers()}}
    elif _is_by_day(config) and not config.getoption("--all"):
        left_out |= {item for item in items if item.get_closest_marker("slow")}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    if config.getoption("--rest"):  # with --no-loadscope-reorder, a file that takes long isn't begun last
        items.sort(key=lambda item: SLOW.index(item.path.stem) if item.path.stem in SLOW else -1)


def _only_at_night(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Tests marked `nightly`; of a test marked `by_day(n)` all cases but n, drawn with its name as the seed."""
    cases: dict[tuple[Path, str, int], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("nightly"):
            yield item
        elif mark := item.get_closest_marker("by_day"):
            cases.setdefault((item.path, item.name.partition("[")[0], mark.args[0]), []).append(item)
    for (_, test, n), of_test in cases.items():
        yield from Random(test).sample(of_test, max(0, len(of_test) - n))  # every k-th case would be of one parameter


def pytest_configure(config: pytest.Config) -> None:
    # litellm hides this one itself when it is imported, but only until the end of the test that did so.
    config.addinivalue_line("filterwarnings", "ignore:Item '.*' on TypedDict class:UserWarning")


@pytest.fixture(scope="session")
def real_data() -> RealData:
    """Gives a file or folder of rows that aren't part of the project, or skips the test."""
    return find


@pytest.fixture(scope="session")
def repeats(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """How many of so many random trials are made: all of them with `--nightly`, else a fifth."""
    return (lambda trials: trials) if request.config.getoption("--nightly") else (lambda trials: -(-trials // 5))


@pytest.fixture
def draws(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """How many of so many broken inputs are drawn: all of them with `--nightly`, else a twenty-fifth."""
    return (lambda inputs: inputs) if request.config.getoption("--nightly") else (lambda inputs: -(-inputs // 25))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
