"""The texts of an architecture's folder: prompts, and exemplars as turns.

A prompt is a `string.Template` (`$tools`, `$max_steps`; braces and brackets stay literal).
An exemplar file looks like this; turns of a role follow each other as in a conversation:

    # bridge
    ## user
    Question: Which river flows through the city where …?
    ## assistant
    Plan: …
    #E1 = Search[…]

What is the same for every question stands first in every list of messages, so that a
provider's prefix cache can hold it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Literal, cast

from rewoo_bench.errors import SpecError
from rewoo_bench.types import Message, Tool

Exemplar = tuple[Message, ...]


@dataclass(frozen=True)
class Prompts:
    """The prompts of an architecture by name, and its exemplars for one style of question."""

    texts: Mapping[str, str] = field(default_factory=dict)
    exemplars: Sequence[Exemplar] = ()

    def system(self, name: str, **values: object) -> Message:
        """The prompt `name`, filled in, as the system message."""
        return Message("system", self.fill(name, **values))

    def fill(self, name: str, **values: object) -> str:
        """The prompt `name` with its placeholders filled in. Raises `SpecError`."""
        if name not in self.texts:
            raise SpecError(f"the architecture has no prompt {name!r}; it has: {', '.join(sorted(self.texts))}")
        try:
            return Template(self.texts[name]).substitute(values).strip()
        except (KeyError, ValueError) as error:
            known = ", ".join(f"${value}" for value in values) or "none"
            raise SpecError(f"prompt {name!r}: placeholder {error}; known placeholders: {known}") from None

    def shots(self) -> list[Message]:
        """All exemplars, one after the other, as messages."""
        return [message for exemplar in self.exemplars for message in exemplar]

    def extra_shots(self, name: str) -> list[Message]:
        """The exemplars in the prompt file `name`, as messages; none where the architecture has no such file."""
        if name not in self.texts:
            return []
        return [message for exemplar in parse_exemplars(self.texts[name], name) for message in exemplar]

    @property
    def digest(self) -> str:
        """sha256 over every text and exemplar: two runs with the same digest had the same prompts."""
        digest = sha256()
        for name in sorted(self.texts):
            digest.update(f"{name}\0{self.texts[name]}\0".encode())
        for message in self.shots():
            digest.update(f"{message.role}\0{message.content}\0".encode())
        return digest.hexdigest()


def read_prompts(
    folder: Path, prompts: Mapping[str, str], exemplars: str | None = None, limit: int | None = None
) -> Prompts:
    """The prompt files and one exemplar file of a folder. Raises `SpecError`."""
    texts = {name: _read(folder / file) for name, file in prompts.items()}
    shots = parse_exemplars(_read(folder / exemplars), str(folder / exemplars)) if exemplars else ()
    return Prompts(texts, shots[:limit])


def parse_exemplars(text: str, where: str) -> tuple[Exemplar, ...]:
    """The exemplars of a file, in order. Raises `SpecError` where the headings are wrong."""
    exemplars = []
    for section in re.split(r"(?m)^# .*$", text)[1:]:
        parts = re.split(r"(?m)^## (.*)$", section)
        roles, contents = parts[1::2], parts[2::2]
        wrong = [role for role in roles if role not in ("user", "assistant")]
        if wrong or not roles:
            got = f"'## {wrong[0]}'" if wrong else "none"
            raise SpecError(f"{where}: an exemplar has turns headed '## user' and '## assistant', got {got}")
        exemplars.append(
            tuple(
                Message(cast(Literal["user", "assistant"], role), content.strip())
                for role, content in zip(roles, contents, strict=True)
            )
        )
    if not exemplars:
        raise SpecError(f"{where}: no exemplar; one starts with a line '# name'")
    return tuple(exemplars)


def describe_tools(tools: Mapping[str, Tool]) -> str:
    """The tools as a prompt shows them: `Search[query]: what it does`, a line each."""
    lines = []
    for tool in tools.values():
        names = ", ".join(tool.arguments.model_fields)
        lines.append(f"{tool.name}[{names}]: {tool.description}")
    return "\n".join(lines)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"can't read {path}: {error}") from None
