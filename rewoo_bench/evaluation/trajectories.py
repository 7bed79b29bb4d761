"""Checks a runner's return value, since the tables have types."""

from __future__ import annotations

from typing import get_args

from rewoo_bench.types import Step, StopReason, Trajectory

_STOP_REASONS = frozenset(get_args(StopReason))


def check_trajectory(value: object) -> Trajectory:
    """The trajectory. Raises `TypeError` or `ValueError` with the field that no table can hold."""
    if not isinstance(value, Trajectory):
        raise TypeError(f"answered with {type(value).__name__}, expected a Trajectory")
    if not (value.answer is None or isinstance(value.answer, str)):
        raise TypeError(f"answer is {type(value.answer).__name__}, expected text or None")
    if value.stop_reason not in _STOP_REASONS:
        raise ValueError(f"stop_reason is {value.stop_reason!r}, expected one of {', '.join(sorted(_STOP_REASONS))}")
    if type(value.replans) is not int or not 0 <= value.replans < 2**31:
        raise TypeError(f"replans is {value.replans!r}, expected a count")
    if not all(isinstance(step, Step) for step in value.steps):
        raise TypeError("steps has something that is no Step")
    return value


def agent_error(trajectory: Trajectory) -> str | None:
    """The reason for which an external agent gave no answer: the row's `error`."""
    error = trajectory.notes.get("error") if trajectory.answer is None else None
    return error if isinstance(error, str) else None
