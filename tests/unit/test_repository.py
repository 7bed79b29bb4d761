"""The files that GitHub, pre-commit and citation tools read say what the project does."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def parsed(file: str | Path) -> Any:
    return yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))


def test_the_workflow_runs_what_a_person_runs() -> None:
    (job,) = parsed(".github/workflows/ci.yml")["jobs"].values()
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]


def test_pre_commit_runs_the_checks_of_ci() -> None:
    (repository,) = parsed(".pre-commit-config.yaml")["repos"]
    for hook in repository["hooks"]:
        program, *arguments = hook["entry"].removesuffix(" --force-exclude").split()
        assert " ".join([f'"$work/test/bin/{program}"', *arguments]) in CI


def test_the_citation_is_of_this_version() -> None:
    cited = parsed("CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (cited["title"], cited["version"], cited["license"]) == (
        "rewoo_bench",
        project["version"],
        project["license"],
    )
