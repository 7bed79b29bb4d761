"""Exit codes and settings of all commands."""

from __future__ import annotations

from typing import Any

DONE, WRONG, INCOMPLETE, BROKEN = 0, 2, 3, 70  # 1 is a gate that failed; BROKEN: EX_SOFTWARE of sysexits.h
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}
