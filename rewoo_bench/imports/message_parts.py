"""Messages that hold their text and their tools' calls as parts -> messages with content and `tool_calls`.

    {"role": "model", "parts": [{"text": "…"}, {"functionCall": {"name": …, "args": …}}]}      Gemini
    {"role": "assistant", "parts": [{"type": "tool-find", "input": …, "output": …}, …]}        the AI SDK's interface
    {"role": "assistant", "content": [{"type": "tool-call", "toolName": …, "input": …}]}       the AI SDK's models
    {"role": "assistant", "parts": [{"type": "tool_call", "name": …, "arguments": …}]}         the GenAI conventions
    {"type": "gemini", "content": "…", "toolCalls": [{"name": …, "args": …, "result": …}]}     gemini-cli's sessions

A message of an interface may hold several replies with their tools' results between: each is a message here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewoo_bench.imports.record import first_of, known, object_at, objects_at
from rewoo_bench.text.model_output import as_object, objects_in

_GEMINI = ("functioncall", "functionresponse", "executablecode", "codeexecutionresult", "inlinedata", "filedata")
_OF_CONTENT = ("tool-call", "tool-result", "tool_call", "tool_call_response", "tool-invocation", "dynamic-tool")
_THOUGHTS = ("reasoning", "thinking", "thought")
_CODE = "code_execution"  # what Gemini's own runs of code are called here
_ERRORS = ("error", "failed", "output-error", "cancelled")
_OF_ONE_REPLY = {"id", "usage", "tokens", "usageMetadata", "usage_metadata", "cost"}


def with_content(raw: Any) -> Iterator[Any]:
    """The messages of a message with parts; any other as it is."""
    parts = _parts_of(raw) if isinstance(raw, Mapping) else None
    if parts is None:
        yield raw
        return
    facts = {name: value for name, value in raw.items() if name not in ("parts", "toolInvocations", "toolCalls")}
    if isinstance(tokens := raw.get("tokens"), Mapping):
        facts["usage"] = _gemini_usage(tokens)
    for reply in _replies(parts):
        yield from reply.messages(facts)
        facts = {name: value for name, value in facts.items() if name not in _OF_ONE_REPLY}


def _parts_of(raw: Mapping[str, Any]) -> list[Any] | None:
    """The parts of a message; None for one that has content."""
    content = raw.get("content")
    if isinstance(raw.get("parts"), list) and raw["parts"]:
        return list(raw["parts"])
    text = content if isinstance(content, list) else [content] if content else []
    if calls := objects_at(raw, "toolInvocations"):
        return [*({"type": "tool-invocation", "toolInvocation": each} for each in calls), *text]
    if raw.get("type") == "gemini" or (raw.get("type") == "user" and "role" not in raw):
        thoughts = [{"type": "thought", "text": _thought(each)} for each in objects_at(raw, "thoughts")]
        return [*thoughts, *text, *map(_of_gemini_cli, objects_at(raw, "toolCalls"))]
    return text if isinstance(content, list) and any(map(_is_foreign, content)) else None


def _is_foreign(part: Any) -> bool:
    """Whether an item of a content is no part of OpenAI's or Anthropic's messages."""
    return as_object(part).get("type") in _OF_CONTENT or _of_gemini(as_object(part)) is not None


def _of_gemini(part: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The one field of a part of Gemini's, in either spelling (`functionCall`, `function_call`), and its value."""
    fields = ((name.replace("_", "").casefold(), as_object(value)) for name, value in part.items())
    return next((each for each in fields if each[0] in _GEMINI and each[1]), None) if "type" not in part else None


def _thought(thought: Mapping[str, Any]) -> str:
    return "\n".join(str(thought[name]) for name in ("subject", "description") if thought.get(name))


def _of_gemini_cli(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a session as a part."""
    inner = [object_at(each, "functionResponse").get("response") for each in objects_at(call, "result")]
    output = inner[0] if inner and inner[0] is not None else call.get("result")
    return known({"type": "dynamic-tool", "toolCallId": call.get("id"), "toolName": call.get("name"),
                  "input": call.get("args"), "output": output, "state": call.get("status")})  # fmt: skip


def _gemini_usage(tokens: Mapping[str, Any]) -> dict[str, Any]:
    """A session's tokens in the API's own names."""
    names = {
        "input": "promptTokenCount", "output": "candidatesTokenCount", "cached": "cachedContentTokenCount",
        "thoughts": "thoughtsTokenCount", "tool": "toolUsePromptTokenCount", "total": "totalTokenCount",
    }  # fmt: skip
    return {name: tokens[short] for short, name in names.items() if short in tokens}


class _Piece(str):
    """A text of Gemini's: those that follow each other are one text."""


@dataclass
class _Reply:
    """Parts up to where the model is asked again: its own, and its tools' results."""

    content: list[Any] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    def messages(self, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The message, and one with the results."""
        content: list[Any] = []
        for part in self.content:
            is_next = isinstance(part, _Piece) and content and isinstance(content[-1], str)
            content[-1:] = [content[-1] + part] if is_next else [*content[-1:], part]
        if content or self.thoughts or self.calls:
            yield {**facts, "content": content, "tool_calls": self.calls, "reasoning": "\n".join(self.thoughts)}
        if self.results:
            yield {"role": "user", "content": self.results, **known({"timestamp": facts.get("timestamp")})}


def _replies(parts: Sequence[Any]) -> Iterator[_Reply]:
    """The parts by replies: another one begins at a step's mark, and where a model says something after a result."""
    reply = _Reply()
    for part in parts:
        one = _Reply()
        _add(one, part)
        is_step = as_object(part).get("type") == "step-start"
        if is_step or (reply.results and (one.content or one.thoughts)):
            yield reply
            reply = _Reply()
        reply.content += one.content
        reply.thoughts += one.thoughts
        reply.calls += one.calls
        reply.results += one.results
    yield reply


def _add(reply: _Reply, part: Any) -> None:
    """Adds what a part says. What nobody knows is left out, and counted as unread (unread.py)."""
    if not isinstance(part, Mapping):
        reply.content.append(part)
        return
    kind = str(part.get("type") or "")
    if gemini := _of_gemini(part):
        _add_gemini(reply, *gemini)
    elif kind in _THOUGHTS or part.get("thought") is True:
        reply.thoughts.append(str(part.get("text") or part.get("content") or ""))
    elif kind.startswith(("tool-", "tool_call")) or kind == "dynamic-tool":
        _add_tool(reply, kind, object_at(part, "toolInvocation") or part)
    elif kind.startswith(("image", "audio", "video", "file", "document")):
        reply.content.append(part if "url" not in part else {"type": kind})
    elif isinstance(text := part.get("text", part.get("content")), str):
        reply.content.append({"type": "text", "text": text} if kind else _Piece(text))


def _add_gemini(reply: _Reply, kind: str, value: Mapping[str, Any]) -> None:
    if kind == "functioncall":
        reply.calls.append({"id": value.get("id"), "name": value.get("name"), "arguments": value.get("args")})
    elif kind == "functionresponse":
        reply.results.append(_result(value.get("id"), value.get("name"), value.get("response")))
    elif kind == "executablecode":
        reply.calls.append({"id": value.get("id"), "name": _CODE, "arguments": dict(value)})
    elif kind == "codeexecutionresult":  # the provider ran it, in the same reply
        is_failed = value.get("outcome") not in (None, "OUTCOME_OK", "OK", 1)
        reply.content.append({**_result(value.get("id"), _CODE, value.get("output") or ""), "is_error": is_failed})
    else:
        reply.content.append({"type": "file"})


def _add_tool(reply: _Reply, kind: str, part: Mapping[str, Any]) -> None:
    """A tool's call, its result, or both."""
    id_, name = first_of(part, ("toolCallId", "id")), first_of(part, ("toolName", "name")) or kind.removeprefix("tool-")
    is_result = kind in ("tool-result", "tool_call_response")
    if not is_result:
        arguments = first_of(part, ("input", "args", "rawInput", "arguments"))
        reply.calls.append({"id": id_, "name": name, "arguments": arguments})
    output = first_of(part, ("output", "result", "errorText", "error", "response", "content"))
    if is_result or output is not None:
        is_failed = str(part.get("state")) in _ERRORS or bool(part.get("isError"))
        result = _result(id_, name, output, is_failed)
        (reply.content if part.get("providerExecuted") else reply.results).append(result)


def _result(id_: Any, name: Any, value: Any, is_failed: bool = False) -> dict[str, Any]:
    """A result as a part of Anthropic's messages; a value in an object of its own is taken out."""
    if isinstance(value, Mapping) and value.keys() == {"type", "value"}:  # of the AI SDK's models
        value, is_failed = value["value"], is_failed or str(value["type"]).startswith("error")
    if isinstance(value, Mapping) and len(value) == 1 and (only := next(iter(value))) in ("output", "result", "error"):
        value, is_failed = value[only], is_failed or only == "error"
    fields = {"tool_use_id": id_ or "", "name": name or "", "content": value, "is_error": is_failed}
    return {"type": "tool_result", **fields}


# Records of OpenAI's Responses API -> the messages of its chat API.
#
#     {"input": "2 + 2?", "output": [{"type": "message", "role": "assistant", "content": […]}], "usage": {…}}
#
# A reply of the model is several items there: what it reasoned, what it said, and each function that it calls. Here
# they are one message.


_CALLS = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_HOSTED = ("mcp_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
"""Calls of tools that the provider runs: their results are in the same items."""
_OF_REPLIES = ("reasoning", *_CALLS, *_HOSTED)
_RESULTS = tuple(f"{each}_output" for each in _CALLS)
ITEMS = (*_OF_REPLIES, *_RESULTS, "message", "mcp_list_tools")


def input_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a request's `input`; None for what is no request of this interface.

    A request alone needs a list of items and a model, since data sets have fields of the name `input`, too.
    """
    given = record.get("input")
    if isinstance(given, str) and given and output_of(record) is not None:
        return [{"role": "user", "content": given}]
    if not (isinstance(given, list) and given and _is_item(given[0])):
        return None
    return messages_of_items(given) if output_of(record) is not None or record.get("model") else None


def output_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The items of a response; None where there are none."""
    found = record.get("output")
    return found if isinstance(found, list) and found and _is_item(found[0]) else None


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") in ITEMS or isinstance(value.get("role"), str))


def messages_of_items(items: Iterable[Any]) -> list[Any]:
    """Items as messages; those that follow each other in a reply as one."""
    found: list[Any] = []
    reply: dict[str, Any] | None = None
    for item in items:
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _OF_REPLIES or (isinstance(item, Mapping) and item.get("role") == "assistant"):
            if reply is None:
                reply = {"role": "assistant", "content": [], "tool_calls": [], "reasoning": ""}
                found.append(reply)
            _add_item(reply, item)
        elif kind in _RESULTS:
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
            reply = None
        elif not isinstance(item, Mapping) or "role" in item:
            found.append(item)
            reply = None
    return found


def _add_item(reply: dict[str, Any], item: Mapping[str, Any]) -> None:
    """Adds an item to a reply."""
    content = item.get("content")
    if item.get("type") in (*_CALLS, *_HOSTED):
        call = _called(item)
        reply["tool_calls"].append(call)
        result = next((item[name] for name in ("error", "output", "outputs", "results") if item.get(name)), None)
        if item["type"] in _HOSTED and result is not None:
            part = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
            reply["content"].append({**part, "is_error": bool(item.get("error"))})
    elif item.get("type") == "reasoning":
        parts = [*objects_at(item, "summary"), *objects_in(content)]
        texts = [str(part["text"]) for part in parts if part.get("text")]
        reply["reasoning"] = "\n".join(filter(None, [reply["reasoning"], *texts]))
    else:
        reply["content"] += content if isinstance(content, list) else [content]


def _called(item: Mapping[str, Any]) -> dict[str, Any]:
    """The tool call of an item, in the flat form with name and arguments."""
    given = first_of(item, ("arguments", "input", "action", "code", "queries", "operation"))
    name = item.get("name") or str(item.get("type")).removesuffix("_call")
    return {"id": item.get("call_id") or item.get("id"), "name": name, "arguments": given}
