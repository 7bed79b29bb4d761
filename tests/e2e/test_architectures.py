"""Every bundled architecture on the embedded model: in form, in its books, and with its prefix cached."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import anyio
import pytest

from rewoo_bench import evaluate
from rewoo_bench.config.names import bundled_folder, bundled_names
from rewoo_bench.evaluation.folder import Result, Results, Task
from rewoo_bench.events import Event

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

NAMES = bundled_names("architectures")
SLOWEST = ("llmcompiler", "plan-execute", "react-code", "rewoo-json", "rewoo-lazy")
ENDS = ("answered", "step_limit", "invalid_plan", "empty_answer", "length_limit")
Ask = Callable[[str], list[Result]]


def without_the_slowest(names: Iterable[str]) -> list[Any]:
    """The names as parameters; those that take longest run at night."""
    return [pytest.param(name, marks=pytest.mark.nightly) if name in SLOWEST else name for name in names]


@pytest.fixture(scope="module")
def questions(request: pytest.FixtureRequest) -> int:
    return 2 if any(item.get_closest_marker("nightly") for item in request.session.items) else 1


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, questions: int) -> Ask:
    """Puts two questions, by day one, to an architecture when a test first names it.

    For the sake of slow machines with one exemplar each, which is a third of the prompts, half of the steps, and a
    quarter of the replans; and what rewoo was answered, rewoo-react and router, which ask the same, are answered again.
    """
    folder, kept = tmp_path_factory.mktemp("copy") / "architectures", tmp_path_factory.mktemp("kept")
    shutil.copytree(bundled_folder("architectures"), folder)
    for description in folder.glob("*/architecture.toml"):
        own = re.sub("(?m)^max_exemplars.*$", "", description.read_text())
        for many, few in (("max_steps = 8", "max_steps = 4"), ("max_replans = 8", "max_replans = 2")):
            own = own.replace(many, few)
        description.write_text(f"max_exemplars = 1\n{own}")

    @cache
    def ask(name: str) -> list[Result]:
        heard: dict[int, list[str]] = {}

        def watch(task: Task, event: Event) -> None:
            if event.kind != "step_discarded" or event.data["ended"]:
                heard.setdefault(task.index, []).append(event.kind)

        async def run() -> Results:
            return await evaluate(
                "sample", [str(folder / name)], questions=questions, concurrency=1, on_event=watch,
                out=kept / name, answer_cache=kept / "answers",
            )  # fmt: skip

        made = list(anyio.run(run))
        for result in made:
            kinds = heard.get(result.task.index, [])
            assert kinds.count("step_finished") - kinds.count("step_discarded") == sum(
                step.tool not in (None, "Finish") for step in result.trajectory.steps
            )
        return made

    return ask


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", without_the_slowest(NAMES))
def test_every_question_ends_in_a_typed_way(results: Ask, name: str, questions: int) -> None:
    assert len(results(name)) == questions
    for result in results(name):
        assert result.error is None
        assert result.score is not None
        assert result.trajectory.stop_reason in ENDS


@pytest.mark.parametrize("name", ["rewoo", "rewoo-react"])
def test_every_plan_is_sound_at_the_first_attempt(results: Ask, name: str) -> None:
    for result in results(name):
        assert [draft["faults"] for draft in result.trajectory.notes["drafts"]] == [[]]


@pytest.mark.nightly
def test_every_plan_in_json_has_the_form_of_the_schema(results: Ask) -> None:
    drafts: list[Any] = [draft for result in results("rewoo-json") for draft in result.trajectory.notes["drafts"]]
    assert drafts
    for draft in drafts:  # a schema can't keep a step from naming a later one
        assert all(
            "wait" in fault or "which no step defines" in fault or "than once" in fault for fault in draft["faults"]
        )


@pytest.mark.parametrize("name", without_the_slowest(["react", "react-json", "plan-execute", "rewoo-react"]))
def test_every_action_can_be_read(results: Ask, name: str) -> None:
    for result in results(name):
        assert all(step.tool for step in result.trajectory.steps)


@pytest.mark.nightly
@pytest.mark.parametrize("name", without_the_slowest(sorted({*NAMES} - {"react-native", "rewoo-react", "router"})))
def test_the_second_question_finds_the_prompt_of_the_first(results: Ask, name: str) -> None:
    """What is the same from question to question comes first, so the server has it in its cache."""
    first, second = (next(call for call in result.calls if call.kind == "model") for result in results(name))
    shared = min(first.usage.input_tokens, second.usage.input_tokens)
    question = 60  # tokens, at most, of the sample's questions
    assert second.usage.cached_input_tokens >= shared - question
