"""Whether a run's options may run programs, import code and send the key to an address, without being asked again.

A run that this user begins on this machine is sealed: `seal` in its run.json is an HMAC over the run's id and the
options that name a program, code or an address. Its key is a file of the user's own. A folder that somebody else made,
or whose options were edited afterwards, has no valid seal, and `check_trusted` refuses what was not given again.
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

from rewoo_bench.config.named import known_names
from rewoo_bench.errors import UsageError
from rewoo_bench.escaping import one_line
from rewoo_bench.redaction import redact_settings, sent_in

_SEALED = ("architectures", "dataset", "tools", "mcp", "llama_server", "api_base")
_KEY_BYTES = 32


def seal(run_id: str, options: Mapping[str, Any]) -> str | None:
    """The seal of a run's options as its manifest has them; None where the user's key can't be kept."""
    shown = redact_settings(options, sent_in(options.get("api_base")))  # as they are written
    key = _key()
    return None if key is None else _signed(key, run_id, shown)


def check_trusted(manifest: Mapping[str, Any], given: Collection[str], flag: str, *, trust: bool) -> None:
    """Raises `UsageError` for what a run.json would run or contact, unless this user began its run on this machine.

    `given` are the options that the command names itself; `flag` is the one that the run.json comes from. With `trust`
    nothing is refused.
    """
    options = manifest.get("options")
    options = options if isinstance(options, Mapping) else {}
    dangers = [danger for name in _SEALED if name not in given for danger in _dangers(name, options.get(name))]
    if trust or not dangers or _is_sealed(manifest, options):
        return
    raise UsageError(
        f"{flag}: this run wasn't begun by you on this machine, and it would {'; '.join(dangers)}. "
        "Give these flags again, or --trust"
    )


def _dangers(name: str, value: Any) -> Iterator[str]:
    """What an option of a manifest would run or contact."""
    for each in map(str, value if isinstance(value, list) else [value] if value else []):
        shown = repr(one_line(each))
        base, _, query = each.partition("?")
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
            case "dataset" if Path(base.partition("=")[2] or base).is_dir() or ":" in each:
                yield f"run code of the data set {shown} (--dataset)"
            case "tools" if ":" in each:
                yield f"import {shown} (--tools)"


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
