"""The parts of a prompt in tokens, so that a table can show where the tokens go.

    PromptParts(context=122, exemplars=803, question=19, written=64, found=310)

Counted with the pinned tokenizer of tokens.py, whatever the model is; the five add up to the whole
prompt. In the terms of Xu et al. 2023, section 2.2: context is |C|, exemplars are |S|, the question is
|Q|, `written` is thoughts and actions |T| + |A|, `found` is observations |O|; in a solver's prompt
`found` is the plan |P| and the evidence |E| together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel

from rewoo_bench.text.tokens import TOKENS_BEFORE_ANSWER, count_call, count_message, count_messages, count_tokens
from rewoo_bench.types import Message, Tool, input_schema


@dataclass(frozen=True, slots=True)
class PromptParts:
    """Tokens of a prompt by what they are for."""

    context: int = 0
    """Instructions, the tools' descriptions, and the tokens that a chat form adds."""
    exemplars: int = 0
    question: int = 0
    written: int = 0
    """Text of the model in earlier turns: thoughts, actions, drafts of plans."""
    found: int = 0
    """All other text after the question: observations, evidence within its plan, error messages."""


class ToolSize(NamedTuple):
    """Tokens that a tool takes of each prompt; `source` is its MCP server, or `--tools`."""

    name: str
    source: str
    schema: int
    """As a provider's API takes it (`count_tool`)."""
    line: int
    """As a line of the tool list in a prompt's text."""


def prompt_parts_of(messages: Sequence[Message], question: str, tools: Sequence[Tool] = ()) -> PromptParts:
    """The parts of a prompt. A prompt without the question, such as an LLM tool's, has no exemplars."""
    sizes = [count_message(message) for message in messages]
    system = sum(size for message, size in zip(messages, sizes, strict=True) if message.role == "system")
    context = TOKENS_BEFORE_ANSWER + system + sum(map(count_tool, tools))
    asked = [i for i, m in enumerate(messages) if question and m.role == "user" and question in m.content]
    if not asked:
        return PromptParts(context=context, found=sum(sizes) - system)
    start = asked[0]
    others = messages[start].content.replace(question, "").strip()  # a solver's plan and evidence
    rest = count_tokens(others.removeprefix("Question:").removesuffix("Question:").strip())
    before = sum(size for m, size in zip(messages[:start], sizes[:start], strict=True) if m.role != "system")
    after = list(zip(messages[start + 1 :], sizes[start + 1 :], strict=True))
    return PromptParts(
        context=context,
        exemplars=before,
        question=sizes[start] - rest,
        written=sum(size for message, size in after if message.role == "assistant"),
        found=rest + sum(size for message, size in after if message.role in ("user", "tool")),
    )


def count_prompt(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """Tokens of a prompt, and of the tools that go with it as a provider's API takes them."""
    return count_messages(messages) + sum(map(count_tool, tools))


def count_tool(tool: Tool) -> int:
    """Tokens of a tool as a provider's API takes it: name, description, and schema of the arguments."""
    return _count_schema(tool.name, tool.description, tool.arguments)


@lru_cache(maxsize=256)
def _count_schema(name: str, description: str, arguments: type[BaseModel]) -> int:
    return count_call(name, {"description": description, "parameters": input_schema(arguments)})
