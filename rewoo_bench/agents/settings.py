"""The `[agent]` table of architecture.toml.

[agent]
command = ["python", "agent.py"]
timeout_s = 120
"""

from __future__ import annotations

import shlex
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator

DEFAULT_TIMEOUT_S = 600.0


class AgentSettings(BaseModel):
    """An agent: a `command`, or a `callable` in this process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = ()
    """Program and arguments."""
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

    @model_validator(mode="after")
    def _check(self) -> AgentSettings:
        if bool(self.command) == bool(self.callable):
            raise ValueError("name either a command or a callable")
        if self.callable and (self.protocol == "worker" or self.requirements or self.env):
            raise ValueError("a callable runs in this process: it has no protocol, requirements or env")
        return self

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

    @classmethod
    def of_command(cls, command: str) -> AgentSettings:
        """The settings of `--agent COMMAND`. Raises `ValueError` where it isn't a command."""
        return cls(command=tuple(shlex.split(command)), folder=str(Path.cwd()))
