"""Counting and cutting text with one pinned tokenizer, the same on every machine and offline; and a prompt's parts.

The vocabulary is cl100k_base, read from the copy that litellm carries in its package: litellm is
found, not imported, so neither the network nor a two-second import is needed.

    >>> count_tokens("Plan: find the river.")
    6
    >>> truncate("Plan: find the river.", 4)
    ('Plan: find the', True)

These figures are used only where a provider gives none; such a row says `estimated`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewoo_bench.text.model_output import excerpt
from rewoo_bench.text.prompts import folded
from rewoo_bench.types import Message, Tool, input_schema

if TYPE_CHECKING:
    from pydantic import BaseModel
    from tiktoken import Encoding


TOKENIZER = "cl100k_base"

# The name under which tiktoken looks for the vocabulary in a cache folder, and where litellm has it.
_VOCABULARY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_FOLDER = "litellm_core_utils/tokenizers"

# Tokens that a chat form adds to each message (start, role, end) and before the answer.
TOKENS_PER_MESSAGE = 3
TOKENS_BEFORE_ANSWER = 3

# English has about four characters a token; twice that nearly always holds enough text.
_CHARACTERS_PER_TOKEN = 8

# The tokenizer's own regular expressions end the process at a run of some 900,000 spaces.
_LONGEST_PIECE = 100_000  # characters

_REMEMBERED_TEXTS = 4096
_REMEMBERED_CHARACTERS = 8000  # of a text; so all of them are 33 MB of plain English at most
_REMEMBERED_COUNTS = 65_536  # of longer texts, by their hashes: these take 10 MB, however long the texts are

_counts: dict[bytes, int] = {}
_loading = threading.Lock()


def count_tokens(text: str) -> int:
    """Tokens of `text`. A special token's name (`<|endoftext|>`) counts as the plain text it is.

    The last texts are remembered, of long ones their hashes: prompts share most of their text, and an
    observation is counted where it is cut, where it enters a prompt and where it is written down.
    """
    if len(text) <= _REMEMBERED_CHARACTERS:
        return _count_remembered(text)
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    if (known := _counts.get(digest)) is None:
        if len(_counts) >= _REMEMBERED_COUNTS:
            _counts.clear()
        known = _counts[digest] = _count(text)
    return known


def count_messages(messages: Sequence[Message]) -> int:
    """Tokens of a conversation as a prompt, with those that a chat form adds to it."""
    return folded(messages, "tokens", lambda tokens, message: tokens + count_message(message), TOKENS_BEFORE_ANSWER)


def count_message(message: Message) -> int:
    """Tokens of a message, with those that a chat form adds to it."""
    tokens = TOKENS_PER_MESSAGE + count_tokens(message.content)
    for call in message.tool_calls:
        tokens += count_call(call.name, call.arguments)
    return tokens


def count_call(name: str, arguments: Mapping[str, object]) -> int:
    """Tokens of a tool call: its name and its arguments as JSON, or their text where they are no JSON."""
    try:
        written = json.dumps(arguments, ensure_ascii=False)
    except (TypeError, ValueError):
        written = excerpt(arguments)
    return count_tokens(str(name)) + count_tokens(written)


def truncate(text: str, max_tokens: int) -> tuple[str, bool]:
    """The longest start of `text` that has at most `max_tokens` tokens, and whether anything was cut.

    The cut falls between characters, and after a whole word where that costs less than half of
    what fits. Raises ValueError for a negative `max_tokens`.
    """
    if max_tokens < 0:
        raise ValueError(f"max_tokens must be 0 or more, not {max_tokens!r}")
    tokens: list[int] = []
    # In pieces of doubling size, so a megabyte isn't read to keep a hundred tokens.
    size = _CHARACTERS_PER_TOKEN * (max_tokens + 1)
    while size < len(text) and len(tokens := _encode(text[:size])) <= max_tokens:
        size *= 2
    if size >= len(text) and len(tokens := _encode(text)) <= max_tokens:
        return text, False
    kept = tokens[:max_tokens]
    while kept:
        # A token may end inside a character; its part is dropped.
        size = len(_encoding().decode_bytes(kept).decode("utf-8", errors="ignore"))
        if not text[size : size + 1].isspace():
            size = max((i for i in range(size - 1, size // 2, -1) if text[i].isspace()), default=size)
        start = text[:size].rstrip()
        # A start of a text is sometimes split differently from the text itself.
        if count_tokens(start) <= max_tokens:
            return start, True
        kept.pop()
    return "", True


def _count(text: str) -> int:
    return len(_encode(text))


_count_remembered = lru_cache(maxsize=_REMEMBERED_TEXTS)(_count)


def _encode(text: str) -> list[int]:
    """Tokens of a text; of a very long one in pieces, each up to a word's beginning where one is near its end."""
    tokens: list[int] = []
    start = 0
    while len(text) - start > _LONGEST_PIECE:
        limit = start + _LONGEST_PIECE
        space = text.rfind(" ", limit - 1000, limit)
        end = space if space > 0 else limit
        tokens += _encoding().encode_ordinary(text[start:end])
        start = end
    return tokens + _encoding().encode_ordinary(text[start:])


@cache
def _encoding() -> Encoding:
    from tiktoken import get_encoding

    spec = find_spec("litellm")
    folders = [Path(root) / _FOLDER for root in (spec.submodule_search_locations if spec else None) or ()]
    folder = next((folder for folder in folders if (folder / _VOCABULARY).is_file()), None)
    if folder is None:
        raise FileNotFoundError(f"litellm's package has no {_FOLDER}/{_VOCABULARY}; is another version installed?")
    with _loading:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            return get_encoding(TOKENIZER)
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


# The parts of a prompt in tokens, so that a table can show where the tokens go.
#
#     PromptParts(context=122, exemplars=803, question=19, written=64, found=310)
#
# Counted with this tokenizer, whatever the model is; the five add up to the whole prompt. In the terms of Xu et al.
# 2023, section 2.2: context is |C|, exemplars are |S|, the question is |Q|, `written` is thoughts and actions
# |T| + |A|, `found` is observations |O|; in a solver's prompt `found` is the plan |P| and the evidence |E| together.


class PromptParts(NamedTuple):
    """Tokens of a prompt by what they are for."""

    context: int = 0
    """Instructions, the tools' descriptions, and the tokens that a chat form adds."""
    exemplars: int = 0
    question: int = 0
    written: int = 0
    """Text of the model in earlier turns: thoughts, actions, drafts of plans."""
    found: int = 0
    """All other text after the question: observations, evidence within its plan, error messages."""


def prompt_parts_of(messages: Sequence[Message], question: str, tools: Sequence[Tool] = ()) -> PromptParts:
    """The parts of a prompt. A prompt without the question, such as an LLM tool's, has no exemplars."""
    parts, is_asked = folded(messages, ("parts", question), partial(_with_message, question), (_NO_MESSAGES, False))
    parts = parts._replace(context=parts.context + sum(map(count_tool, tools)))
    return parts if is_asked else parts._replace(exemplars=0, found=parts.exemplars)


_NO_MESSAGES = PromptParts(context=TOKENS_BEFORE_ANSWER)


def _with_message(question: str, before: tuple[PromptParts, bool], message: Message) -> tuple[PromptParts, bool]:
    """The parts with one message more, and whether the question was there; what comes before it are exemplars."""
    parts, is_asked = before
    size = count_message(message)
    if message.role == "system":
        return parts._replace(context=parts.context + size), is_asked
    if is_asked:
        name = "written" if message.role == "assistant" else "found"
        return parts._replace(**{name: getattr(parts, name) + size}), True
    if not (question and message.role == "user" and question in message.content):
        return parts._replace(exemplars=parts.exemplars + size), False
    others = message.content.replace(question, "").strip()  # a solver's plan and evidence
    rest = count_tokens(others.removeprefix("Question:").removesuffix("Question:").strip())
    return parts._replace(question=size - rest, found=rest), True


def count_prompt(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """Tokens of a prompt, and of the tools that go with it as a provider's API takes them."""
    return count_messages(messages) + sum(map(count_tool, tools))


def count_tool(tool: Tool) -> int:
    """Tokens of a tool as a provider's API takes it: name, description, and schema of the arguments."""
    return _count_schema(tool.name, tool.description, tool.arguments)


@lru_cache(maxsize=256)
def _count_schema(name: str, description: str, arguments: type[BaseModel]) -> int:
    return count_call(name, {"description": description, "parameters": input_schema(arguments)})
