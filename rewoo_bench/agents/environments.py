"""Python environments of agents, made by uv: one for each list of requirements, kept in the cache.

    command_in_environment(settings)    # ("…/environments/3f…/bin/python", "agent.py")

Frameworks want versions of the same packages that exclude each other, so each agent gets its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from rewoo_bench.agents.settings import AgentSettings
from rewoo_bench.errors import UsageError
from rewoo_bench.paths import cache_dir
from rewoo_bench.redaction import redact

_SCRIPT_METADATA = re.compile(r"^# /// script$\n(.*?)^# ///$", re.MULTILINE | re.DOTALL)  # PEP 723
_LONGEST_MESSAGE = 600  # characters
_PYTHONS = re.compile(r"python(?:3(?:\.\d+)?)?(?:\.exe)?")


async def command_in_environment(settings: AgentSettings) -> tuple[str, ...]:
    """The command of an agent, in an environment with its requirements. Raises `UsageError`."""
    return await to_thread.run_sync(_command, settings)


def _command(settings: AgentSettings) -> tuple[str, ...]:
    program, *arguments = settings.command
    if not _PYTHONS.fullmatch(program):
        return settings.command
    if settings.requirements:
        file = settings.working_folder / settings.requirements
        try:
            wanted = file.read_bytes()
        except OSError as error:
            raise UsageError(f"agent: requirements {str(file)!r}: {error.strerror}") from None
        return (str(_environment(wanted, ["-r", str(file)])), *arguments)
    script = settings.working_folder / arguments[0] if arguments else None
    if script is not None and script.is_file() and (wanted_by := _script_requirements(script)):
        return (str(_environment("\n".join(wanted_by).encode(), wanted_by)), *arguments)
    return (sys.executable, *arguments)


def _script_requirements(script: Path) -> list[str]:
    """The dependencies in a script's own metadata. Raises `UsageError`."""
    match = _SCRIPT_METADATA.search(script.read_text(encoding="utf-8", errors="replace"))
    lines = [line.removeprefix("#").removeprefix(" ") for line in match[1].splitlines()] if match else []
    try:
        return [str(each) for each in tomllib.loads("\n".join(lines)).get("dependencies", ())]
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"agent: the metadata of {str(script)!r}: {error}") from None


def _environment(wanted: bytes, packages: list[str]) -> Path:
    """The interpreter of the environment, which is made first where there is none."""
    from filelock import FileLock

    name = sha256(wanted + sys.version.encode()).hexdigest()[:24]
    folder = cache_dir() / "environments" / name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = folder / "installed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            uv = _find_uv()
            _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
            _run([uv, "pip", "install", "--quiet", "--python", str(python), *packages])
            done.touch()
    return python


def _find_uv() -> str:
    installed = Path(sys.executable).with_name("uv")
    uv = shutil.which("uv") or (str(installed) if installed.exists() else None)
    if uv is None:
        raise UsageError("agent: its requirements are installed by uv, which isn't here: pip install uv")
    return uv


def _run(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        message = redact(" ".join(ended.stderr.split()) or "no message")
        shown = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]} …"
        raise UsageError(f"agent: uv {' '.join(command[1:3])} failed: {shown}")
    return ended.stdout
