"""Requirements of agents: uv installs them from a package index into an environment of their own, once."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from dialect_server import DialectServer
from gateway_runs import rows, run_agents, write_program
from simple_index import HTML, SimpleIndex, page_of, serving
from wheels import wheel

pytestmark = [
    pytest.mark.usefixtures("own_folder"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.skipif(
        shutil.which("uv") is None and not Path(sys.executable).with_name("uv").exists(), reason="needs uv"
    ),
]
PACKAGE = "rivers-of-a-test"
AGENT = "import rivers_of_a_test, sys; print(rivers_of_a_test.NAME, 'pandas' in sys.modules)"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleIndex]:
    """A package index with one package, which uv asks and no other."""
    packed = wheel(tmp_path, PACKAGE, {"rivers_of_a_test.py": "NAME = 'Neva'\n"}, {})
    data = packed.read_bytes()
    link = (f"../../files/{packed.name}", hashlib.sha256(data).hexdigest())
    pages = {f"/files/{packed.name}": ("application/zip", data), f"/simple/{PACKAGE}/": (HTML, page_of(link))}
    with serving(SimpleIndex(pages)) as index:
        monkeypatch.setenv("REWOO_BENCH_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        yield index


def test_requirements_are_installed_once_into_an_environment_of_their_own(index: SimpleIndex) -> None:
    agent = write_program("needs", AGENT, requirements="r.txt")
    (agent / "r.txt").write_text(f"{PACKAGE}==1.0\n")
    assert find_spec("rivers_of_a_test") is None
    with DialectServer() as provider:
        assert run_agents(provider, [agent], questions=2) == 1  # it asks no model
        assert set(rows().prediction) == {"Neva False"}
        assert index.asked
        index.asked.clear()
        shutil.rmtree("uv", ignore_errors=True)
        assert run_agents(provider, [agent], "--out", "again", questions=2) == 1
    assert set(rows("again").prediction) == {"Neva False"}
    assert not index.asked
    (python,) = Path("cache", "environments").glob("*/bin/python")
    assert python.resolve().is_file()


def test_requirements_that_cannot_be_installed_are_one_line_and_the_next_run_tries_again(
    index: SimpleIndex, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = write_program("needs", AGENT, requirements="r.txt")
    (agent / "r.txt").write_text("no-such-package-of-a-test==1.0\n")
    with DialectServer() as provider:
        for _ in range(2):
            assert run_agents(provider, [agent], questions=1) == 2
            (line,) = capfd.readouterr().err.splitlines()
            assert line.startswith("rewoo-bench: agent: uv pip install failed: error: ")
            assert "no-such-package-of-a-test was not found" in line
            assert not Path("out").exists()
