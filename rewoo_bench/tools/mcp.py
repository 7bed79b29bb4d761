"""What is known of an MCP server without a connection: how a user names it, and the schemas of its tools.

`--mcp` and `[tools.X] mcp = …` have one notation: options, values, command or address.

    uvx mcp-server-time
    MEMORY_FILE_PATH={tmp}/memory.json npx -y @modelcontextprotocol/server-memory
    [prefix=fs only=read_file,list_directory shared] npx -y @modelcontextprotocol/server-filesystem /data
    Authorization="Bearer $TOKEN" https://example.org/mcp

In front of a command, NAME=VALUE sets a variable; in front of an address, a header. `$NAME` is the value of NAME here,
also behind a command's flag such as `--api-key`, and only the text before that is ever shown or written. `{tmp}` is a
folder that each server gets anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.runners.notation import schemas
from rewoo_bench.text.argument_checks import take_values
from rewoo_bench.text.redaction import credentials_of, hide_credentials, sent_in, with_credentials

TMP = "{tmp}"
LONGEST_NAME = 64
"""Characters of a function's name, of which OpenAI allows letters, digits, "_" and "-"."""
_OPTIONS = re.compile(r"\[([^\]]*)\](.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_KNOWN = ("prefix", "only", "shared")


@dataclass(frozen=True)
class McpAddress:
    """A server as the user names it: `words` is its command, or its address alone."""

    text: str
    words: tuple[str, ...]
    values: Mapping[str, str]
    """Variables of the command, or headers of the address, as written."""
    prefix: str = ""
    only: tuple[str, ...] = ()
    """The tools that are offered; none named is all."""
    shared: bool = False
    """Whether all questions of the run ask one server, whatever its tools say of themselves."""

    @classmethod
    def read(cls, text: str) -> McpAddress:
        """Raises `UsageError`."""
        options: dict[str, Any] = {}
        rest = text.strip()
        if match := _OPTIONS.fullmatch(rest):
            rest = match[2].strip()
            for word in match[1].split():
                name, has_value, value = word.partition("=")
                if name not in _KNOWN:
                    raise UsageError(f"--mcp: {unknown('option', name, _KNOWN)}")
                if bool(has_value and value) != (name in ("prefix", "only")):
                    raise UsageError(f"--mcp: [{word}]: write [prefix=fs only=read_file,list_directory shared]")
                options[name] = tuple(value.split(",")) if name == "only" else value or True
            if _plain(prefix := options.get("prefix", "")) != prefix:
                raise UsageError(f"--mcp: prefix: expected letters, digits and '_', got {prefix!r}")
        try:
            words = rest.split() if _is_address(rest) else shlex.split(rest)
        except ValueError as error:
            raise UsageError(f"--mcp: {hide_credentials(text)!r} is not a command: {error}") from None
        values = take_values(words, "--mcp")
        if not words:
            raise UsageError("--mcp: name a command or an address")
        return cls(text, tuple(words), values, **options)

    @property
    def shown(self) -> str:
        """The text for errors."""
        return hide_credentials(self.text)

    @property
    def is_remote(self) -> bool:
        return _is_address(self.words[0])

    @property
    def needs_folder(self) -> bool:
        return any(TMP in text for text in (*self.words, *self.values.values()))

    def filled(self, folder: str) -> tuple[list[str], dict[str, str]]:
        """The words and the values with their variables; `folder` stands for `{tmp}`. Raises `UsageError`."""
        if self.is_remote:
            words = [_expanded(self.words[0])]
        else:
            words = [word.replace(TMP, folder) for word in with_credentials(self.words, self._credential)]
        return words, {name: _expanded(value).replace(TMP, folder) for name, value in self.values.items()}

    def _credential(self, name: str, value: str) -> str:
        """The value behind a flag; as it is where it names a variable that the command itself gets."""
        return value if self.values.keys() & _names(value) else _expanded(value)

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown of the values: those of variables here that are no path of this machine."""
        flags = self.words if self.is_remote else [value for _, _, value in credentials_of(self.words)]
        written = [*flags, *self.values.values()]
        names = [name for text in written for name in _names(text)]
        values = [os.environ.get(name, "") for name in names]
        return sent_in(None, [value for value in values if not (value.startswith("/") and os.access(value, os.F_OK))])

    def names_of(self, remotes: Collection[str]) -> dict[str, str]:
        """Name of a tool that is offered -> the server's name of it. Raises `UsageError` for one that isn't there."""
        for wanted in self.only:
            if wanted not in remotes:
                raise UsageError(f"--mcp: {self.shown!r}: only: {unknown('MCP tool', wanted, remotes)}")
        offered = [remote for remote in remotes if not self.only or remote in self.only]
        return safe_names(offered, self.prefix)


def safe_names(remotes: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Name of a tool as a model may call it -> somebody else's name of it.

    Characters that OpenAI doesn't allow become "_". A name that is too long, or no longer unique, ends in a hash.
    """
    plain = {remote: _plain(f"{prefix}_{remote}" if prefix else remote) for remote in remotes}
    taken = Counter(plain.values())
    names = {}
    for remote, name in plain.items():
        unclear = taken[name] > 1 and name != remote
        if unclear or len(name) > LONGEST_NAME or not name.strip("_"):
            name = f"{name[: LONGEST_NAME - 9]}_{sha256(remote.encode()).hexdigest()[:8]}"
        names[name] = remote
    return names


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII)


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _names(text: str) -> list[str]:
    """The variables that a text names."""
    return [match[1] or match[2] for match in _VARIABLE.finditer(text)]


def _expanded(text: str) -> str:
    """The text with the values of its variables. Raises `UsageError` for one that isn't set."""
    for name in _names(text):
        if name not in os.environ:
            raise UsageError(f"--mcp: the variable {name} isn't set")
    return _VARIABLE.sub(lambda match: os.environ[match[1] or match[2]], text)


class ToolSchema:
    """A tool as its server describes it."""

    def __init__(
        self,
        name: str,
        description: str | None,
        schema: Mapping[str, Any],
        *,
        is_read_only: bool = False,
        changes_state: bool = False,
    ) -> None:
        self.name = name
        self.description = (description or name).strip()
        self.schema = dict(schema)
        self.is_read_only = is_read_only
        """Whether the server says that the tool changes nothing (`readOnlyHint`)."""
        self.changes_state = changes_state
        """Whether the server says that it changes something; one that says neither may do either."""

    @cached_property
    def sha256(self) -> str:
        """A hash of all that a model reads of the tool."""
        return sha256(json.dumps([self.name, self.description, self.schema], sort_keys=True).encode()).hexdigest()

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """A model of the tool's arguments, made once for all questions.

        It checks as far as notation/schemas.py reads schemas; the server does all.
        """
        whole = {"type": "object", "properties": {}, **self.schema}
        return type("McpArguments", (_McpArguments,), {"schema_": whole, "read": schemas.plain_schema(whole)})


class McpTool:
    """A tool of a server, as a `rewoo_bench.types.Tool`; `call` gets the server's name of it and the arguments."""

    def __init__(
        self,
        call: Callable[[str, dict[str, Any]], Awaitable[str]],
        schema: ToolSchema,
        name: str,
        *,
        stateful: bool = False,
    ) -> None:
        self.name = name
        self.description = schema.description
        self.arguments: type[BaseModel] = schema.arguments
        self.stateful = stateful
        self.changes_state = schema.changes_state
        self._call = call
        self._remote = schema.name

    async def __call__(self, arguments: BaseModel) -> str:
        return await self._call(self._remote, arguments.model_dump())


class _McpArguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    schema_: ClassVar[dict[str, Any]]
    read: ClassVar[schemas.Part]

    @model_validator(mode="before")
    @classmethod
    def _fitting(cls, values: Any) -> Any:
        values = schemas.convert(cls.read, values)
        if fault := schemas.fault(cls.read, values):
            raise PydanticCustomError("schema", "{fault}", {"fault": fault.removeprefix(".")})
        return values

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        return cls.schema_
