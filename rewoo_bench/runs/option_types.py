"""What values an option of a run can have, and where it matters that two runs have the same one.

check_options(options)      # UsageError("--trials 0: it should be greater than or equal to 1")
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from rewoo_bench.errors import UsageError

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AmountOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Matters:
    """Where it matters that two runs, or two sessions of one, have the same value of an option.

    The default is an option that says again what the manifest's facts say (data set, architectures, models).
    """

    resume: bool = True
    """A resumed run keeps it: another value is refused."""
    compare: Literal["refuse", "note"] | None = None
    """Two runs with different values aren't compared, or the comparison names the difference."""
    baseline: bool = False
    """The gate doesn't compare a run with a baseline of another value."""
    claims: bool = False
    """Two runs with different values are no common evidence for a claim."""
    saved: bool = True
    """The manifest has it."""


FACT = Matters()
ANSWERS = Matters(compare="note", baseline=True, claims=True)  # changes what models are asked or what they answer
SESSION = Matters(resume=False)  # changes no answer; each session may choose
PLACE = Matters(resume=False, saved=False)  # where files are and what is shown

_FLAGS = {"architectures": "--arch", "drop_params": "--drop-param", "progress": "--no-progress"}


def check_options(options: Any) -> None:
    """Raises `UsageError` for the first option whose value is of another type or out of its range."""
    for name, adapter in _adapters(options.__class__).items():
        value = getattr(options, name)
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            said = error.errors()[0]["msg"].replace("Input should be", "it should be")
            raise UsageError(f"{flag_of(name)} {value}: {said}") from None
    if isinstance(options.fail_on_error, float) and not _is_count_or_share(options.fail_on_error):
        raise UsageError(
            f"--fail-on-error {options.fail_on_error}: it should be a count (0, 1, 2, …) or a fraction between 0 and 1"
        )


def flag_of(name: str) -> str:
    """The command's flag for an option."""
    return _FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _is_count_or_share(value: float) -> bool:
    return 0 <= value <= 1 or (value > 1 and value.is_integer())


@cache
def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}


@cache
def matters_of(kind: type) -> dict[str, Matters]:
    """Option -> where it matters, as the fields of `kind` are annotated."""
    hints = get_type_hints(kind, include_extras=True)
    marks = {
        name: [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Matters)]
        for name, hint in hints.items()
    }
    return {name: found[0] if found else FACT for name, found in marks.items()}
