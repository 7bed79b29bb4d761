"""Whether a run's options may run programs, import code, read files and use the user's key, without being asked again.

A run that this user begins on this machine is sealed: `seal` in its run.json is an HMAC over the run's id and the
options that name a program, code, an address, a model or a file. Its key is a file of the user's own. A folder that
somebody else made, or whose options were edited afterwards, has no valid seal, and `check_trusted` refuses what was not
given again.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rewoo_bench.config.named import known_names
from rewoo_bench.errors import UsageError
from rewoo_bench.escaping import one_line
from rewoo_bench.model_names import LOCAL, REPLAY, is_oracle
from rewoo_bench.models.local.catalogue import catalogue
from rewoo_bench.redaction import redact_settings, sent_in
from rewoo_bench.runs.options import OPTIONS

_MODELS = ("model", "planner_model", "solver_model", "judge_model", "embedding_model")
_FILES = ("corpus", "failed_in", "wrong_in", "prices")
_SEALED = ("architectures", "dataset", "tools", "mcp", "llama_server", "api_base", *_MODELS, *_FILES, "extra_body")
_KEY_BYTES = 32


def seal(run_id: str, options: Mapping[str, Any]) -> str | None:
    """The seal of a run's options as its manifest has them; None where the user's key can't be kept."""
    shown = redact_settings(options, sent_in(options.get("api_base")))  # as they are written
    key = _key()
    return None if key is None else _signed(key, run_id, shown)


def check_trusted(manifest: Mapping[str, Any], given: Collection[str], flag: str, *, trust: bool) -> None:
    """Raises `UsageError` for what a run.json would run, read or contact, unless this user began its run here.

    `given` are the options that the command names itself; `flag` is the one that the run.json comes from. With `trust`
    nothing is refused.
    """
    options = manifest.get("options")
    options = options if isinstance(options, Mapping) else {}
    again = {*given, "failed_in", "wrong_in"} if options.get("ids") else given  # `ids` has their questions
    dangers = [danger for name in _SEALED if name not in again for danger in _dangers(name, options.get(name))]
    if trust or not dangers or _is_sealed(manifest, options):
        return
    raise UsageError(
        f"{flag}: this run wasn't begun by you on this machine, and it would {'; '.join(dangers)}. "
        "Give these flags again, or --trust"
    )


def _dangers(name: str, value: Any) -> Iterator[str]:
    """What an option of a manifest would run, read or contact."""
    for each in map(str, value if isinstance(value, list) else [value] if value else []):
        shown = repr(one_line(each))
        plain = unquote(each)  # the options after a name's `?` are quoted
        base, _, query = plain.partition("?")
        match name:
            case "mcp":
                web = each.startswith(("http://", "https://"))
                yield f"{'contact' if web else 'run'} the MCP server {shown} (--mcp)"
            case "llama_server":
                yield f"run {shown} (--llama-server)"
            case "api_base":
                yield f"send prompts and the model's key to {shown} (--api-base)"
            case "architectures" if each.startswith("agent:"):
                yield f"run {one_line(each.removeprefix('agent:'))!r} (--agent)"
            case "architectures" if base not in known_names("architectures") or ":" in query:
                yield f"run code or commands of {shown} (--arch)"
            case "dataset" if Path(base.partition("=")[2] or base).is_dir() or ":" in plain:
                yield f"run code of the data set {shown} (--dataset)"
            case "dataset" if Path(each.partition("=")[2] or each).exists():
                yield f"read {shown} (--dataset)"
            case "tools" if ":" in each:
                yield f"import {shown} (--tools)"
            case "extra_body":
                yield f"send {shown} with every request (--extra-body)"
            case _ if name in _FILES and (name != "prices" or "/" in each or ".toml" in each):  # or a bundled sheet
                yield f"read {shown} ({OPTIONS[name].flag})"
            case _ if name in _MODELS and not is_oracle(each) and each.removeprefix(LOCAL) not in catalogue():
                yield f"{_use_of_a_model(each)} ({OPTIONS[name].flag})"


def _use_of_a_model(name: str) -> str:
    shown = repr(one_line(name))
    if name.startswith((LOCAL, REPLAY)):
        return f"read {shown}"
    if ":" in name and "/" not in name and not name.startswith("ft:"):
        return f"import the model {shown}"
    if "://" in name:
        return f"send prompts and your key to the address in the model's name {shown}"
    return f"ask the model {shown} with your key"


def _is_sealed(manifest: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    key, found = _key(), manifest.get("seal")
    if key is None or not isinstance(found, str):
        return False
    return hmac.compare_digest(found.encode(), _signed(key, str(manifest.get("run_id")), options).encode())


def _signed(key: bytes, run_id: str, options: Mapping[str, Any]) -> str:
    text = json.dumps({"run_id": run_id, **{name: options.get(name) for name in _SEALED}}, sort_keys=True, default=str)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _key() -> bytes | None:
    """The user's key, which is made at its first use; None where it can't be kept."""
    from platformdirs import user_state_path  # some milliseconds, and most commands need none

    path = user_state_path("rewoo_bench", appauthor=False) / "key"
    with suppress(OSError):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, part = tempfile.mkstemp(dir=path.parent)  # for its owner alone
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(_KEY_BYTES))
                with suppress(FileExistsError):  # another process was quicker
                    os.link(part, path)
            finally:
                Path(part).unlink()
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None
