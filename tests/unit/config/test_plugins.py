"""Entry points of other installed packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from plugin_package import ENTRY_POINTS, FILES
from wheels import unpacked, wheel

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.config.plugins import PluginKind, find_plugin, installed_plugins
from rewoo_bench.errors import SpecError
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.architecture import load_architecture


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with one plug-in of each kind."""
    install(tmp_path, monkeypatch, "my-agents", FILES, ENTRY_POINTS)


def install(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: Mapping[str, str],
    entry_points: Mapping[str, Mapping[str, str]],
) -> None:
    """Puts a package where `importlib` looks for installed ones."""
    monkeypatch.syspath_prepend(unpacked(wheel(tmp_path, name, files, entry_points), tmp_path / name))
    monkeypatch.delitem(sys.modules, "my_agents", raising=False)


@pytest.mark.usefixtures("agents")
def test_plugins_are_listed_with_their_package() -> None:
    assert ("echo", "my-agents", "my_agents:Echo") in installed_plugins("architectures")
    assert installed_plugins("models") == [("constant", "my-agents", "my_agents:constant")]
    assert "my_agents" not in sys.modules


@pytest.mark.usefixtures("agents")
def test_an_installed_class_is_an_architecture() -> None:
    echo = load_architecture("echo", style="multihop")
    facts = echo.manifest
    assert (echo.name, facts["runner"], facts["package"]) == ("echo", "my_agents:Echo", "my-agents")


@pytest.mark.usefixtures("agents")
def test_an_installed_folder_is_an_architecture_and_its_tool_gets_documents_and_the_metered_model() -> None:
    model = ScriptedModel(["Paris"])
    (result,) = anyio.run(lambda: evaluate("capitals", ["glance"], model=model))
    assert result.trajectory.answer == "1 documents; Paris"
    assert [(call.kind, call.name, call.role) for call in result.calls if call.kind == "model"] == [
        ("model", "ScriptedModel", "tool")
    ]
    assert result.score
    assert (result.score.exact_match, result.score.f1) == (True, 1.0)


@pytest.mark.usefixtures("agents")
def test_an_installed_folder_and_an_installed_generator_are_data_sets() -> None:
    capitals, doubles = load_dataset_examples("capitals"), load_dataset_examples("doubles?most=3", seed=4)
    assert (capitals.name, capitals.scoring, capitals.manifest["package"]) == ("capitals", "lenient", "my-agents")
    assert (doubles.name, [example.id for example in doubles.examples]) == ("doubles?most=3", ["d4-1", "d4-2", "d4-3"])


CLASHES: list[tuple[PluginKind, str]] = [("models", "constant"), ("tools", "Glossary"), ("scorers", "lenient")]


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize(("kind", "name"), CLASHES)
def test_a_name_of_two_packages_names_both(
    kind: PluginKind, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "other-agents", {}, {f"rewoo_bench.{kind}": {name: "json:loads"}})
    message = f"{name!r} is in 2 packages: my-agents, other-agents; uninstall all but one"
    with pytest.raises(SpecError, match=re.escape(message)):
        find_plugin(kind, name)


BUNDLED: list[tuple[PluginKind, str]] = [
    ("architectures", "rewoo"),
    ("models", "oracle"),
]


@pytest.mark.parametrize(("kind", "name"), BUNDLED)
def test_a_bundled_name_of_another_package_names_both(
    kind: PluginKind, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "other-agents", {}, {f"rewoo_bench.{kind}": {name: "json:loads"}})
    with pytest.raises(SpecError, match=f"{name!r} is in 2 packages: rewoo-bench, other-agents"):
        find_plugin(kind, name)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_package:X", "can't import 'no_such_package:X': ModuleNotFoundError: No module named"),
        ("json.decoder:NaN", "nan is no class, and no folder: TypeError"),
    ],
)
def test_an_entry_point_that_is_no_architecture_is_named_with_its_package(
    value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "broken-agents", {}, {"rewoo_bench.architectures": {"broken": value}})
    with pytest.raises(SpecError, match=message) as caught:
        load_architecture("broken", style="multihop")
    assert "broken-agents" in str(caught.value)
