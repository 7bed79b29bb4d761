"""`--model package:Model` and `--model NAME` of an entry point: a user's own model is metered and recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command_runs import quiet

from rewoo_bench.models.open import is_own_model
from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

MODULE = """
from rewoo_bench.types import CallCost, Completion, Usage

class Echo:
    name = "echo-1"

    async def complete(self, request):
        return Completion("Answer: Neva", Usage(7, 0, 2), call_cost=CallCost(billed=Usage(7, 0, 2)))

    async def aclose(self):
        Path("closed").touch()

class Knowing:
    def with_gold(self, example):
        return Told(example.answers[0])

    async def complete(self, request):
        raise AssertionError("without the gold")

class Told:
    def __init__(self, answer):
        self.answer = answer

    async def complete(self, request):
        return Completion(f"Answer: {self.answer}", Usage(7, 0, 2))

class Sync:
    def complete(self, request):
        return None

class Silent:
    async def complete(self, request):
        return None

class Old:
    async def complete(self, messages, *, role, **options):
        return None

class Wanting:
    def __init__(self, path):
        pass

def echo():
    return Echo()

instance = Echo()
number = 7
"""


@pytest.fixture(autouse=True)
def module(own_folder: Path) -> None:
    Path("own_models_test.py").write_text(f"from pathlib import Path\n{MODULE}")


@pytest.mark.parametrize("name", ["Echo", "echo", "instance"])
def test_an_import_path_is_a_model(name: str) -> None:
    model = f"own_models_test:{name}"
    assert quiet("--arch", "direct,cot", "-n", 2, "--model", model, "--out", "here") == 0
    rows = load("here")
    assert rows["model"].unique().tolist() == [model]
    assert rows["total_tokens"].tolist() == [9] * 4
    assert rows["billed_tokens"].tolist() == [9] * 4
    assert rows["cost_usd"].isna().all()
    assert pd.read_parquet("here/calls.parquet")["name"].unique().tolist() == [model]
    manifest = json.loads(Path("here/run.json").read_text())["models"]["default"]
    assert manifest == {"name": model, "import_path": model, "own_name": "echo-1"}
    assert Path("closed").exists()
    assert quiet("--arch", "direct,cot", "-n", 2, "--model", "replay/here", "--out", "again") == 0


def test_a_model_that_wants_the_gold_gets_it_and_the_manifest_says_so() -> None:
    assert quiet("--arch", "direct", "-n", 3, "--model", "own_models_test:Knowing", "--out", "here") == 0
    assert load("here")["exact_match"].tolist() == [1.0] * 3
    assert json.loads(Path("here/run.json").read_text())["models"]["default"]["sees_gold"] is True


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_models_missing:Echo", "--model: can't import 'own_models_missing:Echo': No module named"),
        ("own_models_test:Ehco", "--model: module 'own_models_test' has no 'Ehco'"),
        ("own_models_test:Sync", "is no model: Sync has no method 'async def complete(…)'"),
        ("own_models_test:Old", "gets one argument, the request. Change it to\n"),
        ("own_models_test:Wanting", "can't be made without arguments: TypeError: "),
        ("own_models_test:number", "is neither a model nor a function or class that makes one"),
    ],
)
def test_what_is_no_model_is_one_line(capfd: pytest.CaptureFixture[str], name: str, message: str) -> None:
    assert quiet("--arch", "direct", "-n", 1, "--model", name, "--out", "here") == 2
    assert message in capfd.readouterr().err
    assert not Path("here").exists()


def test_a_model_without_a_completion_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "direct", "-n", 1, "--model", "own_models_test:Silent", "--out", "here") == 3
    assert "the model 'own_models_test:Silent' returned NoneType, expected a Completion" in capfd.readouterr().err


def test_an_entry_point_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "installed"
    facts = package / "own_models_dist-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: own-models-dist\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[rewoo_bench.models]\necho-of-mine = own_models_installed:Echo\n")
    (package / "own_models_installed.py").write_text(f"from pathlib import Path\n{MODULE}")
    monkeypatch.syspath_prepend(str(package))
    assert quiet("--arch", "direct", "-n", 2, "--model", "echo-of-mine", "--out", "here") == 0
    assert load("here")["exact_match"].notna().all()
    manifest = json.loads(Path("here/run.json").read_text())["models"]["default"]
    assert manifest == {"name": "echo-of-mine", "import_path": "own_models_installed:Echo", "own_name": "echo-1"}


NAMES = """openai/ft:gpt-4o-mini:me::1 ft:gpt-4o-mini-2024-07-18:me::1 ollama/llama3:8b local/smollm2-135m gpt-4o-mini
bedrock/anthropic.claude-3-haiku-20240307-v1:0 oracle?seed=1 replay/a:b"""


@pytest.mark.parametrize("name", NAMES.split())
def test_names_of_providers_are_no_import_paths(name: str) -> None:
    assert not is_own_model(name)
