"""Which runs this user began on this machine, and what a run.json of somebody else would run, contact or spend.

    remember(manifest)                                          # when a run begins, and when a session ends
    check_trusted(manifest, given, "--resume", trust=False)     # UsageError: … spend: --mcp 'uvx …', --model '…'.

A file in the user's state folder has a line for each run that was begun or resumed here: a digest of its id, of what
its run.json would run, read, contact or spend, and of what its sessions learnt of their endpoints. A folder that
somebody else made isn't among them, nor is one whose options were edited afterwards: then the command has to give these
flags again, or --trust.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewoo_bench.config.functions import is_tool_file
from rewoo_bench.config.named import known_names
from rewoo_bench.config.names import LOCAL, REPLAY, is_oracle
from rewoo_bench.errors import UsageError
from rewoo_bench.models.local.catalogue import catalogue
from rewoo_bench.runs.options import OPTIONS, RunOptions
from rewoo_bench.text.redaction import redact_settings, was_redacted

_MODELS = ("model", "planner_model", "solver_model", "judge_model", "embedding_model")
_SPENDING = (
    *("price", "questions", "ids", "trials", "reply_tokens", "reasoning_effort", "provider_cache"),
    *("max_retries", "max_steps"),
)
_ASKED_ABOUT = (
    *("architectures", "dataset", "tools", "world", "mcp", "llama_server", "api_base", *_MODELS),
    *("corpus", "failed_in", "wrong_in", "prices", "extra_body", *_SPENDING),
)
_DEFAULTS = {each.name: each.default for each in fields(RunOptions)}
_MOST_CHARACTERS = 100  # of a value in an error message


def remember(manifest: Mapping[str, Any]) -> None:
    """Notes a run of this user's; where that can't be written, to resume it takes --trust."""
    with suppress(OSError):
        file = _begun_here()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(_line_of(manifest))


def was_begun_here(manifest: Mapping[str, Any]) -> bool:
    """Whether this user began or resumed the run on this machine, with what its run.json has now."""
    with suppress(OSError), _begun_here().open(encoding="utf-8") as lines:
        return _line_of(manifest) in lines
    return False


def _begun_here() -> Path:
    from platformdirs import user_state_path  # some milliseconds, and most commands need none

    return user_state_path("rewoo_bench", appauthor=False) / "runs.txt"


def _line_of(manifest: Mapping[str, Any]) -> str:
    options = manifest.get("options")
    options = options if isinstance(options, Mapping) else {}
    shown = redact_settings(options, options.get("api_base"))  # as they are written
    facts = {name: shown.get(name) for name in _ASKED_ABOUT}
    facts |= {"run_id": manifest.get("run_id"), "sent": redact_settings(manifest.get("sent") or {})}
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest() + "\n"


def check_trusted(manifest: Mapping[str, Any], given: Mapping[str, Any], flag: str, *, trust: bool) -> None:
    """Raises `UsageError` for what a run.json would run, read, contact or spend, unless this user began its run here.

    `given` are the options that the command names itself; `flag` is the one that the run.json comes from. With `trust`
    nothing is refused.
    """
    options = manifest.get("options")
    options = options if isinstance(options, Mapping) else {}
    again = set(given)
    again |= {"failed_in", "wrong_in"} if options.get("ids") else set()  # `ids` has their questions
    again |= {"ids"} if "questions" in given else set()  # and no more of them are asked
    models = [str({**options, **given}.get(name) or "") for name in _MODELS]
    if all(is_oracle(model) or model.startswith((LOCAL, REPLAY)) for model in models if model):
        again |= set(_SPENDING)  # nothing is paid for
    asked = [name for name in _ASKED_ABOUT if name not in again and _is_asked_about(name, options.get(name))]
    if trust or not asked or was_begun_here(manifest):
        return
    chosen = ", ".join(f"{OPTIONS[name].flag} {_shown(options[name])}" for name in asked)
    raise UsageError(
        f"{flag}: this run wasn't begun by you on this machine, and these flags of it run programs, read files, "
        f"contact addresses or spend: {chosen}. Give them again, or --trust"
    )


def check_whole(options: Mapping[str, Any], given: Collection[str], flag: str) -> None:
    """Raises `UsageError` for an option of a run.json whose credentials aren't kept, unless it is `given` again."""
    for name, value in options.items():
        if name in OPTIONS and name not in given and was_redacted(str(value)):
            raise UsageError(f"{flag}: give {OPTIONS[name].flag} again; its credentials aren't kept in the run")


def _is_asked_about(name: str, value: Any) -> bool:
    """Whether an option of a manifest could run, read, contact or spend something.

    Of architectures, data sets, tools and models the plain names of bundled ones can't: options behind a name may name
    files, folders and code, and set limits.
    """
    if not value or value == _DEFAULTS[name]:
        return False
    named = set(map(str, value)) if isinstance(value, list) else {str(value)}
    if name in ("architectures", "dataset"):
        return not named <= set(known_names("architectures" if name == "architectures" else "datasets"))
    if name == "tools":
        return any(":" in each or is_tool_file(each) for each in named)
    return name not in _MODELS or not (is_oracle(str(value)) or str(value).removeprefix(LOCAL) in catalogue())


def _shown(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return repr(text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…")
