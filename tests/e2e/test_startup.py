"""What a command imports: a package that it doesn't need would cost every start of it a second or more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering import KEY
from model_server import ModelServer

from rewoo_bench.config.names import bundled_folder
from rewoo_bench.tools import Corpus

SLOW = {
    *("litellm", "openai", "httpx", "pandas", "pyarrow.compute", "scipy.stats", "scipy.optimize", "scipy.sparse"),
    *("bm25s", "matplotlib", "datasets", "xllamacpp"),
}
PANDAS = {"pandas", "pyarrow.compute"}
COMMAND = """
import atexit, sys
atexit.register(lambda: print("imported:", *sys.modules, file=sys.stderr))
from rewoo_bench.cli.main import main
main(sys.argv[1:])
"""


def imported_by(*arguments: object, **environment: str) -> set[str]:
    """The slow packages that a command in a fresh interpreter has imported when it ends."""
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return SLOW & set(done.stderr.rpartition("imported:")[2].split())


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache with the index of the sample's passages: only its first run builds one."""
    folder = tmp_path_factory.mktemp("cache")
    Corpus.open(bundled_folder("datasets") / "sample" / "passages.jsonl", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REWOO_BENCH_CACHE", str(folder))
        yield


def one_question(model: str, out: Path, *arguments: object) -> list[object]:
    quiet = ("--no-progress", "--no-report")
    return ["run", "--arch", "rewoo", "-n", 1, "--model", model, "--out", out, *quiet, *arguments]


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["list"]], ids=" ".join)
def test_what_asks_nothing_imports_nothing_slow(arguments: list[str]) -> None:
    assert imported_by(*arguments) == set()


def test_a_run_of_the_oracle_imports_nothing_slow(tmp_path: Path) -> None:
    assert imported_by(*one_question("oracle", tmp_path / "run")) == set()


def test_a_run_against_a_server_of_ones_own_imports_nothing_slow(server: ModelServer, tmp_path: Path) -> None:
    arguments = one_question("openai/tiny", tmp_path / "run", "--api-base", server.api_base)
    assert imported_by(*arguments, OPENAI_API_KEY=KEY) == set()
    assert server.books


@pytest.mark.slow
def test_a_comparison_imports_pandas_and_nothing_slower(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert imported_by(*one_question("oracle", run, "-n", 30, "--arch", "react")) == set()
    assert imported_by("compare", run) == PANDAS


IN_A_QUESTION = """
import sys
from rewoo_bench.cli.main import main
from rewoo_bench.evaluation.evaluator import Evaluator

asked = Evaluator.run_task

async def watched(*arguments, **options):
    before = set(sys.modules)
    result = await asked(*arguments, **options)
    print("imported:", *sorted({name.partition(".")[0] for name in set(sys.modules) - before}), file=sys.stderr)
    return result

Evaluator.run_task = watched
main(sys.argv[1:])
"""


def test_no_library_is_imported_in_the_seconds_of_the_first_question(tmp_path: Path) -> None:
    with ModelServer(lambda request: "Answer: Neva") as server:
        arguments = one_question("openai/test", tmp_path / "run", "--api-base", server.api_base)
        command = [sys.executable, "-c", IN_A_QUESTION, *map(str, arguments)]
        env = {**os.environ, "OPENAI_API_KEY": KEY}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("imported:")]
    assert not {"aiohttp", "tiktoken", "anyio", "numpy"} & set(line.split())
