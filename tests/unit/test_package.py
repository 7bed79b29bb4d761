"""What the package offers, and what importing it costs."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
import subprocess
import sys
from importlib.metadata import version
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench.cli.main import main

ROOT = Path(__file__).parents[2]
HEAVY = ["pandas", "litellm", "datasets", "matplotlib", "xllamacpp", "scipy", "httpx", "pyarrow"]


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages a fresh interpreter has loaded after `code`."""
    report = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stderr.split())


def test_everything_public_can_be_imported() -> None:
    for name in rewoo_bench.__all__:
        assert getattr(rewoo_bench, name) is not None
    assert sorted(rewoo_bench.__all__) == dir(rewoo_bench)


def test_the_calls_of_the_docstring_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line[4:] for line in str(rewoo_bench.__doc__).splitlines() if line.startswith("    ")]
    assert len(lines) == 7
    names: dict[str, Any] = {"rewoo_bench": rewoo_bench}
    for line in lines:  # a plain function refuses to run where an event loop does
        code = compile(line, "__doc__", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if isawaitable(done := eval(code, names)):
            asyncio.run(done)  # type: ignore[arg-type]
    assert len(names["results"]) == len(names["rows"]) == len(names["run"].rows) == 40
    assert list(names["conditions"]) == list(names["rows"]["run_id"].unique())
    assert names["ratio"].estimate > 1
    assert Path("figures", "ratio.png") in names["files"]
    assert names["verdict"].code == 0


def test_no_public_name_is_that_of_a_module() -> None:
    """Importing the module would put it in the name's place."""
    package = Path(rewoo_bench.__file__).parent
    modules = {path.stem for path in package.iterdir()}
    assert modules & set(rewoo_bench.__all__) == set()


@pytest.mark.parametrize("first", ["import rewoo_bench.events", "rewoo_bench.at_place"])
def test_a_place_is_reached_in_either_order(first: str) -> None:
    code = f"""
import rewoo_bench
{first}
with rewoo_bench.at_place("E1"):
    from rewoo_bench.events import at_place, current_place
    with at_place("summary"):
        assert current_place().name == "E1/summary"
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


RUNNING = ("evaluation", "calls", "loaders", "runners", "models", "tools", "journal", "api")
READ = """
import sys
import rewoo_bench
from rewoo_bench import assert_within_budget, check_claims, check_gate, compare, load, manifests, plot, publish
from rewoo_bench import summarise
import rewoo_bench.analysis.claims, rewoo_bench.gate, rewoo_bench.report.plots, rewoo_bench.runs.publish
run, out = sys.argv[1:]
rows = load(run)
compare(rows, manifests=manifests(run))
summarise(rows)
plot(run, out=out + "/plots", only=["ratio"])
check_claims(run)
check_gate(run, baseline=run)
publish(__import__("pathlib").Path(run), __import__("pathlib").Path(out) / "published")
print(*[name for name in sys.modules if name.startswith("rewoo_bench.")])
"""


def test_reading_a_run_imports_nothing_that_runs_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    rewoo_bench.bench("rewoo,react", out=run, questions=8)
    command = [sys.executable, "-c", READ, str(run), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    imported = {name.split(".")[1] for name in done.stdout.split()}
    assert {"runs", "analysis", "report", "gate"} <= imported
    assert imported & set(RUNNING) == set()


def test_the_package_says_its_version() -> None:
    assert rewoo_bench.__version__ == version("rewoo-bench")


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import rewoo_bench; rewoo_bench.Message; rewoo_bench.score") == set()


def test_help_of_a_run_shows_the_everyday_flags_and_how_to_see_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = []
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main(["run", flag])
        shown.append(re.findall(r"^  (?:-\w, )?(--[\w-]+)", (text := capsys.readouterr().out), re.MULTILINE))
        assert ("--help-all shows" in text) == (flag == "--help")
    everyday, every = shown
    assert len(everyday) <= 20 < 60 <= len(every)
    assert {*everyday} < {*every}
    assert {"--arch", "--model", "--api-base", "--world", "--resume", "--run-cost"} < {*everyday}


def test_help_names_every_flag_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help-all"])
    shown = capsys.readouterr().out
    flags = """
    --arch --dataset --split -n --questions --seed --trials --model --planner-model --solver-model --judge-model
    --api-base --temperature --reply-tokens --corpus --max-steps --question-tokens --question-time --question-cost
    --run-tokens --run-cost --concurrency --max-connections --max-retries --timeout --fail-on-error
    --out --no-progress --json
    """
    assert [flag for flag in flags.split() if f"{flag} " not in shown and f"{flag}," not in shown] == []


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rewoo_bench", "compare"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "RUN" in done.stderr


@pytest.mark.parametrize(
    ("script", "command"),
    [("run_bench", "run"), ("compare", "compare"), ("plot", "plot"), ("claims", "claims"), ("check_budget", "gate")],
)
def test_each_script_shows_the_command_that_it_is(
    script: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{script}.py", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(ROOT / "scripts" / f"{script}.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith(f"Usage: rewoo-bench {command} [OPTIONS]")
