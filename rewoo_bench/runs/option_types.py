"""What there is to say about an option of a run, the types of its values, and the check of all of them.

check_options(options)      # UsageError("--trials 0: it should be greater than or equal to 1")

Pydantic is imported when options are checked: a help text needs none, and is written before pydantic has loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from rewoo_bench.errors import UsageError, unknown

if TYPE_CHECKING:
    from pydantic import TypeAdapter


MOST = 2**31 - 1  # a typing error beyond: the tables' counts are 32-bit
SHORT_NAMES = "none, openai, anthropic-5m, anthropic-1h, gemini, deepseek, vllm, llama.cpp"
"""Those of `price_sheets.SHORT_PRICES`, which takes longer to import than a help text may take."""
PRICE_FORMS = (
    f"a short name of a model's price and its cache rule ({SHORT_NAMES}), a sheet of `rewoo-bench list --prices`, one "
    "model of it (SHEET:MODEL), or a file of your own (sheet.toml[:MODEL])"
)
"""What every `--prices` takes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a number, by the names of pydantic."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        named = {"ge": self.ge, "gt": self.gt, "le": self.le, "lt": self.lt}
        return {**handler(source), **{name: bound for name, bound in named.items() if bound is not None}}


Count = Annotated[int, Bounds(ge=1, le=MOST)]
CountOrZero = Annotated[int, Bounds(ge=0, le=MOST)]
Seed = Annotated[int, Bounds(ge=-(2**63), lt=2**63)]
Trials = Annotated[int, Bounds(ge=1, le=10_000)]
Amount = Annotated[float, Bounds(gt=0)]
NonNegative = Annotated[float, Bounds(ge=0)]
Share = Annotated[float, Bounds(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class OptionRole:
    """Where two runs, or two sessions of a run, must have the same value of an option.

    The default is for an option that repeats facts of the manifest (data set, architectures, models).
    """

    resume: bool = True
    """A resumed run keeps the value: another one is refused."""
    addable: bool = False
    """A resumed run may have a value where it had none: it changes no request."""
    compare: Literal["refuse", "note"] | None = None
    """A comparison refuses two runs with different values, or notes the difference."""
    baseline: bool = False
    """The gate refuses a baseline with another value."""
    claims: bool = False
    """Runs with different values are in different run groups of claims."""
    saved: bool = True
    """Whether the manifest has it."""


FACT = OptionRole()
ANSWERS = OptionRole(compare="note", baseline=True, claims=True)  # changes what models are asked or what they answer
SESSION = OptionRole(resume=False)  # changes no answer, so each session may choose
UNSAVED = OptionRole(resume=False, saved=False)  # paths of output, and what is shown


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a run, as a flag, a keyword, and a key of run.toml and run.json."""

    help: str
    group: str
    """Heading in `run --help`."""
    role: OptionRole = FACT
    flags: tuple[str, ...] = ()
    """Flags with another name than the option's."""
    metavar: str | None = None
    completion: str = ""
    """A function of `cli/flag_types.py`."""
    reader: str = ""
    """A type or callback of `cli/flag_types.py`, for a flag whose text is more than one value of the option's type."""
    name: str = ""
    type: Any = str
    default: Any = None

    @property
    def flag(self) -> str:
        """The flag, as messages name it."""
        return self.flags[-1] if self.flags else f"--{self.name.replace('_', '-')}"


def option(default: Any = MISSING, *, help: str, group: str, role: OptionRole = FACT, **more: Any) -> Any:
    """A field of a dataclass of options; `more` are other fields of `Option`."""
    return field(default=default, metadata={"option": Option(help, group, role, **more)})


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """The options of a dataclass, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        each.name: replace(each.metadata["option"], name=each.name, type=hints[each.name], default=each.default)
        for each in fields(kind)
    }


def check_options(options: Any) -> None:
    """Raises `UsageError` for the first option whose value is of another type or out of its range."""
    from pydantic import ValidationError

    known = options_of(options.__class__)
    for name, adapter in _adapters(options.__class__).items():
        value = getattr(options, name)
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            message = error.errors()[0]["msg"].replace("Input should be", "it should be")
            raise UsageError(f"{known[name].flag} {value}: {message}") from None
    if not options.architectures:
        raise UsageError("--arch: no architecture given")
    if options.api_base == "":
        raise UsageError("--api-base: '' is no address; write http://… or https://…")
    for name, value in json_object(options.extra_body, "--extra-body").items():
        if value is None and name not in DROPPABLE:
            raise UsageError(f"--extra-body: {unknown('parameter', name, DROPPABLE)}")
        if value is not None and name in _OWN_FIELDS:
            raise UsageError(f"--extra-body: {name!r} is set by {_OWN_FIELDS[name]}")
    amounts = json_object(options.worker_resources, "--worker-resources", '{"GPU": 1}').values()
    if not all(type(each) in (int, float) and each >= 0 for each in amounts):
        raise UsageError(f"--worker-resources {options.worker_resources}: expected amounts such as '{{\"GPU\": 1}}'")
    if options.worker_resources is not None and options.engine != "ray":
        raise UsageError("--worker-resources: it needs --workers")
    most_failed = options.fail_on_error
    if isinstance(most_failed, float) and most_failed > 1 and not most_failed.is_integer():
        raise UsageError(
            f"--fail-on-error {most_failed}: it should be a count (0, 1, 2, …) or a fraction between 0 and 1"
        )


DROPPABLE = (
    *("temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens", "tools", "response_format"),
    *("grammar", "json_schema", "reasoning_effort", "cache_control", "system"),
)
"""What a null in `--extra-body` may leave out of each request."""
_OWN_FIELDS = dict.fromkeys(("messages", "prompt", "stream", "n", "tools", "stop"), "the harness itself") | {
    "model": "--model",
    "temperature": "--temperature",
    "seed": "--seed",
    "max_tokens": "--reply-tokens",
    "max_completion_tokens": "--reply-tokens",
    "reasoning_effort": "--reasoning-effort",
}


def json_object(text: str | None, flag: str, example: str = '{"top_p": 0.9}') -> dict[str, Any]:
    """The JSON object of an option, empty for None. Raises `UsageError`."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"{flag} {text}: it should be a JSON object such as '{example}'")
    return found


@cache
def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(allow_inf_nan=False)
    return {name: TypeAdapter(each.type, config=config) for name, each in options_of(kind).items()}
