"""Exit codes and settings of all commands."""

from __future__ import annotations

from typing import Any

DONE, FAILED, WRONG, INCOMPLETE, BROKEN, INTERRUPTED = 0, 1, 2, 3, 70, 130
# FAILED: of a gate, of an external agent on every question, or of a run in which no model call was metered.
# BROKEN: EX_SOFTWARE of sysexits.h
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}
