"""Exit codes and settings of all commands."""

from __future__ import annotations

from typing import Any

DONE, FAILED, WRONG, INCOMPLETE, BROKEN, INTERRUPTED = 0, 1, 2, 3, 70, 130
# FAILED: of a gate, of an external agent on every question, or of a run in which no model call was metered.
# BROKEN: EX_SOFTWARE of sysexits.h
SHORT_NAMES = "none, openai, anthropic-5m, anthropic-1h, gemini, deepseek, vllm, llama.cpp"
"""Those of `price_sheets.RULES`, which takes longer to import than a help text may take."""
PRICE_FORMS = (
    f"a short name ({SHORT_NAMES}), a sheet of `rewoo-bench reprice --list` or one of its prices (SHEET:MODEL), or a "
    "file of your own (sheet.toml[:MODEL])"
)
"""What every `--prices` takes."""
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}
