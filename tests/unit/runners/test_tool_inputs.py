"""Tools with several inputs, none, or others than text: every architecture sees their schema, and reads its forms."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

import pytest
from gbnf import fits
from hypothesis import assume, given
from hypothesis import strategies as st
from parts import Told, toolbox
from pydantic import BaseModel, ConfigDict, create_model

from rewoo_bench.runners.notation import schemas
from rewoo_bench.runners.notation.grammars import action_grammar, numbered_grammar, plan_grammar, plan_schema
from rewoo_bench.runners.notation.plan_checks import read_checked
from rewoo_bench.runners.notation.plan_formats import Notation
from rewoo_bench.runners.notation.replies import parse_action
from rewoo_bench.runners.notation.tools import describe_functions, describe_tools
from rewoo_bench.tools.mcp import McpTool, ToolSchema
from rewoo_bench.types import Tool

NUMBER, TEXT = {"type": "number"}, {"type": "string"}
EDIT = {"type": "object", "properties": {"old": TEXT, "new": TEXT}, "required": ["old", "new"]}


def served(name: str, properties: dict[str, Any], required: list[str], **more: Any) -> Tool:
    """A tool of an MCP server."""
    schema = {"type": "object", "properties": properties, "required": required, **more}
    return McpTool(None, ToolSchema(name, f"does {name}.", schema), name)  # type: ignore[arg-type]


TOOLS = toolbox(
    Told(),
    served("get_sum", {"a": {**NUMBER, "description": "First"}, "b": NUMBER}, ["a", "b"]),
    served("population", {"year": {"type": "integer", "default": 2020}, "city": TEXT}, ["city"]),
    served("read_graph", {}, []),
    served("web-search", {"q": TEXT}, ["q"]),
    served("fs.read", {"path": TEXT, "head": {"type": "integer", "minimum": 1}}, ["path"]),
    served(
        "ns/edit",
        {
            "path": TEXT,
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
            "mode": {"enum": ["dry", "real"]},
            "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        ["path", "edits"],
        **{"$defs": {"Edit": EDIT}},
    ),
    served("open", {"names": {"type": "array", "items": TEXT}}, ["names"]),
)


def read(call: str, notation: Notation = "text") -> Any:
    """The arguments of a call in a plan between two others; its fault where it has one."""
    opening = call.index("[") if "[" in call else call.index("(")
    task = f"{call[:opening]}({call[opening + 1 : -1]})".replace("#E1", "$1")
    text = f"Plan: a\n#E1 = Search[a]\nPlan: b\n#E2 = {call}\nPlan: c\n#E3 = Search[#E2]"
    numbered = f'1. Search("a")\n2. {task}\n3. Search("$2")\n4. join()'
    plan, faults, _ = read_checked(text if notation == "text" else numbered, notation, TOOLS, 8)
    assert plan is not None
    assert [step.id for step in plan.steps] == ["E1", "E2", "E3"]
    return faults[0] if faults else plan.steps[1].args


@pytest.mark.parametrize("notation", ["text", "numbered"])
@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        *(
            (f"get_sum[{written}]", {"a": 2, "b": 3.5})
            for written in ("2, 3.5", "a=2, b=3.5", "a: 2, b: 3.5", "b = 3.5, a = 2")
        ),
        ('get_sum[{"a": 2, "b": 3.5}]', {"a": 2, "b": 3.5}),
        ("get_sum[#E1, 3]", {"a": "{{E1}}", "b": 3}),
        ('get_sum[{"a": #E1, "b": 3}]', {"a": "{{E1}}", "b": 3}),
        ("population[Kyiv]", {"city": "Kyiv"}),
        ('population["Kyiv", 2020]', {"city": "Kyiv", "year": 2020}),
        ("population[city=New York, NY, year=2020]", {"city": "New York, NY", "year": 2020}),
        ("population[Kyiv, 2020]", {"city": "Kyiv", "year": 2020}),
        ("read_graph[]", {}),
        ("web-search[Kyiv, 10:30]", "Kyiv, 10:30"),
        ("fs.read[path=/a/b.txt, head=3]", {"path": "/a/b.txt", "head": 3}),
        (
            'ns/edit[path="a ] b.txt", edits=[{"old": "it\'s [x", "new": "#E1, y"}], mode=dry, size=null]',
            {"path": "a ] b.txt", "edits": [{"old": "it's [x", "new": "{{E1}}, y"}], "mode": "dry", "size": None},
        ),
        ('open[["a", "b"]]', {"names": ["a", "b"]}),
    ],
)  # fmt: skip
def test_inputs_are_read_by_position_by_name_and_as_json(call: str, arguments: Any, notation: Notation) -> None:
    assert read(call, notation) == arguments
    action = parse_action(f"Thought: x\nAction: {call}", TOOLS)
    assert json.loads(json.dumps(action.arguments).replace("#E1", "{{E1}}")) == arguments


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("get_sum[2]", "'b' is missing; it is called as get_sum[a: number, b: number]"),
        ("get_sum[2, x]", "b: 'x' is not of the type number"),
        ("fs.read[path=a, path=b]", "'path' is given twice; it is called as fs.read[path: string, head?: integer]"),
        ("fs.read[path=a, tail=3]", "there is no field 'tail'; the fields are: path, head"),
        ('ns/edit["a", [{"old": "x"}]]', "edits[0]: 'new' is missing"),
        ('ns/edit["a", [], "wet"]', 'mode: \'wet\' is none of: "dry", "real"'),
    ],
)
def test_what_leaves_doubt_is_a_fault_that_names_the_form(call: str, fault: str) -> None:
    assert fault in read(call)


@pytest.mark.parametrize(
    ("notation", "lines"),
    [
        (
            "text",
            [
                "Search[query]: finds a page.",
                "get_sum[a: number (First), b: number]: does get_sum.",
                "population[city: string, year?: integer = 2020]: does population.",
                "read_graph[]: does read_graph.",
                'ns/edit[path: string, edits: [{old: string, new: string}], mode?: "dry" | "real", '
                "size?: integer | null]: does ns/edit.",
            ],
        ),
        ("numbered", ["Search(query): finds a page.", "read_graph(): does read_graph."]),
        ("json", ['Search {"query": string}: finds a page.', 'open {"names": [string]}: does open.']),
    ],
)  # fmt: skip
def test_every_notation_shows_the_facts_of_the_schema(notation: Notation, lines: list[str]) -> None:
    assert set(lines) <= set(describe_tools(TOOLS, notation).splitlines())


def test_constrained_decoding_allows_the_named_forms() -> None:
    plan = plan_grammar(TOOLS, 2)
    second = 'Plan: b\n#E2 = ns/edit[path="a #E1", edits=[{"old": "[x]", "new": "#E1"}, #E1], mode="dry"]'
    assert fits(plan, f"Plan: a\n#E1 = get_sum[a=2, b=-3.5]\n{second}")
    assert fits(plan, "Plan: a\n#E1 = read_graph[]\nPlan: b\n#E2 = get_sum[a=#E1, b=1]")
    assert not fits(plan, "Plan: a\n#E1 = get_sum[a=#E1, b=1]")
    assert fits(numbered_grammar(TOOLS, 2), '1. population(city="Kyiv")\n2. get_sum(a=$1, b=1)\n3. join()')
    assert fits(action_grammar({**TOOLS, "Finish": None}), 'Thought: x\nAction: open[names=["a", "b"]]')


def test_a_plans_schema_has_each_tools_own_with_what_it_refers_to() -> None:
    other = served("other", {"x": {"$ref": "#/$defs/Edit"}}, ["x"], **{"$defs": {"Edit": NUMBER}})
    schema = plan_schema({**TOOLS, "other": other}, 3)
    edit, odd = (
        schema["properties"]["steps"]["items"]["anyOf"][at]["properties"]["args"]["properties"] for at in (6, -1)
    )
    assert edit["edits"]["anyOf"][0]["items"] == EDIT
    assert edit["mode"]["anyOf"][0] == {"enum": ["dry", "real"]}
    assert odd["x"]["anyOf"][0] == NUMBER


@pytest.mark.parametrize(
    "hostile",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]},
        {"$ref": "https://example.org/schema"},
        {"type": ["weird", 3]},
        {"enum": "a", "properties": [], "items": [1], "required": 7, "minimum": "x", "type": "object"},
        True,
        None,
    ],
)
def test_a_schema_that_is_none_or_never_ends_is_left_to_the_tool(hostile: Any) -> None:
    tool = served("odd", {"x": hostile, "y": TEXT}, ["y"])
    tools = {"odd": tool}
    describe_tools(tools), plan_grammar(tools, 2), plan_schema(tools, 2)
    read_checked('#E1 = odd[{"x": {"x": [1, {"x": 2}]}, "y": "a"}]', "text", tools, 2)
    assert tool.arguments.model_validate({"y": "a"})


class Kind(StrEnum):
    RIVER = "river"
    CITY = "city, town"


class Point(BaseModel):
    x: float
    label: str = ""


TEXTS = st.text(st.sampled_from("ab,=:[]{}()'\"\\ é1") | st.characters(exclude_categories=["Cs"]), max_size=8)
FIELDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "text": (str, TEXTS),
    "number": (float, st.floats(allow_nan=False, allow_infinity=False)),
    "whole": (int, st.integers(-(10**9), 10**9)),
    "flag": (bool, st.booleans()),
    "kind": (Kind, st.sampled_from(["river", "city, town"])),
    "words": (list[str], st.lists(TEXTS, max_size=3)),
    "point": (Point, st.fixed_dictionaries({"x": st.integers(-9, 9)}, optional={"label": TEXTS})),
    "either": (int | str, st.integers(0, 9) | st.sampled_from(["a", "b c"])),
}
NAMES = st.lists(st.sampled_from(sorted(FIELDS)), min_size=2, max_size=4, unique=True)


def tool_of(names: list[str], optional: int = 0) -> Tool:
    """A tool with inputs of these kinds, the last ones of which may be left out."""
    kinds: dict[str, Any] = {
        name: (FIELDS[name][0], ... if number < len(names) - optional else None) for number, name in enumerate(names)
    }
    config = ConfigDict(extra="forbid")
    return Told(name="some-tool", arguments=create_model("Some", __config__=config, **kinds))


@pytest.mark.by_day(3)
@pytest.mark.parametrize("form", ["json", "named"])
@pytest.mark.parametrize("notation", ["text", "numbered"])
@given(names=NAMES, data=st.data())
def test_what_is_written_in_any_form_is_read_back(
    notation: Notation, form: str, names: list[str], data: st.DataObject
) -> None:
    tool = tool_of(names)
    values = {name: data.draw(FIELDS[name][1], label=name) for name in names}
    literals = {name: json.dumps(value, ensure_ascii=data.draw(st.booleans())) for name, value in values.items()}
    if form == "json":
        written = json.dumps(values)
    else:
        mark = data.draw(st.sampled_from(["=", ": ", " = "]))
        written = ", ".join(f"{name}{mark}{literal}" for name, literal in literals.items())
    assume(not re.search(r"#E\d|\$\d", written))  # texts that are references
    text = f"#E1 = some-tool[{written}]" if notation == "text" else f"1. some-tool({written})\n2. join()"
    plan, faults, _ = read_checked(text.replace("\r", " "), notation, {tool.name: tool}, 2)
    assert faults == []
    assert plan is not None
    if "\r" not in text and "#E" not in text and "{E" not in text and not (notation == "numbered" and "$" in text):
        assert plan.steps[0].args == values


def test_a_number_that_a_step_found_is_converted() -> None:
    schema = schemas.plain_schema(
        {"type": "object", "properties": {"n": NUMBER, "items": {"type": "array", "items": NUMBER}, "t": TEXT}}
    )
    assert schemas.convert(schema, {"n": "42", "items": "[1, 2]", "t": "7"}) == {"n": 42, "items": [1, 2], "t": "7"}


def test_a_function_of_a_program_has_the_names_and_types_that_python_takes() -> None:
    properties = {
        "class": {"enum": ["it's", 'a "b"', None]},
        "from-city": {"$ref": "#/$defs/City"},
        "naïve": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "none": {"enum": [], "description": 'any\n"""value"""'},
        "code": {**TEXT, "default": "a\n'b'", "pattern": "a\nb"},
    }
    tool = served("ns/find it", properties, ["class", "from-city"], **{"$defs": {"City": EDIT}})
    assert describe_functions({tool.name: tool}) == (
        """async def ns_find_it(class_tool: Literal["it's", 'a "b"', None], from_city: dict, """
        r"""na_ve: int | None = None, none: Any = None, code: str = "a\n'b'") -> str: ...  # does ns/find it. """
        r'''(none: any """value"""; code: pattern a\nb)'''
    )
