"""The gateway's requests and answers over HTTP: bodies, keys, errors in the form of each dialect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewoo_bench.agents import gemini, ollama
from rewoo_bench.models.hosted.dialects import MESSAGES, OF_ANTHROPIC, error_body
from rewoo_bench.models.hosted.event_stream import load_json
from rewoo_bench.wire_request import NO_FIELDS

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_REQUEST = 64 << 20  # bytes
KEY_PREFIX = "q-"
AZURE = "/openai/"
AZURE_VERSION = "2024-10-21"  # the stable one; the gateway reads none
_KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key", "Authorization")
_AZURE = re.compile(rf"{AZURE[:-1]}(?:/deployments/(?P<model>[^/]+))?(?=/)")


class BadRequest(Exception):
    """A request that can't be read or passed on, and the status to answer with."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def read_json(request: web.Request) -> tuple[bytes, Any]:
    """The body of a request, and its JSON. Raises `BadRequest`."""
    from aiohttp import web

    try:
        data = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise BadRequest(f"the request has more than {LARGEST_REQUEST >> 20} MB", 413) from None
    except web.RequestPayloadError as error:
        raise BadRequest(f"the body of the request can't be read: {error}") from None
    try:
        return data, load_json(data)
    except ValueError as error:
        raise BadRequest(f"the request isn't JSON that can be read: {error}") from None


def dialect_of(path: str) -> tuple[str, str | None]:
    """A path as OpenAI and Anthropic have it, and the deployment in one of Azure's."""
    found = _AZURE.match(path)
    plain = path[found.end() :] if found else path
    return plain.removeprefix("/v1"), found["model"] if found else None


def keys_in(request: web.Request) -> set[str]:
    """The keys of questions that a request names: in its address, its headers, and Gemini's query."""
    headers = (request.headers.get(name, "").removeprefix("Bearer ") for name in _KEY_HEADERS)
    named = (request.match_info.get("key"), *headers, request.query.get("key"))
    return {key for key in named if key and key.startswith(KEY_PREFIX)}


def is_retry(request: web.Request) -> bool:
    """Whether an SDK makes its request again; the header is that of Stainless's SDKs."""
    return request.headers.get("x-stainless-retry-count", "0") not in ("", "0")


def model_object(name: str) -> dict[str, Any]:
    """A model in the lists of OpenAI, Anthropic and Gemini."""
    methods = ["generateContent", "countTokens"]
    of_gemini = {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}
    return {"id": name, "object": "model", "created": 0, "owned_by": "rewoo_bench", "type": "model", **of_gemini}


def json_response(value: Any, status: int = 200) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, body=json.dumps(value).encode(), content_type="application/json")


def error_response(
    path: str,
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    fields: Mapping[str, str | int] = NO_FIELDS,
) -> web.Response:
    """An error in the form of the path's dialect."""
    from aiohttp import web

    if path.startswith(ollama.ROOT):
        body: dict[str, Any] = {"error": message}
    elif gemini.PATH.fullmatch(path):
        body = gemini.error_body(status, message)
    else:
        dialect, _ = dialect_of(path)
        of_messages = dialect.startswith(MESSAGES) and dialect not in OF_ANTHROPIC
        body = error_body(MESSAGES if of_messages else dialect, status, message, fields)
    text = json.dumps(body).encode()
    return web.Response(status=status, body=text, content_type="application/json", headers=headers)
