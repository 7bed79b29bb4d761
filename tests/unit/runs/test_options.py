"""The options of a run from Python: checked as the command checks them, with the command's defaults."""

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.cli.main import main
from rewoo_bench.cli.run import run_command
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.manifest import Manifest, read_manifest, write_manifest
from rewoo_bench.runs.options import OPTIONS, RunOptions, as_values
from rewoo_bench.text.redaction import redact_settings

OWN_OF_THE_COMMAND = {"trust", "agents", "as_json", "dry_run"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("trials", "questions", "concurrency", "max_connections", "workers", "max_steps")),
        *((name, -1) for name in ("question_tokens", "run_tokens", "max_retries", "reply_tokens")),
        *((name, math.nan) for name in ("temperature", "question_time", "timeout", "tool_failure_rate", "grace")),
        *((name, -3.0) for name in ("temperature", "question_cost", "run_cost", "timeout")),
        *(("timeout", math.inf), ("tool_failure_rate", 1.5), ("fail_on_error", 2.5), ("fail_on_error", -1.0)),
    ],
)
def test_python_and_the_command_refuse_a_value_in_the_same_words(
    name: str, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {name: value}
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(UsageError) as refused:
        RunOptions(("direct",), **given)
    with pytest.raises(SystemExit) as ended:
        main(["run", "--arch", "direct", "--model", "oracle", f"{flag}={value}"])
    assert ended.value.code == 2
    assert str(refused.value).startswith(f"{flag} {value}: it should be ")
    assert capsys.readouterr().err == f"rewoo-bench: {refused.value}\n"


@pytest.mark.parametrize(
    "given", [{"architectures": "rewoo"}, {"prompt_form": "chatty"}, {"model": None}, {"trials": "3"}]
)
def test_a_value_of_another_type_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="it should be"):
        RunOptions(**{"architectures": ("direct",), **given})


def test_the_options_have_the_defaults_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with run_command.make_context("run", ["--arch", "direct"]) as context:
        flags = {name: value for name, value in context.params.items() if name not in OWN_OF_THE_COMMAND}
    assert RunOptions(**{**flags, "architectures": ("direct",)}) == RunOptions(("direct",))
    assert flags.keys() == vars(RunOptions(("direct",))).keys()


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Values that an option may have."""
    kind, text = OPTIONS[name].type, st.text(min_size=1).filter(lambda each: "\x00" not in each)
    if name == "extra_body":
        return st.none() | st.just('{"top_p": 0.5, "stop": null}')
    if name in ("workers", "ray_address", "worker_resources"):
        return st.none()
    if kind == tuple[str, ...]:
        return st.lists(text, min_size=name == "architectures").map(tuple)
    base = next((each for each in get_args(kind) if NoneType in get_args(kind) and each is not NoneType), kind)
    bounds: Any = next(iter(getattr(base, "__metadata__", ())), None)
    plain = getattr(base, "__origin__", base)
    if get_origin(base) is Literal:
        found: st.SearchStrategy[Any] = st.sampled_from(get_args(base))
    elif plain is bool:
        found = st.booleans()
    elif plain is int:
        found = st.integers(int(bounds.ge), int(bounds.le or 2**31))
    elif plain is float:
        found = st.floats(0.001, bounds.le or (1 if name == "fail_on_error" else 1e9))
    else:
        found = text.map(Path) if plain is Path else text
    return st.none() | found if NoneType in get_args(kind) else found


@given(st.fixed_dictionaries({name: values_of(name) for name in OPTIONS if OPTIONS[name].role.saved}))
def test_options_come_back_from_a_manifest_as_they_were(values: dict[str, Any]) -> None:
    options = RunOptions(**values)
    with TemporaryDirectory() as folder:
        write_manifest(Path(folder), Manifest(run_id="r", options={"api_base": None, **options.as_json()}))
        recorded = read_manifest(Path(folder)).options
    assert RunOptions(**as_values(recorded)).as_json() == recorded
    if redact_settings(options.as_json()) == options.as_json():
        assert RunOptions(**as_values(recorded)) == options


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "name",
    ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.0-flash", "groq/llama-3.1-8b-instant"],
)
def test_opening_a_provider_leaves_the_environment_as_it_was(name: str) -> None:
    code = (
        "import os; before = dict(os.environ)\n"
        "from rewoo_bench.models.hosted.client import HostedModel\n"
        "from rewoo_bench.errors import MissingKey\n"
        f"try: HostedModel({name!r}).check()\n"
        "except MissingKey as error: print(error)\n"
        "assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())"
    )
    blank = {f"{provider}_API_KEY": " " for provider in ("OPENAI", "ANTHROPIC", "GEMINI", "GROQ", "GOOGLE", "OTHER")}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **blank}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "needs an API key" in done.stdout


def test_editors_see_every_option() -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "option_keywords.py"))
    assert script["STUB"].read_text("utf-8") == script["stub"]()
