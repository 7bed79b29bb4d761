"""The `[agent]` table of architecture.toml, and the Python environment that it asks for.

[agent]
command = ["python", "agent.py"]
timeout_s = 120

Frameworks want versions of the same packages that exclude each other, so each list of requirements gets an environment
of its own, made by uv and kept in the cache.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer, field_validator, model_validator

from rewoo_bench.errors import UsageError
from rewoo_bench.system.files import cache_dir, is_file
from rewoo_bench.text.redaction import (
    credentials_of,
    hidden_credential,
    is_credential_name,
    redact,
    with_credentials,
    without_in,
)

_PYTHONS = re.compile(r"python(?:3(?:\.\d+)?)?(?:\.exe)?")


class AgentSettings(BaseModel):
    """An agent: a `command`, or a `callable` in this process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = ()
    """Program and arguments, as a list or as a line of a shell. `$NAME` is the value of NAME here where a flag says
    that it is a credential: `--api-key $NAME`."""
    callable: str = ""
    """Import path `package.module:function` of `answer(question, *, base_url, api_key, model, tools) -> str`."""
    protocol: Literal["question", "worker"] = "question"
    """`question`: a process answers one question. `worker`: a process answers many, as lines of JSON."""
    env: dict[str, str] = {}
    """Variables of the process. `$NAME` is the value of NAME here: no other variable has a key."""
    cwd: str = "."
    """Working folder, relative to the architecture's folder."""
    concurrency: int | None = Field(default=None, ge=1)
    """Questions at the same time; None leaves it to the run."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Seconds for a question."""
    requirements: str = ""
    """A requirements file; uv installs it into an environment of its own."""
    folder: str = Field(default="", exclude=True)
    """The architecture's folder."""

    @field_validator("command", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> AgentSettings:
        if bool(self.command) == bool(self.callable):
            raise ValueError("name either a command or a callable")
        if self.callable and (self.protocol == "worker" or self.requirements or self.env):
            raise ValueError("a callable runs in this process: it has no protocol, requirements or env")
        if self.requirements and not _PYTHONS.fullmatch(self.command[0]):
            program = self.command[0]
            raise ValueError(f"requirements are installed for a command that begins with python, not {program!r}")
        return self

    @property
    def shares_cores(self) -> bool:
        """Whether each question is a program of its own, and nothing here says how many there may be."""
        return bool(self.command) and self.protocol == "question" and self.concurrency is None

    @property
    def secrets(self) -> frozenset[str]:
        """Credentials in `env` and `command`, by the names of their variables and flags; `$NAME` stands for one."""
        variables = [value for name, value in self.env.items() if is_credential_name(name)]
        values = map(os.path.expandvars, (*variables, *(value for _, _, value in credentials_of(self.command))))
        return frozenset(value for value in values if value and not value.startswith("$"))

    @field_serializer("command")
    def _command_without_secrets(self, command: tuple[str, ...]) -> Any:
        """The manifest has no credentials."""
        return without_in(with_credentials(command, hidden_credential), self.secrets)

    @field_serializer("env")
    def _env_without_secrets(self, env: dict[str, str]) -> Any:
        return without_in({name: hidden_credential(name, value) for name, value in env.items()}, self.secrets)

    @computed_field  # type: ignore[prop-decorator]  # mypy doesn't know decorated properties
    @property
    def files_sha256(self) -> dict[str, str]:
        """The hashes of the files that the command names, for the manifest."""
        files = {each: self.working_folder / each for each in (*self.command, self.requirements) if each}
        return {Path(name).name: sha256(path.read_bytes()).hexdigest() for name, path in files.items() if is_file(path)}

    @property
    def working_folder(self) -> Path:
        """The folder that the process starts in."""
        return Path(self.folder, self.cwd).absolute()


def command_in_environment(settings: AgentSettings) -> tuple[str, ...]:
    """The command of an agent, in an environment with its requirements: `("…/bin/python", "agent.py")`, with its keys.

    Raises `UsageError`.
    """
    program, *arguments = with_credentials(settings.command, lambda _, value: os.path.expandvars(value))
    if not _PYTHONS.fullmatch(program):
        return (program, *arguments)
    if not settings.requirements:
        return (sys.executable, *arguments)
    file = settings.working_folder / settings.requirements
    if not is_file(file):
        raise UsageError(f"agent: there is no file of requirements {str(file)!r}")
    return (str(_environment(file)), *arguments)


def _environment(requirements: Path) -> Path:
    """The interpreter of the environment, which is made first where there is none."""
    folder = cache_dir() / "environments" / sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:24]
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = folder / "installed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
            if uv is None:
                raise UsageError("agent: its requirements are installed by uv, which isn't here: pip install uv")
            for command in (
                [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
                [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(requirements)],
            ):
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode:
                    message = redact(" ".join(ended.stderr.split()) or "no message")
                    shown = message if len(message) <= 600 else f"{message[:600]} …"
                    raise UsageError(f"agent: uv {' '.join(command[1:3])} failed: {shown}")
            done.touch()
    return python
