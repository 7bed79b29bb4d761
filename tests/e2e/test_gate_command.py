"""The gate as a team uses it: run, baseline, change something, run again, be told what it costs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rewoo_bench.cli.main import main
from rewoo_bench.config.names import bundled_folder

pytest_plugins = ["pytester"]

BUDGETS = """
[[budget]]
architecture = "rewoo"
dataset = "sample"
model = "oracle"
total_tokens = { mean = 3000 }
"""


@pytest.fixture(autouse=True)
def _own_folder(own_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def command(*arguments: object) -> int:
    """`rewoo-bench …` in this process; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def run(out: str, *arguments: object) -> int:
    return command("run", "--model", "oracle", "-n", 8, "--no-progress", "--out", out, *arguments)


def copied(name: str, file: str, old: str, new: str) -> Path:
    """A copy of the bundled rewoo with another text in one of its files."""
    folder = Path(name)
    shutil.copytree(bundled_folder("architectures") / "rewoo", folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    return folder


def test_a_run_passes_against_itself_and_its_baseline_file(capsys: pytest.CaptureFixture[str]) -> None:
    run("before", "--arch", "rewoo,react-native")
    run("again", "--arch", "rewoo,react-native")
    assert command("gate", "before", "--baseline", "baseline.json", "--update") == 0
    written = Path("baseline.json").read_bytes()
    capsys.readouterr()
    assert command("gate", "again", "--baseline", "baseline.json", "--update") == 0
    assert capsys.readouterr().out == "baseline.json: unchanged, 16 rows of react-native, rewoo\n"
    assert Path("baseline.json").read_bytes() == written
    Path("budgets.toml").write_text(BUDGETS)
    assert command("gate", "again", "--budgets", "budgets.toml", "--baseline", "baseline.json") == 0
    assert capsys.readouterr().out.startswith("PASSED: 25 checks, 0 warnings; 22 that passed aren't shown\n")


def test_a_sentence_more_in_the_planner_prompt_is_named_with_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = bundled_folder("architectures") / "rewoo" / "planner.txt"
    longer = copied("longer", "planner.txt", prompt.read_text(), f"{prompt.read_text()}Use as few steps as you can.\n")
    run("before", "--arch", "rewoo")
    run("now", "--arch", longer)
    capsys.readouterr()
    assert command("gate", "now", "--baseline", "before") == 1
    told = capsys.readouterr().out
    assert "rewoo, sample, oracle\n  fail  prompt 'planner' changed; total_tokens +" in told
    assert "the planner's tokens grew most, by " in told
    assert "longer prompts" in told
    assert command("gate", "now", "--baseline", "before", "--accept-prompts") == 0
    assert command("gate", "now", "--baseline", "before", "--accept-prompts", "--max-increase", "0.1%") == 1
    assert "0.1% is allowed; the planner's tokens grew most" in capsys.readouterr().out


def test_reports_are_written_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run("now", "--arch", "rewoo")
    Path("budgets.toml").write_text(BUDGETS.replace("3000", "10"))
    assert command("gate", "now", "--budgets", "budgets.toml", "--markdown", "m.md") == 1
    assert Path("m.md").read_text().startswith("### Token budgets: FAILED: 1 of 1 check")
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    command("gate", "now", "--budgets", "budgets.toml")
    assert Path("summary.md").read_text().startswith("before\n### Token budgets: FAILED")


def test_a_baseline_goes_to_standard_output_and_through_a_link(capfd: pytest.CaptureFixture[str]) -> None:
    run("now", "--arch", "rewoo")
    capfd.readouterr()
    assert command("gate", "now", "--baseline", "/dev/stdout", "--update") == 0
    out, err = capfd.readouterr()
    assert (json.loads(out)["model"], err) == ("oracle", "/dev/stdout: written, 8 rows of rewoo\n")
    Path("link.json").symlink_to("baseline.json")
    assert command("gate", "now", "--baseline", "link.json", "--update") == 0
    assert Path("link.json").is_symlink()
    assert Path("baseline.json").read_text() == out
    assert command("gate", "now", "--baseline", "/dev/full", "--update") == 2
    assert "No space left on device" in capfd.readouterr().err


def test_a_wrong_command_exits_with_2_and_an_incomplete_run_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    run("now", "--arch", "rewoo")
    assert command("gate", "now") == 2
    assert "give --budgets, --baseline or both" in capsys.readouterr().err
    assert command("gate", "nowhere", "--baseline", "now") == 2
    assert command("gate", "now", "--baseline", "now", "--max-increase", "2") == 2
    assert "'2' is neither a percentage (2%) nor a fraction below 1 (0.02)" in capsys.readouterr().err
    assert command("gate", "nowhere", "--baseline", "b.json", "--update") == 2
    assert command("gate", "now", "--update") == 2
    assert "give --baseline FILE" in capsys.readouterr().err
    assert command("gate", "now", "--baseline", "b.json", "--update", "--budgets", "budgets.toml") == 2
    assert "--update judges nothing: give it --baseline" in capsys.readouterr().err
    assert not Path("b.json").exists()
    Path("budgets.toml").write_text(BUDGETS.replace("sample", "hotpotqa"))
    assert command("gate", "now", "--budgets", "budgets.toml") == 2
    assert "matches no row; the rows there are: rewoo, sample, oracle" in capsys.readouterr().err
    assert run("capped", "--arch", "rewoo", "--concurrency", 1, "--run-tokens", 2000) == 3
    assert command("gate", "capped", "--baseline", "now") == 3
    assert "INCOMPLETE: used " in capsys.readouterr().out


def documented_test() -> str:
    """The example of a test in docs/ci.md."""
    page = (Path(__file__).parents[2] / "docs" / "ci.md").read_text()
    (block,) = [part for part in page.split("```") if part.startswith("python\ndef test_")]
    return block.removeprefix("python\n")


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("limit", "passed"), [(3000, 1), (10, 0)])
def test_the_documented_test_holds_the_line(pytester: pytest.Pytester, limit: int, passed: int) -> None:
    pytester.makepyfile(documented_test())
    (pytester.path / "budgets.toml").write_text(BUDGETS.replace("3000", str(limit)))
    done = pytester.runpytest_inprocess("-p", "rewoo_bench.testing.pytest_plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=passed, failed=1 - passed)
    if not passed:
        done.stdout.fnmatch_lines(["*AssertionError: FAILED: 1 of 1 check, 0 warnings", "*total_tokens mean:*is over*"])


def test_the_plugin_costs_a_pytest_that_does_not_use_it_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_is_loaded():
            ours = {name for name in sys.modules if name.startswith("rewoo_bench")}
            assert ours == {"rewoo_bench", "rewoo_bench.testing", "rewoo_bench.testing.pytest_plugin"}
            assert not {"pandas", "pyarrow", "litellm"} & sys.modules.keys()
        """
    )
    done = pytester.runpytest_subprocess(
        "-p", "rewoo_bench.testing.pytest_plugin", "-p", "no:anyio", "-p", "no:hypothesispytest"
    )
    done.assert_outcomes(passed=1)


def test_run_bench_gives_the_run_and_refuses_what_is_no_flag(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        import rewoo_bench

        def test_rows(run_bench, tmp_path):
            first = run_bench(architectures="direct,cot", questions=2)
            second = run_bench(architectures=["direct"], questions=2, trials=2)
            assert (first.status, first.reason) == ("done", None)
            assert first.folder.parent == tmp_path and first.folder != second.folder
            assert list(first.rows["architecture"].unique()) == ["direct", "cot"]
            assert len(second.rows) == 4
            rewoo_bench.assert_within_budget(first, None, baseline=first.folder)

        def test_a_slip_of_the_pen(run_bench):
            with pytest.raises(rewoo_bench.RewooBenchError, match="'questins', did you mean 'questions'"):
                run_bench(architectures="direct", questins=2)
        """
    )
    done = pytester.runpytest_inprocess("-p", "rewoo_bench.testing.pytest_plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=2)
