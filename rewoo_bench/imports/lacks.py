"""What recorded trajectories lack, and what follows from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewoo_bench.imports.record import RecordedTrajectory, ToolUse
from rewoo_bench.text.model_output import RAW_ARGUMENTS

MISSING: Mapping[str, str] = {
    "texts": "written without texts: arguments of tools aren't known, so `plannable` can't judge these traces",
    "arguments": "arguments of tools weren't recorded: `plannable` can't judge such traces",
    "said": "what the user said wasn't recorded: `plannable` can't judge such traces",
    "usage": "no tokens were recorded: they are counted with a tokenizer, and marked as estimated",
    "calls": "of some tasks only requests were recorded, without replies: their model calls aren't counted",
    "replies": "some replies weren't recorded: the tokens of their texts aren't counted",
    "shares": "tokens are known of each trajectory: its calls have estimated shares of them, by a tokenizer",
    "prompts": "prompts weren't recorded: what a cache would have held of them isn't known, so no cache is priced",
    "tools": "the tools' schemas weren't recorded: each prompt had more tokens than are counted here",
    "roles": "some messages have a role that isn't known: they count as a tool's result or as said by the user",
    "times": "times weren't recorded: there is no latency, and every prefix counts as still in the cache",
    "times of unknown prompts": "times weren't recorded: there is no latency",
    "tool times": "when tools ran wasn't recorded: their calls have no latency, those of models do",
    "solved": "nobody says whether tasks were solved: there is no accuracy",
    "results": "results of tools weren't recorded",
    "attacks": "the package agentdojo isn't installed or doesn't know the attacks: a call with words that only the "
    "attacker's text has counts as the attacker's",
}
"""What a format may lack, and what follows from that."""
NOT_JSON = "calls whose arguments aren't JSON"
_TEXTS = {"arguments", "said", "replies", "prompts", "tools", "results"}


def said_of(name: str, *, is_all_read: bool) -> str:
    """The sentence of `MISSING`. Where a record has texts that weren't read, what is missing may be among them."""
    return MISSING[name] if is_all_read or name not in _TEXTS else MISSING[name].replace("n't recorded", "n't found")


def lacks_arguments(recorded: RecordedTrajectory) -> bool:
    return any(isinstance(event, ToolUse) and event.arguments is None for event in recorded.events)


def lacks_of(recorded: RecordedTrajectory) -> Iterator[str]:
    """Which of `MISSING` a trajectory lacks; and `NOT_JSON` for each call that has it."""
    calls = list(recorded.calls)
    uses = [event for event in recorded.events if isinstance(event, ToolUse)]
    is_estimated = any(call.is_counted for call in calls)
    has_times = not any(call.times is None for call in calls) and bool(calls or any(use.times for use in uses))
    lacks_prompts = any(call.messages is None for call in calls)
    are_unknown = lacks_arguments(recorded) and not recorded.is_without_texts
    is_task_known = bool(recorded.question or recorded.system) or recorded.is_without_texts
    found = {
        "texts": recorded.is_without_texts,
        "arguments": are_unknown,
        "said": bool(uses) and not is_task_known and not are_unknown,
        "calls": not recorded.events,
        "replies": any(call.messages and call.usage is None and not (call.reply or call.tool_calls) for call in calls),
        "shares": recorded.usage is not None,
        "usage": is_estimated and recorded.usage is None,
        "prompts": lacks_prompts,
        "tools": bool(uses) and not any(call.tools for call in calls) and is_estimated and recorded.usage is None,
        "roles": "unknown_roles" in recorded.notes,
        "times": not has_times and not lacks_prompts,
        "times of unknown prompts": not has_times and lacks_prompts,
        "tool times": has_times and any(use.times is None for use in uses),
        "solved": recorded.solved is None,
        "results": any(use.result is None for use in uses),
        "attacks": recorded.attack is not None and not recorded.attack.is_known,
    }
    yield from (name for name in MISSING if found[name])
    yield from (NOT_JSON for use in uses if RAW_ARGUMENTS in (use.arguments or {}))
