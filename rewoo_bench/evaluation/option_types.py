"""What values the options of a run can have, and the one line that says so.

check_options(options)      # UsageError("--trials 0: it should be greater than or equal to 1")
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from rewoo_bench.errors import UsageError

if TYPE_CHECKING:
    from rewoo_bench.evaluation.options import RunOptions

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AmountOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
_FLAGS = {"architectures": "--arch", "drop_params": "--drop-param", "progress": "--no-progress"}


def check_options(options: RunOptions) -> None:
    """Raises `UsageError` for the first option whose value is of another type or out of its range."""
    for name, adapter in _adapters().items():
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
def _adapters() -> dict[str, TypeAdapter[Any]]:
    from rewoo_bench.evaluation.options import RunOptions

    hints = get_type_hints(RunOptions, include_extras=True)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}
