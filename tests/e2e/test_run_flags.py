"""Flags that choose questions, take a run's flags from a file, and say how much is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command_runs import quiet, run
from model_server import ModelServer, ServerFault

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runs.folder import load

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


def test_a_limit_counts_chosen_questions_in_the_order_of_the_seed() -> None:
    Path("ids.txt").write_text("\n".join(IDS[:30]))
    for limit in (5, 9):
        assert quiet(*DIRECT, "--ids", "ids.txt", "-n", limit, "--seed", 3, "--out", limit) == 0
    every = [example.id for example in load_dataset_examples("sample", limit=100, seed=3).examples]
    expected = [each for each in every if each in IDS[:30]]
    assert (asked("5"), asked("9")) == (expected[:5], expected[:9])


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
        'architectures = ["direct"]\nmodel = "oracle"\nn = 1\nquestion_types = ["bridge"]\nprogress = false\n'
        "no-report = true\n"
    )
    assert run("--from", "run.toml", "--out", "here") == 0
    assert (options("here")["question_types"], options("here")["report"]) == (["bridge"], False)
    assert not Path("here/report.html").exists()
    assert capfd.readouterr().err == ""


def test_flags_of_a_recorded_run_make_the_same_run() -> None:
    assert quiet("--arch", "rewoo", "--model", "oracle?extra_steps=1", "-n", 3, "--seed", 4, "--out", "first") == 0
    assert quiet("--from", "first/run.json", "--out", "second") == 0
    same = ["example_id", "prediction", "total_tokens"]
    pd.testing.assert_frame_equal(load("first")[same], load("second")[same])
    assert options("first") == options("second")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arch = ", "not valid TOML"),
        ("trust = 3", "unknown flag 'trust'"),
        ("resume = 'x'", "unknown flag 'resume'"),
    ],
)
def test_a_wrong_file_is_one_line(text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text(text)
    assert run("--arch", "direct", "--from", "run.toml") == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("rewoo-bench: --from run.toml: ")
    assert message in err


def test_an_error_is_printed_once_and_resume_is_advised_where_it_can_help(capfd: pytest.CaptureFixture[str]) -> None:
    Path("own.py").write_text(
        "class Own:\n    def __init__(self, prompts): ...\n\n    async def run(self, question, *, model, tools):\n"
        "        from rewoo_bench import Message, Request\n"
        "        return await model.complete(Request([Message('user', question)], role='agent'))\n"
    )
    assert run("--arch", "own:Own", "--model", "oracle", "-n", 2, "--out", "here", "--no-progress") == 3
    err = capfd.readouterr().err
    assert err.count("the oracle can't answer this call") == 1
    assert "correct the architecture, its tools, the world or the model" in err
    assert "rewoo-bench run --resume" not in err
    with ModelServer(lambda request: ServerFault(status=500, message="busy")) as server:
        model = ("--model", "openai/test", "--api-base", server.api_base, "--max-retries", 0)
        assert quiet("--arch", "direct", "-n", 2, *model, "--out", "there") == 3
    err = capfd.readouterr().err
    assert err.count("busy") == 1
    assert err.endswith("continue with the rest, failed ones included:\nrewoo-bench run --resume there\n")


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
