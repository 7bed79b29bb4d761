"""What a runner returned, checked: the tables hold only what they have types for."""

from __future__ import annotations

from typing import get_args

from rewoo_bench.types import Step, StopReason, Trajectory

_STOP_REASONS = frozenset(get_args(StopReason))


def check_trajectory(found: object) -> Trajectory:
    """The trajectory. Raises `TypeError` or `ValueError`, naming the field that can't be written down."""
    if not isinstance(found, Trajectory):
        raise TypeError(f"answered with {type(found).__name__}, expected a Trajectory")
    if not (found.answer is None or isinstance(found.answer, str)):
        raise TypeError(f"answer is {type(found.answer).__name__}, expected text or None")
    if found.stop_reason not in _STOP_REASONS:
        raise ValueError(f"stop_reason is {found.stop_reason!r}, expected one of {', '.join(sorted(_STOP_REASONS))}")
    if type(found.replans) is not int or not 0 <= found.replans < 2**31:
        raise TypeError(f"replans is {found.replans!r}, expected a count")
    if not all(isinstance(step, Step) for step in found.steps):
        raise TypeError("steps has something that is no Step")
    return found
