"""A provider's answer without the credentials of its request, which a server may repeat."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rewoo_bench.redaction import without, without_in
from rewoo_bench.types import Completion


def without_credentials(completion: Completion, secrets: Collection[str]) -> Completion:
    """The completion without them.

    Removed here, they reach no journal, trace, prediction, later prompt, tool or other provider. Only what was
    really sent is removed: an answer is evidence, so nothing in it is guessed to be a key.
    """
    calls = tuple(
        replace(
            call,
            id=without(call.id, secrets),
            name=without(call.name, secrets),
            arguments=without_in(call.arguments, secrets),
            echo=without_in(call.echo, secrets),
        )
        for call in completion.tool_calls
    )
    text, thoughts = without(completion.text, secrets), without(completion.thoughts, secrets)
    if (calls, text, thoughts) == (completion.tool_calls, completion.text, completion.thoughts):
        return completion
    return replace(completion, text=text, thoughts=thoughts, tool_calls=calls)
