"""The files that GitHub, pre-commit and citation tools read say what the project does."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def parsed(file: str | Path) -> Any:
    return yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_file_is_yaml(file: Path) -> None:
    assert isinstance(parsed(file), dict)


def test_the_workflow_runs_what_a_person_runs() -> None:
    (job,) = parsed(".github/workflows/ci.yml")["jobs"].values()
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]


def test_pre_commit_runs_the_checks_of_ci() -> None:
    (repository,) = parsed(".pre-commit-config.yaml")["repos"]
    for hook in repository["hooks"]:
        program, *arguments = hook["entry"].removesuffix(" --force-exclude").split()
        assert " ".join([f'"$work/test/bin/{program}"', *arguments]) in CI


def test_each_issue_form_asks_something() -> None:
    forms = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert {path.stem for path in forms} == {"bug", "feature", "wrong_number"}
    for form in map(parsed, forms):
        assert form["name"]
        assert form["description"]
        assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_dependabot_looks_where_something_is_pinned() -> None:
    for update in parsed(".github/dependabot.yml")["updates"]:
        names = {"pip": "pyproject.toml", "npm": "package.json", "github-actions": ".github/workflows/ci.yml"}
        assert (ROOT / update["directory"].lstrip("/") / names[update["package-ecosystem"]]).is_file()


def test_the_citation_is_of_this_version() -> None:
    cited = parsed("CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (cited["title"], cited["version"], cited["license"]) == (
        "rewoo_bench",
        project["version"],
        project["license"],
    )
