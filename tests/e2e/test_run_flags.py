"""Flags that choose questions, take a run's flags from a file, and say how much is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from answering import KEY
from command_runs import quiet, run

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runs.folder import load
from rewoo_bench.testing.server import ModelServer, ServerFault

pytestmark = pytest.mark.usefixtures("own_folder")

DIRECT = ("--arch", "direct", "--model", "oracle")
IDS = [example.id for example in load_dataset_examples("sample").examples]


def asked(folder: str) -> list[str]:
    return [str(each) for each in load(folder)["example_id"].unique()]


def options(folder: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(Path(folder, "run.json").read_text())["options"]
    return found


def test_ids_of_a_file_are_asked_in_the_order_of_the_data_set() -> None:
    Path("ids.txt").write_text(f"{IDS[7]}\n\n{IDS[2]}\n")
    assert quiet(*DIRECT, "--ids", "ids.txt", "--out", "here") == 0
    assert asked("here") == [IDS[2], IDS[7]]
    assert options("here")["ids"] == [IDS[7], IDS[2]]


def test_a_byte_order_mark_is_no_part_of_the_first_id() -> None:
    Path("ids.txt").write_text(f"{IDS[2]}\n{IDS[7]}\n", encoding="utf-8-sig")
    assert quiet(*DIRECT, "--ids", "ids.txt", "--out", "here") == 0
    assert asked("here") == [IDS[2], IDS[7]]


def test_a_limit_counts_chosen_questions_in_the_order_of_the_seed() -> None:
    Path("ids.txt").write_text("\n".join(IDS[:30]))
    for limit in (5, 9):
        assert quiet(*DIRECT, "--ids", "ids.txt", "-n", limit, "--seed", 3, "--out", limit) == 0
    every = [example.id for example in load_dataset_examples("sample", limit=100, seed=3).examples]
    expected = [each for each in every if each in IDS[:30]]
    assert (asked("5"), asked("9")) == (expected[:5], expected[:9])


def test_unknown_ids_and_types_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    Path("ids.txt").write_text(f"{IDS[0]}\nnone\n")
    assert quiet(*DIRECT, "--ids", "ids.txt") == 2
    assert "--ids: 'sample' has no question 'none'; its ids are like" in capfd.readouterr().err
    assert quiet(*DIRECT, "--type", "brigde") == 2
    assert "--type: unknown type 'brigde', did you mean 'bridge'?" in capfd.readouterr().err
    assert quiet(*DIRECT, "--ids", "nowhere.txt") == 2
    assert "--ids: can't read 'nowhere.txt': No such file or directory" in capfd.readouterr().err


def test_questions_of_a_type_are_asked() -> None:
    assert quiet(*DIRECT, "--type", "bridge", "--type", "comparison", "-n", 12, "--out", "here") == 0
    assert set(load("here")["question_type"]) == {"bridge", "comparison"}


def test_questions_that_were_wrong_or_failed_are_asked_again_and_a_resumed_run_keeps_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def reply(request: dict[str, object]) -> str | ServerFault:
        number = len(server.books)
        return ServerFault(status=400, message="rude") if number == 0 else ["Answer: Neva", "Answer: Kyiv"][number % 2]

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1)
        assert quiet("--arch", "direct", "-n", 6, *hosted, "--out", "first") == 3
    first = load("first")
    failed = first[first["exact_match"].isna()]["example_id"].tolist()
    wrong = first[first["exact_match"].eq(False).fillna(False)]["example_id"].tolist()
    assert (len(failed), len(failed) + len(wrong)) == (1, 6)
    assert quiet(*DIRECT, "--failed-in", "first", "--out", "failed") == 0
    assert quiet(*DIRECT, "--failed-in", "first", "--wrong-in", "first", "-n", 4, "--out", "both") == 0
    assert asked("failed") == failed
    assert len(asked("both")) == 4
    assert set(asked("both")) <= {*failed, *wrong}
    assert options("both")["wrong_in"] == "first"
    Path("first").rename("elsewhere")
    assert quiet("--resume", "both", "-n", 6) == 0
    assert set(asked("both")) == {*failed, *wrong}
    Path("ids.txt").write_text(IDS[0])
    assert quiet("--resume", "both", "--ids", "ids.txt") == 2
    assert "--resume: --ids was " in capfd.readouterr().err
    assert quiet(*DIRECT, "--failed-in", "failed") == 2
    assert "--failed-in: no question failed in 'failed'" in capfd.readouterr().err


def test_a_run_without_failed_questions_adds_none_to_its_wrong_ones(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: "Answer: Neva") as server:
        assert quiet("--arch", "direct", "-n", 2, "--model", "openai/test", "--api-base", server.api_base,
                     "--out", "wrong") == 0  # fmt: skip
    assert quiet(*DIRECT, "--wrong-in", "wrong", "--failed-in", "wrong", "--out", "again") == 0
    assert asked("again") == asked("wrong")
    capfd.readouterr()
    assert quiet(*DIRECT, "--wrong-in", "again", "--failed-in", "again") == 2
    assert capfd.readouterr().err == (
        "rewoo-bench: --failed-in: no question failed in 'again'; --wrong-in: no question was wrong in 'again'\n"
    )


def test_a_run_of_another_data_set_is_refused_by_its_own_flag(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: "Answer: Neva") as server:
        assert quiet("--arch", "direct", "-n", 1, "--model", "openai/test", "--api-base", server.api_base,
                     "--out", "first") == 0  # fmt: skip
    capfd.readouterr()
    assert quiet(*DIRECT, "--dataset", "chain", "--wrong-in", "first") == 2
    err = capfd.readouterr().err
    assert err.startswith(f"rewoo-bench: --wrong-in first: 'chain' has no question {asked('first')[0]!r}; its ids are")
    assert err.endswith("; give the --dataset of that run\n")


def test_flags_of_a_file_are_those_of_a_run_unless_the_command_has_others() -> None:
    Path("run.toml").write_text(
        'arch = ["direct", "cot"]\ndataset = "sample"\nmodel = "oracle"\nn = 4\nmax-steps = 5\n'
        f"no_progress = true\nextra_body = {{top_p = 0.5}}\nids = {IDS[:2]}\n"
    )
    assert run("--from", "run.toml", "--arch", "direct", "--out", "here") == 0
    assert (set(load("here")["architecture"]), asked("here")) == ({"direct"}, sorted(IDS[:2], key=asked("here").index))
    kept = options("here")
    assert (kept["max_steps"], kept["extra_body"], kept["ids"]) == (5, '{"top_p": 0.5}', IDS[:2])


def test_keys_of_a_file_are_flags_or_the_keywords_of_python(capfd: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text(
        'architectures = ["direct"]\nmodel = "oracle"\nn = 1\ndrop_params = ["stop"]\nprogress = false\n'
        "no-report = true\n"
    )
    assert run("--from", "run.toml", "--out", "here") == 0
    assert (options("here")["drop_params"], options("here")["report"]) == (["stop"], False)
    assert not Path("here/report.html").exists()
    assert capfd.readouterr().err == ""


def test_flags_of_a_recorded_run_make_the_same_run() -> None:
    assert quiet("--arch", "rewoo", "--model", "oracle?extra_steps=1", "-n", 3, "--seed", 4, "--out", "first") == 0
    assert quiet("--from", "first/run.json", "--out", "second") == 0
    same = ["example_id", "prediction", "total_tokens"]
    pd.testing.assert_frame_equal(load("first")[same], load("second")[same])
    assert options("first") == options("second")


def test_switches_of_a_file_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text("model = 'oracle'\narch = 'direct'\ndry-run = true\nno-progress = true\n")
    assert run("--from", "run.toml", "--out", "here") == 0
    assert capsys.readouterr().out
    assert not Path("here").exists()
    Path("run.toml").write_text("model = 'oracle'\narch = 'direct'\ndry-run = false\njson = true\nn = 1\n")
    assert run("--from", "run.toml", "--out", "here") == 0
    assert json.loads(capsys.readouterr().out)
    assert Path("here/run.json").exists()


def test_a_seed_that_no_table_can_hold_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(*DIRECT, "--seed", 2**63, "--out", "here") == 2
    assert "--seed" in capfd.readouterr().err
    assert not Path("here").exists()


def test_a_module_that_ends_the_program_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("ending_agent.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(".")
    assert run("--arch", "ending_agent:Agent", "--model", "oracle", "--out", "here") == 2
    assert "it ends the program with 0" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle = 'oracle'", "unknown flag 'modle', did you mean 'model'?"),
        ("arch = ", "not valid TOML"),
        ("quiet = 3", "quiet = 3: expected true or false"),
        ("model = ['a', 'b']", "model = ['a', 'b']: expected one value"),
        ("question-time = 00:05:00", "question-time = datetime.time(0, 5): expected one value"),
        ("resume = 'x'", "unknown flag 'resume'"),
        ("questions = 2.9", "questions = 2.9: expected a whole number"),
        ("seed = 1.0", "seed = 1.0: expected a whole number"),
    ],
)
def test_a_wrong_file_is_one_line(text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text(text)
    assert run("--arch", "direct", "--from", "run.toml") == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("rewoo-bench: --from run.toml: ")
    assert message in err


def test_a_resumed_run_takes_no_file(capfd: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text("model = 'oracle'")
    assert quiet(*DIRECT, "-n", 1, "--out", "here") == 0
    assert run("--resume", "here", "--from", "run.toml") == 2
    assert "--from: leave it out with --resume" in capfd.readouterr().err


def test_a_manifest_without_options_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet(*DIRECT, "-n", 1, "--out", "here") == 0
    manifest = json.loads(Path("here/run.json").read_text())
    del manifest["options"]
    Path("here/run.json").write_text(json.dumps(manifest))
    assert run("--resume", "here") == 2
    err = capfd.readouterr().err
    assert err == "rewoo-bench: --resume: 'here/run.json' has no options of a run; start a new run with --out\n"
    assert run("--from", "here/run.json") == 2
    assert "expected the run.json of a run, with its options" in capfd.readouterr().err


def test_a_quiet_run_prints_its_folder(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(*DIRECT, "-n", 2, "--quiet", "--out", "here") == 0
    assert capfd.readouterr() == ("here\n", "")


def test_a_quiet_run_prints_its_errors(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda request: ServerFault(status=400, message="rude")) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base)
        assert run("--arch", "direct", "-n", 1, *model, "--quiet", "--out", "here") == 3
    out, err = capfd.readouterr()
    assert out == "here\n"
    assert err.startswith("incomplete: every question failed; last: 'openai/test' answered 400: rude\n")
    assert KEY not in err


def test_a_verbose_run_has_a_line_for_each_question(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--arch", "direct,react", "--model", "oracle", "-n", 2, "-v", "--out", "here") == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if "sample-" in line]
    assert lines[0].startswith("1/4 direct ")
    assert len(lines) == 4
    assert all(": right, answered '" in line for line in lines)


@pytest.mark.parametrize("flags", [["--quiet", "-v"], ["--quiet", "--json"]])
def test_quiet_and_its_opposite_are_refused(flags: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(*DIRECT, *flags) == 2
    assert "--quiet: leave out --verbose and --json" in capfd.readouterr().err


def test_an_error_is_printed_once_and_resume_is_advised_where_it_can_help(capfd: pytest.CaptureFixture[str]) -> None:
    Path("own.py").write_text(
        "class Own:\n    def __init__(self, prompts): ...\n\n    async def run(self, question, *, model, tools):\n"
        "        from rewoo_bench import Message, Request\n"
        "        return await model.complete(Request([Message('user', question)], role='agent'))\n"
    )
    assert run("--arch", "own:Own", "--model", "oracle", "-n", 2, "--out", "here", "--no-progress") == 3
    err = capfd.readouterr().err
    assert err.count("the oracle can't answer this call") == 1
    assert "correct the architecture, its tools or the model" in err
    assert "rewoo-bench run --resume" not in err
    with ModelServer(lambda request: ServerFault(status=500, message="busy")) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--max-retries", 0)
        assert quiet("--arch", "direct", "-n", 2, *model, "--out", "there") == 3
    err = capfd.readouterr().err
    assert err.count("busy") == 1
    assert err.endswith("continue with the rest, failed ones included:\nrewoo-bench run --resume there\n")


def test_a_broken_tool_is_not_advised_to_be_resumed(capfd: pytest.CaptureFixture[str]) -> None:
    Path("keyless.py").write_text(
        "class Broken:\n    def __init__(self, prompts): ...\n\n    async def run(self, question, *, model, tools):\n"
        "        raise KeyError('plan')\n"
    )
    assert quiet("--arch", "keyless:Broken", "--model", "oracle", "-n", 9, "--out", "here") == 3
    err = capfd.readouterr().err
    assert err.count("incomplete: KeyError in keyless.py:5") == 1
    assert "rewoo-bench run --resume" not in err


def tools_of(folder: str) -> dict[str, list[str]]:
    """The tools of each architecture of a run, by its manifest."""
    facts = json.loads(Path(folder, "run.json").read_text())["architectures"]
    return {each["name"]: list(each["tools"]) for each in facts}


def test_tools_are_those_of_the_flag_and_of_an_earlier_run() -> None:
    arches = ("--arch", "rewoo,react,direct,rewoo?tools=Search", "--model", "oracle", "-n", 1)
    expected = {"rewoo": ["Search", "LLM", "Calculator"], "react": ["Search", "Lookup", "Calculator"], "direct": []}
    expected["rewoo?tools=Search"] = ["Search"]
    assert quiet(*arches, "--tools", "Search,LLM", "--tools", "Calculator", "--out", "first") == 0
    assert quiet("--from", "first/run.json", "--out", "again") == 0
    assert tools_of("first") == tools_of("again") == expected
    assert quiet("--resume", "first") == 0


def test_an_unknown_tool_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet(*DIRECT, "--tools", "Serch") == 2
    assert "rewoo-bench: --tools: unknown tool 'Serch', did you mean 'Search'?" in capfd.readouterr().err
    assert quiet(*DIRECT, "--tools", ",") == 2
    assert "expected the name of a tool" in capfd.readouterr().err


def test_a_file_stands_for_the_questions_of_a_data_set() -> None:
    row = {"question": "Where did Ann Ek live?", "answer": "Lund"}
    Path("mine.jsonl").write_text(json.dumps(row) + "\n")
    Path("speech.txt").write_text("Good evening.\n\nAnn Ek lived in\nLund.\n")
    flags = ("--dataset", "sotu=mine.jsonl", "--corpus", "speech.txt", "--model", "oracle")
    assert quiet("--arch", "rewoo,react", *flags, "--out", "here") == 0
    table = load("here")
    assert set(table["dataset"]) == {"sotu"}
    assert table["exact_match"].all()
    assert tools_of("here") == {"rewoo": ["Search"], "react": ["Search", "Lookup"]}
