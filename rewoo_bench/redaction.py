"""Takes secrets out of text that is shown or written down.

redact("key sk-proj-abcdef123456")      # "key [key]"
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_KEYS = re.compile(r"\b(?:Bearer\s+\S+|(?:sk|pk|gsk|xai|AIza)[-_][\w*.-]{6,}|AIza[\w*-]{8,})")


def redact(text: str, secrets: Sequence[str] = ()) -> str:
    """`text` without the given secrets and without whatever looks like an API key."""
    for secret in secrets:
        if len(secret) >= 8:  # a placeholder such as "none" isn't one, and would eat words
            text = text.replace(secret, "[key]")
    return _KEYS.sub("[key]", text)
