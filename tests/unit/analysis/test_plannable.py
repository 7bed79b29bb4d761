"""What of a loop's tool calls a plan could have had: values, choices, results to be read, and what that takes."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from langfuse_traces import asks, langfuse_trace, observation
from real_data import TAU_BENCH, RealData

from rewoo_bench import bench, compare
from rewoo_bench.analysis.law import default_sizes
from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.planned import Loop, Way, passed_on, planned, read_results
from rewoo_bench.analysis.plannable.run import plannable
from rewoo_bench.analysis.plannable.steps import TracedTask, traced_tasks
from rewoo_bench.analysis.plannable.values import Index, forms, leaves
from rewoo_bench.cli.main import group, main
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.imports.write import ImportChoices, import_run
from rewoo_bench.report.plots.planned import save_planned
from rewoo_bench.text.tokens import count_tokens

FLIGHTS = '{"flights": [{"id": "HAT069", "price": 121, "date": "2024-05-20"}], "user": {"name": "Mia Li"}}'


@pytest.mark.parametrize(
    ("text", "value", "how"),
    [
        ("HAT069", "HAT069", "whole"),
        (FLIGHTS, "HAT069", "field"),
        (FLIGHTS, 121, "field"),
        (FLIGHTS, "May 20, 2024", "field"),
        (FLIGHTS, "mia_li", "field"),
        (FLIGHTS, "Mia", "part"),
        ('{"card_1": {"amount": 5}}', "card_1", "field"),  # a name may be an id
        ('{"card_1": {}, "card_2": {}}', "card_2", "choice"),
        ('[{"id": 5000}, {"id": 6000}]', 6000, "choice"),
        ('[{"id": 5000, "to": "Oslo"}, {"id": 6000, "to": "Oslo"}]', "Oslo", "field"),
        ("Fly to Las Vegas by sea", "LAS", None),
        ("Fly to LAS, please", "LAS", "part"),
        ("I decided 3 days ago, maybe 5", "2024-12-03", None),
        ("on 5/20/2024", "2024-05-20", "part"),
        ("at 3:00 PM", "15:00:00", "part"),
        ("2024-05-15 15:00:00", 5, None),
        ("1. Austin", 1, None),
        ("152, 103", "152 + 103", None),
        ("152+103=", "152 + 103", "part"),
        ("The flight HAT069 costs $1,500.50 today", 1500.5, "part"),
        ("I have three bags", 3, "part"),
        ("On May 20th, please", "2024-05-20", "part"),
        ("On 20/05/2024", "2024-05-20", "part"),
        ("On 05/06/2024", "2024-06-05", None),  # in May, as in America
        ("I may 20 times", "2024-05-20", None),
        ("a 20GB plan", 20, "part"),
        ("a 20GBx plan, 12e5, 3b", 12, None),
        ("fly from jfk", "JFK", "part"),
        ("la vie", "LA", None),
        ("12 then 345", "12/345", None),
        ("no 12/345", "12/345", "part"),
        ("call +49-30-1234567", "+49 30 1234567", "part"),
        ("请订从北京到上海的机票,3张,2024年5月20日,从JFK出发", "北京", "part"),
        ("请订从北京到上海的机票,3张,2024年5月20日,从JFK出发", "2024-05-20", "part"),
        ("请订从北京到上海的机票", "京", None),
        ("ฉันต้องการไปกรุงเทพ", "กรุงเทพ", "part"),
        ("Größe in São Paulo", "sao paulo", "part"),
        ("user_id: mia_li_3668", "mia-li-3668", "part"),
        ('"{\\"id\\": \\"X7\\"}"', "X7", "part"),
        ("HAT0690", "HAT069", None),
        ("version 1.2.3", 1.2, None),
        ("anything", "", None),
        ("{}", {}, None),
        ("[1, 2", 1, "part"),  # cut off JSON is a text
    ],
)
def test_a_value_is_found_as_people_write_it(text: str, value: Any, how: str | None) -> None:
    found = Index(text).find(value)
    assert (found and found[0]) == how


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, {"b": "x"}], "c": {}}, [("a[0]", 1), ("a[1].b", "x"), ("c", {})]),
        ('{"a": "[1, 2]"}', [("a[0]", 1), ("a[1]", 2)]),
        ("Oslo", [("", "Oslo")]),
        ("[not json", [("", "[not json")]),
        ([], [("", [])]),
    ],
)
def test_a_list_or_an_object_is_its_single_values(value: Any, expected: list[tuple[str, Any]]) -> None:
    assert [tuple(leaf) for leaf in leaves(value)] == expected


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5_000, "²", "May 99"])
def test_no_value_is_more_than_forms(value: str) -> None:
    for leaf in leaves(value):
        forms(leaf.value)
        Index(value).find(leaf.value)


def step(turn: int, tool: str, result: str = "done", *, failed: bool = False, **arguments: Any) -> dict[str, Any]:
    text = json.dumps(arguments)
    return {"id": str(turn), "tool": tool, "argument": text, "observation": result, "failed": failed, "thought": ""}


def answer(turn: int, text: str = "Done.") -> dict[str, Any]:
    return {"id": str(turn), "tool": None, "argument": "", "observation": "", "failed": False, "thought": text}


def trace(*steps: dict[str, Any], task: str = "t", trial: int = 0, question: str = "", **more: Any) -> dict[str, Any]:
    return {
        **{"architecture": "bot", "example_id": task, "trial": trial, "question": question, "steps": list(steps)},
        **{"notes": {}, **more},
    }


def traced(*traces: dict[str, Any]) -> list[TracedTask]:
    return list(traced_tasks(traces))


def kinds(task: TracedTask) -> list[list[str]]:
    return [[value.kind(task.starts[step.segment]) for value in step.values] for step in task.steps]


USER = '{"card": "card_77", "city": "Austin"}'


def test_a_value_is_known_constant_copied_or_derived() -> None:
    (task,) = traced(
        trace(
            step(1, "user", USER, id="mia_li"),
            step(2, "search", "[]", city="Austin", day="2024-05-20", stops=None, note="by train"),
            answer(3, "Nothing by train."),
            question="I am Mia Li; I travel on May 20.",
        )
    )
    assert kinds(task) == [["known"], ["copied", "known", "constant", "derived"]]
    (source,) = task.steps[1].values[0].sources
    assert (source.step, source.how, source.path) == (0, "field", "city")


def test_what_was_found_or_said_before_the_user_spoke_again_is_known() -> None:
    (task,) = traced(
        trace(
            step(1, "user", USER, id="mia_li"),
            answer(2, "Shall I book HAT069?"),
            step(3, "book", card="card_77", flight="HAT069", city="Dallas"),
            answer(4),
            question="I am Mia Li",
            turns=[{"before_step": 2, "text": "Yes, to Dallas"}],
        )
    )
    assert kinds(task) == [["known"], ["known", "known", "known"]]
    assert task.starts == (0, 1)


def test_calls_of_one_turn_dont_copy_from_each_other() -> None:
    (task,) = traced(trace(step(1, "a", "X77", q="x"), step(1, "b", city="X77"), question="x"))
    assert kinds(task) == [["known"], ["derived"]]


def test_a_value_that_three_other_tasks_gave_is_a_constant() -> None:
    traces = [trace(step(1, "f", mode="fast"), task=f"t{number}") for number in range(4)]
    assert [kinds(task) for task in traced(*traces)] == [[["constant"]]] * 4
    assert [kinds(task) for task in traced(*traces[:3])] == [[["derived"]]] * 3
    tools = [{"function": {"name": "f", "parameters": {"properties": {"mode": {"enum": ["fast", "slow"]}}}}}]
    assert kinds(traced({**traces[0], "tools": tools})[0]) == [["constant"]]


@pytest.mark.parametrize(
    "tools",
    [
        ["x"],
        [{"function": "f"}],
        *([{"name": "f", "parameters": each}] for each in ("x", {"properties": ["a"]}, {"enum": 7})),
    ],
)
def test_a_schema_of_another_form_names_no_constant(tools: list[object]) -> None:
    assert kinds(traced({**trace(step(1, "f", a="nowhere else")), "tools": tools})[0]) == [["derived"]]


def test_choices_in_parts_of_a_schema_are_constants() -> None:
    unit = {"enum": ["celsius"]}
    properties = {
        "tags": {"type": "array", "items": {"enum": ["urgent"]}, "properties": None},
        "mode": {"anyOf": [{"enum": ["fastest"]}, {"type": "null"}]},
        "opt": {"properties": {"unit": unit, "sizes": {"default": [7000]}, "same": {"$ref": "#/$defs/Again"}}},
    }
    parameters = {
        "properties": properties,
        "$defs": {"Again": {"properties": {"same": {"$ref": "#/$defs/Again"}, "unit": unit}}},
    }
    opt = {"unit": "celsius", "sizes": [7000], "same": {"same": {"unit": "celsius"}}}
    call = step(1, "f", tags=["urgent"], mode="fastest", opt=opt)
    (task,) = traced({**trace(call), "tools": [{"function": {"name": "f", "parameters": parameters}}]})
    assert kinds(task) == [["constant"] * 5]
    (task,) = traced(
        {**trace(step(1, "f", mode="celsius", tags="fastest")), "tools": [{"name": "f", "parameters": parameters}]}
    )
    assert kinds(task) == [["derived"] * 2]


def test_a_choice_is_conditional_where_a_result_made_it_necessary() -> None:
    (task,) = traced(
        trace(
            step(1, "search", "Error: no such city", q="a"),
            step(2, "search", "[]", q="a"),
            step(3, "search", "a page", q="a"),
            step(4, "log", "", q="a"),
            step(5, "search", "a page", q="a"),
            question="a",
        )
    )
    choices = [each.choice for each in task.steps]
    assert choices == ["unconditional", "after an error", "after an empty result", "unconditional", "unconditional"]


def test_another_trial_that_went_on_otherwise_is_a_branch() -> None:
    first = trace(step(1, "a", q="x"), step(2, "b", q="x"), question="x")
    second = trace(step(1, "a", q="x"), step(2, "c", q="x"), question="x", trial=1)
    other = trace(step(1, "c", q="x"), question="x", task="u")
    one, two, three = traced(first, second, other)
    assert [each.choice for each in one.steps] == [each.choice for each in two.steps] == ["unconditional", "branch"]
    assert [each.choice for each in three.steps] == ["unconditional"]


LOOP = trace(
    step(1, "user", USER, id="mia"),
    step(2, "search", "HAT069 is free", city="Austin"),
    step(3, "book", "booked", flight="HAT069", card="card_77"),
    step(4, "mail", "sent", text="made up"),
    answer(5),
    question="mia",
)


def loop_of(task: TracedTask, *, answer: float = 10) -> Loop:
    """A loop of someone else's: 1,000 tokens before all prompts, 100 more with each turn, 20 tokens a reply."""
    turns = sorted({*task.segment_of_turn})
    inputs = [1_000 + 100 * place for place in range(len(turns))]
    outputs = [20.0] * (len(turns) - 1) + [answer]
    return Loop(turns, inputs, outputs, [0, *inputs[:-1]], [900] * len(turns), 0, is_bundled=False)


def calls_of(task: TracedTask, way: Way) -> tuple[list[str], int]:
    """The roles of what a way to plan asks models, and how many calls wait for each other."""
    found = planned(task, loop_of(task), way)
    return [each.role for each in found.sent], found.in_sequence


def test_a_plan_reads_what_it_cant_pass_on() -> None:
    (task,) = traced(LOOP)
    reads = [(read.turn, read.results) for read in planned(task, loop_of(task), "plan").reads]
    assert reads == [(2, (0,)), (3, (1,)), (3, (0,)), (4, (2,))]  # fields, HAT069 in a text, and what is made up
    assert calls_of(task, "plan") == (["planner", *["tool"] * 4, "solver"], 5)
    assert calls_of(task, "code") == (["planner", "tool", "tool", "solver"], 4)  # a program takes fields
    assert passed_on(task) == set()


def test_a_whole_result_is_passed_on_but_not_what_its_call_had_said() -> None:
    (task,) = traced(
        trace(step(1, "find", "X77", q="x"), step(2, "show", "X77", id="X77"), step(3, "pay", id="X77"), question="x")
    )
    assert passed_on(task) == {0}
    assert calls_of(task, "plan") == (["planner", "solver"], 2)


def test_a_plan_costs_what_its_calls_and_results_take() -> None:
    (task,) = traced(LOOP)
    sizes = default_sizes()["plan"]
    found = planned(task, loop_of(task, answer=33), "plan")
    planner, _, reader, *_, solver = found.sent
    assert planner.input == sizes.planner + 1_000  # the loop's own first prompt
    assert reader.input == sizes.reader + sizes.request + count_tokens("HAT069 is free")
    assert reader.output == sizes.read + count_tokens("HAT069")
    assert solver.output == 33
    (lean,) = planned(task, loop_of(task), "plan-unread").sent[-1:]
    read = count_tokens(USER) + count_tokens("HAT069 is free") + count_tokens("booked")
    other = default_sizes()["plan-unread"]
    shown = ((each.solver, each.shown + each.next_shown, each.shown_read) for each in (sizes, other))
    first, second = (head + 2 * calls + 4 * reads for head, calls, reads in shown)
    assert solver.input - lean.input == pytest.approx(read + first - second)


@pytest.mark.parametrize("value", ["/src/v1/2/secret.py", "weather in Oslo 5/6", "Who is John 3/4?", "10.0.0.0/8"])
def test_a_path_or_a_sentence_with_signs_is_no_sum(value: str) -> None:
    (task,) = traced(trace(step(1, "f", d=value), question="Look"))
    assert kinds(task) == [["derived"]]


def test_one_of_several_items_is_read_by_a_model_or_picked_by_a_program() -> None:
    flights = json.dumps([{"id": "HAT1", "day": "2024-05-20"}, {"id": "HAT2", "day": "2024-05-20"}])
    (task,) = traced(
        trace(step(1, "search", flights, q="x"), step(2, "book", id="HAT2", day="2024-05-20"), answer(3), question="x")
    )
    sources = [source.how for value in task.steps[1].values for source in value.copied_from(0)]
    assert sources == ["choice", "field"]  # all have that day
    assert calls_of(task, "plan") == (["planner", "tool", "solver"], 3)  # both are taken at once
    assert calls_of(task, "code") == (["planner", "solver"], 2)


def test_reads_of_a_turn_wait_for_nothing_of_that_turn() -> None:
    orders = json.dumps([{"order": f"ORD{n}1"} for n in range(1, 7)])
    five = [step(1, "list", orders, user="ann"), *(step(2, "order", "shipped", id=f"ORD{n}1") for n in range(1, 6))]
    lists = [step(1, "list", orders, user="ann"), step(1, "list", orders.replace("ORD", "RET"), user="bob")]
    two = [*lists, *(step(2, "order", "shipped", id=id_) for id_ in ("ORD21", "RET31"))]
    for steps, reads in ((five, 1), (two, 2)):  # of one list, and of two
        (task,) = traced(trace(*steps, answer(3), question="orders of ann and bob"))
        assert calls_of(task, "plan") == (["planner", *["tool"] * reads, "solver"], 3)


def test_a_sum_is_what_the_least_known_of_its_numbers_is() -> None:
    (task,) = traced(
        trace(
            step(1, "price", "1520", q="x"),
            step(2, "calculate", q="1520 + 4400"),
            step(3, "calculate", q="1520 * 2 + 7777"),
            step(4, "calculate", q="4400 / 3"),
            question="x, and 4400 more",
        )
    )
    assert kinds(task)[1:] == [["copied"], ["derived"], ["constant"]]


def test_a_plan_is_made_anew_after_an_error_and_a_program_goes_on() -> None:
    (task,) = traced(trace(step(1, "a", "no", failed=True, q="x"), step(2, "b", q="x"), answer(3), question="x"))
    assert calls_of(task, "plan") == (["planner", "planner", "solver"], 3)
    assert read_results(task) == {0}  # the error decided the next call
    assert calls_of(task, "code") == (["planner", "solver"], 2)


def test_each_turn_of_the_user_is_planned_alone_and_a_turn_without_calls_stays() -> None:
    (task,) = traced(
        trace(step(1, "a", q="x"), answer(2), step(3, "b", q="x"), answer(4), answer(5), question="x",
              turns=[{"before_step": 2, "text": "go on"}, {"before_step": 4, "text": "thanks"}])
    )  # fmt: skip
    found = planned(task, loop_of(task), "plan")
    assert [each.role for each in found.sent] == ["planner", "solver", "planner", "solver", "agent"]
    first, _, second, _, _ = found.sent
    assert (second.own, second.input - first.input) == (first.input, 200)  # two turns of the loop later


def messages(task: str) -> list[dict[str, Any]]:
    def call(id_: str, name: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "function": function}]}

    return [
        {"role": "system", "content": "Book flights. " * 400},
        {"role": "user", "content": f"I am user_{task}."},
        call("a", "user", id=f"user_{task}"),
        {"role": "tool", "tool_call_id": "a", "content": json.dumps({"card": f"card_{task}"})},
        call("b", "book", card=f"card_{task}"),
        {"role": "tool", "tool_call_id": "b", "content": "booked"},
        {"role": "assistant", "content": "Done."},
    ]


def run_of(folder: Path, records: list[Any]) -> Path:
    path = folder / "traces.json"
    path.write_text(json.dumps(records))
    return anyio.run(partial(import_run, [path], folder / "run", ImportChoices(agent="bot"))).folder


def test_amounts_of_the_loop_are_those_of_its_calls(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{"task_id": str(n), "messages": messages(str(n))} for n in range(5)])
    found = plannable(run, ["none", "openai"])
    assert found.calls["plannable"].all()
    assert found.calls["is_read"].tolist() == [True, False] * 5
    of = {way: rows.sort_values("example_id") for way, rows in found.tasks.groupby("way")}
    loop, plan = of["loop"], of["plan"]
    assert (loop["model_calls"].tolist(), plan["model_calls"].tolist()) == ([3] * 5, [3] * 5)
    calls = pq.read_table(run / "calls.parquet").to_pandas()
    tokens = calls[calls["kind"] == "model"].groupby("example_id")[["input_tokens", "output_tokens"]].sum()
    assert loop.set_index("example_id")[["input_tokens", "output_tokens"]].astype(int).equals(tokens.astype(int))
    usd = plan["input_tokens"] * 0.25e-6 + plan["output_tokens"] * 2e-6  # gpt-5-mini
    assert np.allclose(plan["usd:none"], usd)
    assert (plan["usd:openai"] < plan["usd:none"]).all()
    text = tables.text(found)
    assert "bot: 50% of the results had to be read by a model for a later call" in text
    assert "an estimate by the law of plan and loop (results/law.md), no measurement" in text
    amounts = dict(zip(*tables.ways_table(found, "bot")[:2], strict=True))
    assert amounts["$ / 1,000 tasks, no cache, gpt-5-mini"] == f"{1000 * loop['usd:none'].mean():.3f}"


def timed(task: str, *calls: tuple[float, int], model: str = "gpt-4o") -> dict[str, Any]:
    """A trace whose model calls took so many seconds for so many output tokens: it books, then answers."""
    did: list[tuple[str, dict[str, str], str]] = [
        ("user", {"id": f"user_{task}"}, json.dumps({"card": f"card_{task}"})),
        ("book", {"card": f"card_{task}"}, "booked"),
    ]
    now, observations = 1_700_000_000.0, []
    prompt: list[dict[str, Any]] = [{"role": "user", "content": f"I am user_{task}."}]
    for place, (seconds, tokens) in enumerate(calls):
        usage = {"input": 2_000 + 100 * place, "output": tokens}
        reply: dict[str, Any] = {"role": "assistant", "content": "Done."}
        found = []
        if place < len(did):
            tool, arguments, result = did[place]
            reply = asks(tool, json.dumps(arguments))
            found = [{"role": "tool", "tool_call_id": "a", "content": result}]
        facts = {"input": prompt, "output": reply, "usageDetails": usage, "model": model}
        observations.append(observation("GENERATION", (now, now + seconds), **facts))
        now += seconds
        prompt = [*prompt, reply, *found]
    return langfuse_trace(task, observations)


def test_each_trajectory_has_the_prices_of_its_model_where_sheets_have_all_of_them(tmp_path: Path) -> None:
    calls = (1.0, 30), (1.0, 60), (1.0, 10)
    models = ["gpt-4o-mini", "openai/gpt-4o-mini", "claude-sonnet-4-5"]
    run = run_of(tmp_path, [timed(str(n), *calls, model=model) for n, model in enumerate(models)])
    found = plannable(run)
    tasks = found.tasks[found.tasks["way"] == "loop"].sort_values("example_id")
    each, output = np.array([(0.15e-6, 0.6e-6), (0.15e-6, 0.6e-6), (3e-6, 15e-6)]).T
    usd = tasks["input_tokens"] * each + tasks["output_tokens"] * output
    assert tasks["usd:none"].tolist() == pytest.approx(usd.tolist())
    assert found.prices["none"] == "no cache, gpt-4o-mini and claude-sonnet-4-5"
    assert "each trajectory is priced at its own model's prices" in tables.notes(found)

    (tmp_path / "some").mkdir()
    unlisted = [timed(str(n), *calls, model=model) for n, model in enumerate(["gpt-4o-mini", "nobody/x"])]
    found = plannable(run_of(tmp_path / "some", unlisted))
    assert [*found.prices] == ["none", "openai", "anthropic-5m"]
    (note,) = [note for note in tables.notes(found) if "an example, since" in note]
    assert "no price of nobody/x is known: plannable --prices NAME" in note
    assert not any("an example, since" in note for note in tables.notes(plannable(run, ["openai"])))


def test_the_sentence_has_the_error_that_was_measured_and_says_what_is_left(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{"task_id": str(n), "messages": messages(str(n))} for n in range(12)])
    found = plannable(run, ["none"])
    (said,) = tables.verdicts(found, "bot")
    rows = [row for row in tables.against_loop(found, "bot").to_dict("records") if row["measure"] == "usd:none"]
    plan, _, program = rows
    assert f"a plan would cost {plan['ratio']:.2f} times what the loop costs" in said
    table = tables.errors().set_index("way")
    errors = table[table["measure"].str.startswith("usd:")]["took_per_predicted"]
    assert f"they took {errors.min():.2f} to {errors.max():.2f} times such an estimate" in said
    assert plan["high"] * errors["plan"].max() > 1 > program["high"] * errors["code"].max()
    assert said.endswith("with such an error and this interval the estimate shows a program cheaper than the loop.")


def test_files_have_the_words_of_the_terminal_and_the_measured_error(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{"task_id": "1", "messages": messages("1")}])
    calls = tmp_path / "calls.csv"
    args = ["plannable", str(run), "--format", "csv", "--calls", str(calls)]
    done = CliRunner().invoke(group, args, standalone_mode=False)
    assert done.stdout.endswith("\n")
    assert calls.read_text().endswith("\n")
    rows = pd.read_csv(io.StringIO(done.stdout))
    assert [*rows["way"].unique()] == ["plan", "lean plan", "program"]
    every = tables.errors()
    took = every[(every["way"] == "code") & (every["measure"] == "usd:none")]["took_per_predicted"]
    row = rows[(rows["way"] == "program") & (rows["measure"] == "usd:none")].iloc[0]
    assert [row["took_min"], row["took_max"]] == [took.min(), took.max()]
    as_json = CliRunner().invoke(group, ["plannable", str(run), "--format", "json"], standalone_mode=False)
    assert [each["way"] for each in json.loads(as_json.stdout, parse_constant=pytest.fail)] == rows["way"].tolist()


def test_what_lacks_tool_calls_or_traces_or_prices_is_refused(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    run = run_of(tmp_path, [{"messages": chat}])
    with pytest.raises(DataError, match="has no tool call of a loop"):
        plannable(run)
    with pytest.raises(UsageError, match="nosuch"):
        plannable(run, ["nosuch"])
    (run / "traces.jsonl").unlink()
    with pytest.raises(DataError, match=r"has no traces.jsonl"):
        plannable(run)


def test_a_sample_is_of_whole_tasks_and_is_said(tmp_path: Path) -> None:
    records = [{"task_id": str(n), "trial": trial, "messages": messages(str(n))} for n in range(6) for trial in (0, 1)]
    run = run_of(tmp_path, records)
    everything, some = plannable(run), plannable(run, most=5)
    trials = some.calls.groupby("example_id")["trial"].nunique()
    assert trials.tolist() == [2, 2]
    assert some.left_out == {"bot in tasks outside the random sample that was read": 8}
    assert "left out: bot in tasks outside the random sample that was read: 8" in tables.text(some)
    assert plannable(run, most=5).calls.equals(some.calls)
    assert plannable(run, most=12).calls.equals(everything.calls)
    assert plannable(run, most=1).calls["example_id"].nunique() == 1


def test_a_figure_of_what_is_saved(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{"task_id": str(n), "messages": messages(str(n))} for n in range(5)])
    file = tmp_path / "figure.svg"
    with pytest.raises(SystemExit) as done:
        main(["plannable", str(run), "--plot", str(file)])
    assert done.value.code == 0
    assert file.read_bytes().startswith(b"<?xml")
    with pytest.raises(UsageError, match=r"expected a name that ends in png or svg"):
        save_planned(plannable(run), tmp_path / "figure.pdf")


def test_tau_bench(real_data: RealData, tmp_path: Path) -> None:
    path = real_data(TAU_BENCH)
    done = anyio.run(partial(import_run, [path], tmp_path / "run", ImportChoices(agent="gpt-4o")))
    assert (done.rows, done.unreadable) == (100, 0)
    found = plannable(done.folder)
    assert len(found.calls) == sum(
        len(message.get("tool_calls") or ())
        for record in json.loads(path.read_text())
        for message in record["traj"]
        if message["role"] == "assistant"
    )
    assert 0.6 < found.calls["plannable"].mean() < 0.8
    derived = found.calls[found.calls["derived"] > 0]["tool"].value_counts()
    assert set(derived.index[:2]) == {"think", "transfer_to_human_agents"}


def test_a_planner_of_the_same_run_takes_the_place_of_the_estimate(tmp_path: Path) -> None:
    run = bench("react,rewoo", out=tmp_path / "run", questions=6, model="oracle", progress=False).folder
    text = tables.text(plannable(run))
    assert "by the law" not in text
    for line in compare(run).verdicts:
        assert line in text


def test_an_architecture_without_a_tool_call_is_left_out_and_said(tmp_path: Path) -> None:
    run = bench("react,direct", out=tmp_path / "run", questions=4, trials=2, model="oracle", progress=False).folder
    found = plannable(run)
    assert found.architectures() == ["react"]
    assert found.left_out == {"direct made no tool call": 8}
    *_, said = tables.text(found).splitlines()
    assert said == "left out: direct made no tool call: 8"
    alone = bench("direct", out=tmp_path / "alone", questions=4, model="oracle", progress=False).folder
    with pytest.raises(DataError, match=r"no tool call of a loop that can be judged \(direct made no tool call: 4\)"):
        plannable(alone)


def test_amounts_of_a_task_are_means_of_tasks_as_their_savings_are(tmp_path: Path) -> None:
    trials = [{"task_id": "1", "trial": trial, "messages": messages("1")} for trial in range(3)]
    long = messages("2")
    long[1]["content"] += " I like to fly by day." * 200
    found = plannable(run_of(tmp_path, [*trials, {"task_id": "2", "messages": long}]), ["none"])
    loop = found.tasks[found.tasks["way"] == "loop"].groupby("example_id")["input_tokens"].mean()
    assert len(found.tasks) == 4 * 4  # the loop and three ways to plan
    assert loop["2"] > 1.2 * loop["1"]
    amounts = dict(zip(*tables.ways_table(found, "bot")[:2], strict=True))
    assert amounts["tokens in"] == f"{loop.mean():,.0f}"
    rows = tables.against_loop(found, "bot")
    row = rows[(rows["measure"] == "input_tokens") & (rows["way"] == "plan")].iloc[0]
    assert row["loop"] == pytest.approx(loop.mean())
    assert row["ratio"] == pytest.approx(row["planned"] / row["loop"])
