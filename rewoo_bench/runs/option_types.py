"""The values that an option of a run can have, and where two runs must have the same value.

check_options(options)      # UsageError("--trials 0: it should be greater than or equal to 1")
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from rewoo_bench.errors import UsageError

MOST = 2**31 - 1  # a typing error beyond: the tables' counts are 32-bit
Count = Annotated[int, Field(ge=1, le=MOST)]
CountOrNone = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Trials = Annotated[int, Field(ge=1, le=10_000)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AmountOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Matters:
    """Where two runs, or two sessions of a run, must have the same value of an option.

    The default is for an option that repeats facts of the manifest (data set, architectures, models).
    """

    resume: bool = True
    """A resumed run keeps the value: another one is refused."""
    compare: Literal["refuse", "note"] | None = None
    """A comparison refuses two runs with different values, or notes the difference."""
    baseline: bool = False
    """The gate refuses a baseline with another value."""
    claims: bool = False
    """Runs with different values are in different run groups of claims."""
    saved: bool = True
    """Whether the manifest has it."""


FACT = Matters()
ANSWERS = Matters(compare="note", baseline=True, claims=True)  # changes what models are asked or what they answer
SESSION = Matters(resume=False)  # changes no answer, so each session may choose
UNSAVED = Matters(resume=False, saved=False)  # paths of output, and what is shown

_FLAGS = {
    "architectures": "--arch",
    "drop_params": "--drop-param",
    "question_types": "--type",
    "progress": "--no-progress",
}


def check_options(options: Any) -> None:
    """Raises `UsageError` for the first option whose value is of another type or out of its range."""
    for name, adapter in _adapters(options.__class__).items():
        value = getattr(options, name)
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            message = error.errors()[0]["msg"].replace("Input should be", "it should be")
            raise UsageError(f"{flag_of(name)} {value}: {message}") from None
    if not options.architectures:
        raise UsageError("--arch: no architecture given")
    if options.api_base == "":
        raise UsageError("--api-base: '' is no address; write http://… or https://…")
    if options.extra_body is not None and not _is_json_object(options.extra_body):
        raise UsageError(f"--extra-body {options.extra_body}: it should be a JSON object such as '{{\"top_p\": 0.9}}'")
    _check_engine(options)
    if isinstance(options.fail_on_error, float) and not _is_count_or_share(options.fail_on_error):
        raise UsageError(
            f"--fail-on-error {options.fail_on_error}: it should be a count (0, 1, 2, …) or a fraction between 0 and 1"
        )


def _check_engine(options: Any) -> None:
    """Raises `UsageError` for flags of Ray without `--engine ray`, and for resources that are no amounts."""
    if options.engine != "ray":
        for name in ("workers", "ray_address", "worker_resources"):
            if getattr(options, name) is not None:
                raise UsageError(f"{flag_of(name)}: it needs --engine ray")
    wanted = options.worker_resources
    if wanted is None:
        return
    amounts: Any = json.loads(wanted).values() if _is_json_object(wanted) else [None]
    if not all(type(amount) in (int, float) and amount >= 0 for amount in amounts):
        raise UsageError(f"--worker-resources {wanted}: it should be a JSON object of amounts such as '{{\"GPU\": 1}}'")


def flag_of(name: str) -> str:
    """The command's flag for an option."""
    return _FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_count_or_share(value: float) -> bool:
    return 0 <= value <= 1 or (value > 1 and value.is_integer())


@cache
def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}


@cache
def matters_of(kind: type) -> dict[str, Matters]:
    """Option -> where it matters, from the annotations of `kind`."""
    hints = get_type_hints(kind, include_extras=True)
    marks = {
        name: [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Matters)]
        for name, hint in hints.items()
    }
    return {name: own[0] if own else FACT for name, own in marks.items()}
