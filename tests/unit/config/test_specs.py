"""Architectures as folders: what is wrong in one is named, what is copied works."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from parts import Told

from rewoo_bench.config.names import bundled_folder
from rewoo_bench.config.specs import import_object
from rewoo_bench.errors import SpecError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Example, Model, Tool, Trajectory

ROOT = Path(__file__).parents[3]


class Parrot:
    """A runner of one's own: no base class, no settings."""

    def __init__(self, prompts: Any) -> None:
        self.prompts = prompts

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        observation = await tools["Mine"](tools["Mine"].arguments(query=question))
        return Trajectory(observation, "answered")


def mine() -> Tool:
    """A tool of one's own."""
    return Told(lambda query: query.upper(), name="Mine")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of ReWOO, to be changed."""
    shutil.copytree(bundled_folder("architectures") / "rewoo", tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\nos.nothing\n", "AttributeError: module 'os' has no attribute 'nothing' (broken.py, line 2)"),
        ("undefined\n", "NameError: name 'undefined' is not defined (broken.py, line 1)"),
        ("x = = 1\n", "SyntaxError: invalid syntax (broken.py, line 1)"),
    ],
)
def test_code_of_ones_own_that_breaks_at_its_import_is_an_error_with_its_place(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(SpecError) as caught:
        import_object("broken:Mine", "--model", tmp_path)
    assert str(caught.value) == f"--model: can't import 'broken:Mine': {said}"


def change(folder: Path, old: str, new: str, file: str = "architecture.toml") -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


def fault(folder: Path) -> str:
    """What is wrong with the folder: one line that says where."""
    with pytest.raises(SpecError) as caught:
        Toolbox().check(load_architecture(str(folder), style="multihop"))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_copied_folder_is_a_new_architecture(folder: Path) -> None:
    change(folder, 'name = "rewoo"', 'name = "mine"')
    copied, original = load_architecture(str(folder), style="multihop"), load_architecture("rewoo", style="multihop")
    assert copied.name == "mine"
    assert {**copied.manifest, "name": "rewoo"} == original.manifest


def test_without_a_tool_the_exemplars_without_it_are_shown_where_there_are_some() -> None:
    whole, alone = (load_architecture(f"rewoo{tools}", style="trivia") for tools in ("", "?tools=Search"))
    assert "LLM[" in whole.prompts.shots("planner")[1].content
    assert [message.content for message in alone.prompts.shots("planner")] == [
        whole.prompts.shots("planner")[0].content,
        whole.prompts.shots("planner")[1].content.partition("\nPlan: Read")[0],
    ]
    assert "fallback_styles" not in alone.manifest
    assert alone.shown_but_left_out == whole.shown_but_left_out == []
    assert load_architecture("rewoo?tools=Search", style="multihop").shown_but_left_out == ["LLM"]
    assert load_architecture("rewoo-json?tools=LLM&max_exemplars=6", style="multihop").shown_but_left_out == ["Search"]
    assert load_architecture("rewoo?tools=Search&max_exemplars=0", style="multihop").shown_but_left_out == []


def test_an_architecture_without_exemplars_for_a_style_has_those_of_multihop_and_says_so(folder: Path) -> None:
    change(folder, 'arithmetic = "exemplars/arithmetic.txt"', "")
    architecture, own = load_architecture(str(folder), style="arithmetic"), load_architecture("rewoo", style="multihop")
    assert architecture.prompts.exemplars["planner"] == own.prompts.exemplars["planner"]
    assert architecture.manifest["fallback_styles"] == {"planner": "multihop"}
    assert "fallback_styles" not in load_architecture(str(folder), style="yes_no").manifest
    assert load_architecture(f"{folder}?max_exemplars=0", style="arithmetic").fallback_styles == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("slot_tokens", "slot_token", "[settings]: unknown key 'slot_token', did you mean 'slot_tokens'? available: "),
        ("max_steps = 8", "max_steps = 0", "[settings]: max_steps: Input should be greater than or equal to 1, got 0"),
        ('runner = "rewoo"', "", "the key 'runner' is missing"),
        ('name = "rewoo"', "name = rewoo", "not valid TOML: Invalid value (at line 1, column 8)"),
        ("[tools.LLM]", "[tools.Serch]", "[tools.Serch]: unknown tool 'Serch', did you mean 'Search'? available: "),
        ('prompt = "llm.txt"', "", "[tools.LLM]: the LLM tool needs a prompt file"),
        (
            'runner = "rewoo"',
            'runner = "mine"',
            "unknown runner 'mine'; available: llmcompiler, plan-execute, react, react-code, react-json, react-native, "
            "rewoo, rewoo-code, rewoo-react, router, single-call; or package.module:Class",
        ),
        ('"planner.txt"', '"plan.txt"', "no such prompt file"),
    ],
)
def test_a_fault_in_architecture_toml_is_named(folder: Path, old: str, new: str, message: str) -> None:
    change(folder, old, new)
    assert message in fault(folder)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("planner.txt", "$tools", "$tool", "placeholder 'tool'; known placeholders: $tools, $max_steps"),
        ("exemplars/multihop.txt", "## user", "## human", "turns headed '## user' and '## assistant', got '## human'"),
        ("exemplars/multihop.txt", "# ", "", "no exemplar; one starts with a line '# name'"),
    ],
)
def test_a_fault_in_a_text_is_named_before_the_first_question(
    folder: Path, file: str, old: str, new: str, message: str
) -> None:
    change(folder, old, new, file)
    assert message in fault(folder)


def test_options_behind_a_name_change_settings_and_the_name() -> None:
    changed = load_architecture("rewoo?max_exemplars=2&slot_tokens=50", style="multihop")
    plain = load_architecture("rewoo", style="multihop")
    assert changed.name == "rewoo?max_exemplars=2&slot_tokens=50"
    assert changed.manifest["settings"] == {**plain.manifest["settings"], "slot_tokens": 50}
    assert (plain.manifest["exemplars"]["planner"], changed.manifest["exemplars"]["planner"]) == (6, 2)
    assert changed.prompts.exemplars["planner"] == plain.prompts.exemplars["planner"][:2]


def test_tools_are_an_option_too() -> None:
    plain = load_architecture("rewoo", style="multihop")
    more = load_architecture("rewoo?tools=Search+LLM+Lookup&max_steps=4", style="multihop")
    assert more.name == "rewoo?tools=Search+LLM+Lookup&max_steps=4"
    assert more.manifest["tools"] == {**plain.manifest["tools"], "Lookup": {}}
    assert more.manifest["tool_prompts_sha256"] == plain.manifest["tool_prompts_sha256"]
    assert list(load_architecture("rewoo?tools=Calculator", style="trivia").spec.tools) == ["Calculator"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rewoo?slot_token=5", "unknown option 'slot_token', did you mean 'slot_tokens'"),
        ("rewoo?tools=", "architecture 'rewoo?tools=': tools: expected names joined by +, as in tools=Search+LLM"),
        ("rewoo?max_exemplars=-1", "architecture 'rewoo?max_exemplars=-1': max_exemplars: Input should be greater tha"),
    ],
)
def test_options_that_cant_be_used_are_refused(name: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        load_architecture(name, style="multihop")


@pytest.mark.anyio
async def test_a_loop_and_a_tool_of_ones_own_plug_in(tmp_path: Path) -> None:
    (tmp_path / "architecture.toml").write_text(
        'name = "parrot"\ndescription = "says it back"\nrunner = "test_specs:Parrot"\n'
        '[tools.Mine]\nfactory = "test_specs:mine"\n'
    )
    parrot = load_architecture(str(tmp_path), style="multihop")
    results: list[Result] = []
    evaluator = Evaluator({"": ScriptedModel([])}, "hotpotqa")
    await evaluator.run([Example("q1", "Neva", ("neva",))], [parrot], on_result=results.append)
    assert (results[0].trajectory.answer, results[0].score and results[0].score.exact_match) == ("NEVA", True)
    assert [call.name for call in results[0].calls] == ["Mine"]


def test_a_class_by_import_path_needs_no_folder() -> None:
    parrot = load_architecture("test_specs:Parrot", style="trivia")
    assert (parrot.name, list(parrot.spec.tools)) == ("Parrot", ["Search", "Lookup"])
    with pytest.raises(SpecError, match=r"architecture 'test_specs:Parot': module 'test_specs' has no 'Parot'"):
        load_architecture("test_specs:Parot", style="trivia")


@pytest.mark.parametrize("folder", ["architectures", "datasets", "results"])
def test_folders_of_data_hold_no_python(folder: str) -> None:
    found = [path for path in (ROOT / folder).rglob("*.py*") if path.suffix in (".py", ".pyi", ".pyc", ".pyx")]
    assert [path for path in found if not path.is_relative_to(ROOT / "architectures/agents")] == []


def test_an_agents_folder_holds_one_script_and_its_pinned_requirements() -> None:
    folders = sorted(path.parent for path in (ROOT / "architectures/agents").glob("*/architecture.toml"))
    assert folders
    for folder in folders:
        held = {path.name for path in folder.iterdir()}
        if "agent.mjs" in held:
            assert held == {"agent.mjs", "architecture.toml"}
            continue
        assert held == {"agent.py", "architecture.toml", "requirements.txt"}
        lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
        assert all("==" in line for line in lines)


class Broken:
    def __init__(self, prompts: Any) -> None:
        raise KeyError("nothing here")


class NoRunner:
    def __init__(self, prompts: Any) -> None:
        self.prompts = prompts


class WithoutArguments:
    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        return Trajectory(None, "empty_answer")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Broken", "can't be made: KeyError: 'nothing here'"),
        ("NoRunner", "is no runner: it has no method run"),
        ("WithoutArguments", "can't be made: TypeError"),
    ],
)
def test_a_class_that_is_no_runner_is_one_line(name: str, says: str) -> None:
    with pytest.raises(SpecError, match=re.escape(says)):
        load_architecture(f"{__name__}:{name}", style="multihop")
