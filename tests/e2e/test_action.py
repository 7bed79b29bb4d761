"""The GitHub action: its steps, run by bash as a runner does, against a server that keeps a pull request's comments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from rewoo_bench.config.names import bundled_folder

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = [step for step in ACTION["runs"]["steps"] if "run" in step]
RUN = "--arch rewoo --model oracle -n 3"
BUDGET = """
[[budget]]
architecture = "rewoo"
dataset = "sample"
model = "oracle"
total_tokens = {{ mean = {} }}
"""


class PullRequest:
    """The comments of a pull request as GitHub keeps them; `refuses` to write, as where a fork's token asks."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.writes: list[str] = []
        self.refuses = False
        self.address = ""

    def add(self, body: str, kind: str) -> dict[str, Any]:
        self.comments.append({"id": len(self.comments) + 1, "body": body, "user": {"type": kind}})
        return self.comments[-1]

    def answer(self, method: str, address: str, document: Any) -> tuple[int, Any]:
        url = urlsplit(address)
        if method == "GET" and url.path == "/repos/we/ours/issues/7/comments":
            size, page = (int(parse_qs(url.query)[name][0]) for name in ("per_page", "page"))
            return 200, self.comments[size * (page - 1) : size * page]
        if self.refuses:
            return 403, {"message": "Resource not accessible by integration"}
        self.writes.append(method)
        if method == "POST" and url.path == "/repos/we/ours/issues/7/comments":
            return 201, self.add(document["body"], "Bot")
        comment = self.comments[int(url.path.removeprefix("/repos/we/ours/issues/comments/")) - 1]
        comment["body"] = document["body"]
        return 200, comment


@pytest.fixture
def pull_request() -> Iterator[PullRequest]:
    github = PullRequest()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.headers["authorization"] == "Bearer ours"
            size = int(self.headers.get("content-length", 0))
            status, document = github.answer(self.command, self.path, json.loads(self.rfile.read(size) or "null"))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    github.address = f"http://127.0.0.1:{server.server_port}"
    yield github
    server.shutdown()
    server.server_close()
    thread.join()


class Runner:
    """A job of a workflow that uses the action, in the folder of the user's repository."""

    def __init__(self, folder: Path, api: str) -> None:
        self.repository, self.files = folder / "repository", folder / "runner"
        self.repository.mkdir()
        self.files.mkdir()
        self.summary = self.files / "summary"
        event = {"pull_request": {"number": 7, "head": {"sha": "0123456789abcdef"}}}
        (self.files / "event.json").write_text(json.dumps(event))
        self.env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.files),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": api,
            "GITHUB_EVENT_PATH": str(self.files / "event.json"),
            "GITHUB_OUTPUT": str(self.files / "output"),
            "GITHUB_REPOSITORY": "we/ours",
            "GITHUB_RUN_ID": "5",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def uses(self, **inputs: str) -> int:
        """The exit code of the action, whose first failed step ends it. The package is installed already."""
        defaults = {name: given["default"] for name, given in ACTION["inputs"].items()}
        values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
        values["inputs.github-token"] = "ours"
        for step in STEPS:
            if step["id"] == "install":
                continue
            (self.files / "output").write_text("")
            if code := self.step(step, values).returncode:
                return code
            for line in (self.files / "output").read_text().splitlines():
                name, _, value = line.partition("=")
                values[f"steps.{step['id']}.outputs.{name}"] = value
        return 0

    def step(self, step: dict[str, Any], values: dict[str, str], **env: str) -> subprocess.CompletedProcess[str]:
        """A step's script in the shell of a runner, with the expressions of its `env` filled in."""

        def filled(expression: re.Match[str]) -> str:
            return next(filter(None, (values[name] for name in expression[1].split(" || "))), "")

        given = {name: re.sub(r"\$\{\{ (.+?) \}\}", filled, value) for name, value in step["env"].items()}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        env = self.env | given | env
        return subprocess.run(shell, cwd=self.repository, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def runner(tmp_path: Path, pull_request: PullRequest) -> Runner:
    return Runner(tmp_path, pull_request.address)


def test_a_comment_is_created_then_updated_and_a_budget_exceeded_fails(
    runner: Runner, pull_request: PullRequest
) -> None:
    budgets = runner.repository / "budgets.toml"
    budgets.write_text(BUDGET.format(3000))
    for number in range(100):  # the action's comment is on the second page
        pull_request.add(f"<!-- rewoo-bench gate  -->\nA person's, {number}", "User")
    assert runner.uses(run=RUN, budgets="budgets.toml") == 0
    comment = pull_request.comments[100]["body"]
    assert comment.startswith("<!-- rewoo-bench gate  -->\n### Token budgets: PASSED: 1 check")
    assert comment.endswith("Commit 0123456, [log](https://github.com/we/ours/actions/runs/5)\n")
    budgets.write_text(BUDGET.format(10))
    assert runner.uses(run=RUN, budgets="budgets.toml") == 1
    comment = pull_request.comments[100]["body"]
    assert "### Token budgets: FAILED: 1 of 1 check" in comment
    assert re.search(r"\| rewoo, sample, oracle \| total_tokens mean \| [\d,.]+ \| at most 10\.0 \|", comment)
    assert (pull_request.writes, len(pull_request.comments)) == (["POST", "PATCH"], 101)
    passed, failed = runner.summary.read_text().split("### Token budgets: ")[1:]
    assert (passed.partition(":")[0], failed.partition(":")[0]) == ("PASSED", "FAILED")
    assert list(runner.repository.iterdir()) == [budgets]


def test_what_could_not_be_judged_fails_and_replaces_the_comment(runner: Runner, pull_request: PullRequest) -> None:
    (runner.repository / "budgets.toml").write_text(BUDGET.format(3000))
    pull_request.add("<!-- rewoo-bench gate small -->\n### Token budgets: PASSED", "Bot")
    assert runner.uses(run=f"{RUN} --no-such-flag", budgets="budgets.toml", name="small") == 2
    assert "### Token budgets: nothing was judged" in pull_request.comments[0]["body"]
    assert runner.uses(folder="nowhere", budgets="budgets.toml", name="-->@large") == 2
    assert pull_request.comments[1]["body"].startswith("<!-- rewoo-bench gate large -->\n")


@pytest.mark.parametrize("how", ["a fork's token", "no pull request", "not asked for"])
def test_without_a_comment_the_gate_still_decides(runner: Runner, pull_request: PullRequest, how: str) -> None:
    golden = ROOT / "tests" / "golden" / "runs" / "finished"
    pull_request.refuses = True
    if how == "no pull request":
        (runner.files / "event.json").write_text("{}")
    comment = str(how != "not asked for").lower()
    assert runner.uses(folder=str(golden), baseline=str(golden), comment=comment) == 0
    assert "PASSED" in runner.summary.read_text()
    assert (pull_request.writes, pull_request.comments) == ([], [])


def test_no_text_of_a_run_or_an_input_becomes_a_command_or_markdown(runner: Runner, pull_request: PullRequest) -> None:
    hostile = "$(touch taken)`touch taken`;touch taken @all <img src=x> [a](b)"
    rows = [{"id": f"{hostile} {number}", "question": f"{number}?", "answer": "1"} for number in range(3)]
    (runner.repository / f"{hostile}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    mine = runner.repository / "mine"
    shutil.copytree(bundled_folder("architectures") / "direct", mine)
    run = f"--arch ./mine --model oracle --dataset '{hostile}.jsonl'"
    assert runner.uses(run=run, baseline="none yet") == 2
    (made,) = runner.files.glob("rewoo-bench.*/run")
    made.rename(runner.repository / hostile)
    (mine / "answer.txt").write_text((mine / "answer.txt").read_text() + "Be brief.")
    assert runner.uses(run=run, baseline=hostile, name=hostile) == 1
    body = pull_request.comments[-1]["body"]
    assert "questions that grew most" in body
    assert all(sign not in body for sign in ("@all", "<img", "[a](b)"))
    assert runner.uses(folder=hostile, baseline=hostile, gate=f"--strict {hostile}", name=hostile) == 2
    assert not (runner.repository / "taken").exists()


def test_no_expression_stands_in_a_script() -> None:
    assert [step["id"] for step in STEPS if "${{" in step["run"]] == []


def documented(language: str) -> list[str]:
    """The blocks of docs/ci.md in this language."""
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_documented_workflow_passes_and_comments(runner: Runner, pull_request: PullRequest) -> None:
    (runner.repository / "budgets.toml").write_text(*documented("toml"))
    (job,) = yaml.safe_load(*documented("yaml"))["jobs"].values()
    step = job["steps"][-1]
    assert step["uses"].startswith("rewoo-bench/rewoo_bench@")
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert runner.uses(**step["with"]) == 0
    assert "PASSED: 2 checks" in pull_request.comments[0]["body"]


@pytest.mark.slow
def test_the_documented_commands_of_other_ci_run_twice(runner: Runner) -> None:
    (runner.repository / "budgets.toml").write_text(*documented("toml"))
    update, judge = documented("bash")
    _install, *commands = judge.splitlines()
    against = [f"{each} --baseline baseline.json" if " gate " in each else each for each in commands]
    for script, checks in (("\n".join(commands), 2), ("\n".join([update, *against]), 15)):
        for _ in range(2):
            done = runner.step({"run": script, "env": {}}, {})
            assert (done.returncode, done.stderr) == (0, "")
            assert f"PASSED: {checks} checks" in done.stdout


def test_a_replay_of_the_documented_files_is_judged_without_a_key_and_a_changed_prompt_is_not(runner: Runner) -> None:
    """Section "Your own agent" of docs/ci.md."""
    (files,) = re.findall(r"^git add (.*)$", "".join(documented("console")), re.MULTILINE)
    mine = runner.repository / "mine"
    shutil.copytree(bundled_folder("architectures") / "direct", mine)
    made = runner.files / "recorded"
    command = ["rewoo-bench", "run", "--arch", "./mine", "--model", "oracle", "-n", "3", "--no-progress"]
    subprocess.run([*command, "--out", str(made)], cwd=runner.repository, env=runner.env, check=True)
    (runner.repository / "recorded").mkdir()
    for file in files.split():
        shutil.copy(made / Path(file).name, runner.repository / file)
    budget = BUDGET.format(3000).replace('"rewoo"', '"direct"').replace('"oracle"', '"replay/recorded"')
    (runner.repository / "budgets.toml").write_text(budget)
    replay = "--arch ./mine --model replay/recorded -n 3"
    assert runner.uses(run=replay, budgets="budgets.toml") == 0
    (mine / "answer.txt").write_text((mine / "answer.txt").read_text() + "Be brief.")
    assert runner.uses(run=replay, budgets="budgets.toml") == 3
    said = runner.summary.read_text().splitlines()[-1]
    assert said == "### Token budgets: the run is incomplete, so nothing was judged; the job's log says why"


@pytest.mark.slow
def test_the_action_installs_its_own_checkout(runner: Runner, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "installed.pth").write_text(sysconfig.get_path("purelib"))  # what the package depends on
    runner.env["PATH"] = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = runner.step(next(step for step in STEPS if step["id"] == "install"), {"inputs.extras": "mcp,code"})
    assert done.returncode == 0, done.stderr
    assert (site / "rewoo_bench" / "_bundled" / "datasets").is_dir()
    assert runner.uses(run=RUN, gate="--max-increase 1%", baseline=str(ROOT / "tests")) == 2
