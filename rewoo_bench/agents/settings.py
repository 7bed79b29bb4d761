"""The `[agent]` table of architecture.toml.

[agent]
command = ["python", "agent.py"]
timeout_s = 120
"""

from __future__ import annotations

import os
import shlex
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer, field_validator, model_validator

from rewoo_bench.redaction import is_credential_name, without_in

DEFAULT_TIMEOUT_S = 600.0


class AgentSettings(BaseModel):
    """An agent: a `command`, or a `callable` in this process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = ()
    """Program and arguments, as a list or as a line of a shell."""
    callable: str = ""
    """Import path `package.module:function` of `answer(question, *, base_url, api_key, model, tools) -> str`."""
    protocol: Literal["question", "worker"] = "question"
    """`question`: a process answers one question. `worker`: a process answers many, as lines of JSON."""
    env: dict[str, str] = {}
    """Variables of the process. `$NAME` is the value of NAME here: keys get to an agent in no other way."""
    cwd: str = "."
    """Working folder, relative to the architecture's folder."""
    concurrency: int | None = Field(default=None, ge=1)
    """Questions at the same time; None leaves it to the run."""
    timeout_s: float = Field(default=DEFAULT_TIMEOUT_S, gt=0)
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
        return self

    @property
    def secrets(self) -> frozenset[str]:
        """Credentials in `env` and `command`, by the names of their variables and flags; `$NAME` stands for one."""
        variables = [os.path.expandvars(value) for name, value in self.env.items() if is_credential_name(name)]
        flags = [flag.lstrip("-").replace("-", "_") for flag in self.command]
        values = [value for flag, value in zip(flags, self.command[1:], strict=False) if is_credential_name(flag)]
        joined = [each.partition("=")[2] for each in self.command if is_credential_name(_flag_name(each))]
        return frozenset(value for value in (*variables, *values, *joined) if value and not value.startswith("$"))

    @field_serializer("command", "env")
    def _without_secrets(self, value: Any) -> Any:
        """The manifest has no credentials."""
        return without_in(value, self.secrets)

    @computed_field  # type: ignore[prop-decorator]  # mypy doesn't know decorated properties
    @property
    def files_sha256(self) -> dict[str, str]:
        """The hashes of the files that the command names, for the manifest."""
        files = {each: self.working_folder / each for each in (*self.command, self.requirements) if each}
        return {
            Path(name).name: sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()
        }

    @property
    def working_folder(self) -> Path:
        """The folder that the process starts in."""
        return Path(self.folder, self.cwd).absolute()


def _flag_name(argument: str) -> str:
    """`api_key` for `--api-key=value`; empty for an argument without a value."""
    name, equals, _ = argument.partition("=")
    return name.lstrip("-").replace("-", "_") if equals else ""
