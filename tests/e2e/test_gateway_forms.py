"""Agents that speak Gemini's or Ollama's dialect, or use Azure's paths, in the form in which the SDKs send requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
from command_runs import quiet
from dialect_server import DialectServer
from gateway_runs import check_books, rows, run_agents, traces, write_agent, write_questions
from json_server import serving
from open_questions import OpenQuestion, open_question

from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.types import ToolCall, Usage

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning")]
CALL = ServerReply("", tool_calls=[ToolCall("call_7", "search", {"query": "Neva"})])
NEVA = ServerReply("the river Neva", usage=Usage(100, 40, 10, 4))
TURN = {"role": "user", "parts": [{"text": "How long?"}]}
SCHEMA = {"type": "OBJECT", "properties": {"km": {"type": "INTEGER", "nullable": True}}, "required": ["km"]}
DECLARED = {"name": "search", "description": "Searches", "parameters": SCHEMA}
CALL_OF_OLLAMA = {"name": "search", "arguments": {"query": "Neva"}}
AS_JSON = {"type": "object", "properties": {"km": {"type": ["integer", "null"]}}, "required": ["km"]}


@asynccontextmanager
async def asked(
    path: str, body: Any, *replies: str | ServerReply, **options: Any
) -> AsyncIterator[tuple[httpx.Response, ModelServer, OpenQuestion]]:
    """The response to a request, and the provider that was asked, which has only chats."""
    left = list(replies)
    with ModelServer(lambda request: left.pop(0)) as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient(timeout=30) as client:
            yield await client.post(question.address + path, json=body, **options), provider, question


async def test_a_request_to_gemini_is_a_chat_with_its_settings_and_tools() -> None:
    body = {
        "contents": [
            TURN,
            {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {"query": "Neva"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"result": "74 km"}}}]},
        ],
        "systemInstruction": {"parts": [{"text": "Be short."}]},
        "tools": [{"functionDeclarations": [DECLARED]}, {"google_search": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 9,
            "stopSequences": ["."],
            "topK": 3,
            "responseMimeType": "application/json",
            "responseSchema": SCHEMA,
        },
    }
    async with asked("/v1beta/models/gemini-x:generateContent", body, NEVA) as (response, provider, question):
        answer = response.json()
    sent = provider.books[0].request
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert (sent["messages"][3]["content"], sent["messages"][3]["tool_call_id"]) == ("74 km", "call_1")
    assert sent["tools"][0]["function"]["parameters"] == AS_JSON == sent["response_format"]["json_schema"]["schema"]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "search"}}
    assert (sent["temperature"], sent["max_completion_tokens"], sent["stop"]) == (0.5, 9, ["."])
    assert answer["candidates"][0]["content"]["parts"] == [{"text": "the river Neva"}]
    assert answer["candidates"][0]["finishReason"] == "STOP"
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 6, "totalTokenCount": 110}
    assert answer["usageMetadata"] == {**counts, "cachedContentTokenCount": 40, "thoughtsTokenCount": 4}
    assert question.meter.calls[0].usage == NEVA.usage
    notes = question.session.notes
    assert notes["translated"] == notes["asked for the model gemini-x"] == 1
    assert notes["dropped the field generationConfig.topK"] == notes["dropped the field tools.googleSearch"] == 1


@pytest.mark.parametrize("way", ["", "?alt=sse"])
async def test_geminis_stream_has_each_piece_and_ends_with_calls_reason_and_usage(way: str) -> None:
    path = f"/v1/models/gemini-x:streamGenerateContent{way}"
    reply = ServerReply("I look it up", tool_calls=CALL.tool_calls, usage=NEVA.usage)
    async with asked(path, {"contents": [TURN], "tools": [{"functionDeclarations": [DECLARED]}]}, reply) as (got, _, _):
        lines = [line.removeprefix("data: ") for line in got.text.split("\r\n") if line]
        chunks = [json.loads(line) for line in lines] if way else json.loads(got.text)
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert [part["text"] for part in parts[:-1]] == ["I ", "look ", "it ", "up"]
    assert parts[-1]["functionCall"] == {"id": "call_7", "name": "search", "args": {"query": "Neva"}}
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] == 110


@pytest.mark.parametrize("path", ["/v1/models/gemini-x:streamGenerateContent?alt=sse", "/api/chat"])
async def test_a_stream_of_nothing_but_a_call_has_it_once(path: str) -> None:
    body = {"contents": [TURN], "messages": [{"role": "user", "content": "How long?"}]}
    async with asked(path, body, CALL) as (response, _, _):
        first = json.loads(response.text.splitlines()[0].removeprefix("data: "))
    if path == "/api/chat":
        assert first["message"]["tool_calls"] == [{"function": CALL_OF_OLLAMA}]
    else:
        call = {"functionCall": {"id": "call_7", "name": "search", "args": {"query": "Neva"}}}
        assert first["candidates"][0]["content"]["parts"] == [call]


async def test_the_key_of_gemini_and_azure_may_stand_alone() -> None:
    with ModelServer(lambda request: "Neva") as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient() as client:
            root, key = question.address.split("/q/")
            chat = {"messages": [{"role": "user", "content": "Which river?"}]}
            statuses = [
                (await client.post(root + path, json=body, headers=headers)).status_code
                for path, body, headers in (
                    ("/v1beta/models/g:generateContent", {"contents": [TURN]}, {"x-goog-api-key": key}),
                    (f"/v1beta/models/g:generateContent?key={key}", {"contents": [TURN]}, {}),
                    ("/openai/deployments/d/chat/completions?api-version=1", chat, {"api-key": key}),
                    ("/openai/deployments/d/chat/completions?api-version=1", chat, {"api-key": "q-other"}),
                    (f"/q/{key}/api/chat", {**chat, "stream": False}, {"Authorization": "Bearer q-other"}),
                )
            ]
    assert statuses == [200, 200, 200, 401, 401]


async def test_ollamas_chat_is_streamed_as_lines_with_the_counts_in_the_last() -> None:
    body = {
        "model": "llama3",
        "messages": [
            {"role": "user", "content": "How long?", "images": ["iVBORw"]},
            {"role": "assistant", "content": "", "tool_calls": [{"function": CALL_OF_OLLAMA}]},
            {"role": "tool", "content": "74 km", "tool_name": "search"},
        ],
        "options": {"num_predict": 9, "temperature": 0, "num_ctx": 4096},
        "format": AS_JSON,
    }
    async with asked("/api/chat", body, NEVA) as (response, provider, question):
        lines = [json.loads(line) for line in response.text.splitlines()]
    sent = provider.books[0].request
    assert sent["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw"
    assert sent["messages"][1]["tool_calls"][0]["id"] == sent["messages"][2]["tool_call_id"]
    assert (sent["max_completion_tokens"], sent["response_format"]["json_schema"]["schema"]) == (9, AS_JSON)
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [line["message"]["content"] for line in lines] == ["the ", "river ", "Neva", ""]
    assert [line["done"] for line in lines] == [False, False, False, True]
    assert (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"], lines[-1]["done_reason"]) == (100, 10, "stop")
    assert question.session.notes["dropped the field options.num_ctx"] == 1


async def test_ollamas_tool_calls_have_their_arguments_as_objects() -> None:
    body = {"model": "llama3", "stream": False, "messages": [{"role": "user", "content": "How long?"}]}
    async with asked("/api/chat", body, CALL) as (response, _, _):
        message = response.json()["message"]
    assert message["tool_calls"] == [{"function": CALL_OF_OLLAMA}]


GEMINIS_CALL = {"functionCall": {"name": "search", "args": {"query": "Neva"}}}
GEMINIS_RESULT = {"functionResponse": {"name": "search", "response": {"result": "74 km"}}}
TURNS_WITHOUT_IDS: dict[str, tuple[str, Any, list[Any]]] = {
    "/v1beta/models/g:generateContent": (
        "contents",
        TURN,
        [{"role": "model", "parts": [GEMINIS_CALL]}, {"role": "user", "parts": [GEMINIS_RESULT]}],
    ),
    "/api/chat": (
        "messages",
        {"role": "user", "content": "How long?"},
        [
            {"role": "assistant", "content": "", "tool_calls": [{"function": CALL_OF_OLLAMA}]},
            {"role": "tool", "content": "74 km", "tool_name": "search"},
        ],
    ),
}


@pytest.mark.parametrize("path", TURNS_WITHOUT_IDS)
async def test_own_tools_are_read_where_a_dialects_calls_have_no_ids(path: str) -> None:
    field, first, more = TURNS_WITHOUT_IDS[path]
    replies: list[str | ServerReply] = [
        ServerReply("I look.", tool_calls=CALL.tool_calls),
        ServerReply("Once more.", tool_calls=[ToolCall("call_8", "search", {"query": "Neva"})]),
        NEVA,
    ]
    with ModelServer(lambda request: replies.pop(0)) as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient(timeout=30) as client:
            for turns in (0, 1, 2):
                body = {field: [first, *(more * turns)], "stream": False}
                assert (await client.post(question.address + path, json=body)).status_code == 200
    steps = [(step.thought, step.tool, step.argument, step.observation) for step in question.session.steps]
    assert steps == [("I look.", "search", "Neva", "74 km"), ("Once more.", "search", "Neva", "74 km")]


async def test_ollamas_generate_continues_from_a_system_text_and_a_prompt() -> None:
    body = {"model": "llama3", "prompt": "How long?", "system": "Be short.", "stream": False}
    async with asked("/api/generate", body, "74 km") as (response, provider, _):
        assert (response.json()["response"], response.json()["done"]) == ("74 km", True)
    assert [message["content"] for message in provider.books[0].request["messages"]] == ["Be short.", "How long?"]


async def test_ollama_lists_the_runs_model() -> None:
    with ModelServer(lambda request: "") as provider:
        async with open_question(provider.api_base) as question, httpx.AsyncClient() as client:
            tags = (await client.get(f"{question.address}/api/tags")).json()
            version = (await client.get(f"{question.address}/api/version")).json()
    assert [model["model"] for model in tags["models"]] == ["gpt-x"]
    assert version["version"]


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/v1beta/models/g:generateContent", {"contents": [[]]}, {"code": 400, "status": "INVALID_ARGUMENT"}),
        ("/v1beta/models/g:generateContent", [], {"code": 400, "status": "INVALID_ARGUMENT"}),
        ("/v1beta/models/g:nonsense", {}, {"code": 404, "status": "NOT_FOUND"}),
        ("/v1beta/models/g:embedContent", {"content": TURN}, {"code": 400, "status": "INVALID_ARGUMENT"}),
        ("/api/chat", {"messages": [7]}, None),
        ("/api/pull", {"model": "llama3"}, None),
        ("/api/embed", {"model": "e", "input": "x"}, None),
    ],
)
async def test_a_request_that_cannot_be_answered_is_an_error_in_its_own_form(path: str, body: Any, error: Any) -> None:
    async with asked(path, body) as (response, _, _):
        said = response.json()["error"]
    if error is None:
        assert isinstance(said, str)
    else:
        assert {name: said[name] for name in error} == error
        assert response.status_code == error["code"]


async def test_azures_sdk_is_answered_at_its_paths() -> None:
    with DialectServer() as provider:
        async with (
            open_question(provider.api_base) as question,
            openai.AsyncAzureOpenAI(
                azure_endpoint=question.address, api_key=question.session.key, api_version="2024-10-21"
            ) as client,
        ):
            chat: Any = [{"role": "user", "content": "Which river is q01?"}]
            said = await client.chat.completions.create(model="mine", messages=chat)
            made = await client.responses.create(model="mine", input="Which river is q01?")
    assert "river of q01" in str(said.choices[0].message.content)
    assert "river of q01" in made.output_text
    assert [entry.path for entry in provider.books] == ["/chat/completions", "/responses"]
    assert {entry.body["model"] for entry in provider.books} == {"gpt-x"}


def speaks_gemini_and_ollama(question: str, *, base_url: str, api_key: str, model: str, tools: Any) -> str:
    """An agent with a chat and an embedding in each dialect."""
    address = base_url.removesuffix("/v1")

    def post(path: str, body: Any) -> str:
        return httpx.post(address + path, json=body, headers={"x-goog-api-key": api_key}, timeout=30).text

    contents = [{"role": "user", "parts": [{"text": question}]}]
    post("/v1beta/models/g:streamGenerateContent?alt=sse", {"contents": contents})
    embedded = [
        post("/v1beta/models/e:batchEmbedContents", {"requests": [{"content": contents[0]}]}),
        post("/api/embed", {"model": "e", "input": f"again {question}"}),
    ]
    assert json.loads(embedded[0])["embeddings"][0]["values"] == json.loads(embedded[1])["embeddings"][0]
    lines = post("/api/chat", {"model": "llama3", "messages": [{"role": "user", "content": f"once more {question}"}]})
    return "".join(json.loads(line)["message"]["content"] for line in lines.splitlines())


@pytest.mark.usefixtures("own_folder")
def test_a_run_and_its_replay_count_such_an_agent_to_the_token() -> None:
    agent = write_agent("speaks", callable="test_gateway_forms:speaks_gemini_and_ollama")
    with DialectServer() as provider:
        assert run_agents(provider, [agent], "--embedding-model", "openai/embed-x", questions=3) == 0
    check_books(provider)
    assert all(str(row.prediction).startswith(f"the river of {row.example_id}") for row in rows().itertuples())
    assert all(trace["notes"]["gateway"]["translated"] == 4 for trace in traces())
    replay = ("--arch", agent.absolute(), "--model", "replay/out", "--dataset", write_questions(3).absolute())
    assert quiet(*replay, "--out", "again") == 0
    assert list(rows("again").prediction) == list(rows().prediction)
    assert list(rows("again").total_tokens) == list(rows().total_tokens)


@pytest.mark.parametrize("path", ["/v1beta/models/gpt-x:generateContent", "/api/chat"])
@pytest.mark.parametrize("said", [7, {"content": ["odd"], "tool_calls": [{"index": {}, "function": 7}, 7]}])
async def test_what_cannot_be_read_of_an_odd_answer_is_left_out(path: str, said: Any) -> None:
    body = {"contents": [TURN], "messages": [{"role": "user", "content": "How long?"}], "stream": False}
    with serving((200, {"choices": [{"message": said, "finish_reason": 3}], "usage": 9})) as provider:
        async with open_question(provider.address) as question, httpx.AsyncClient(timeout=30) as client:
            response = await client.post(question.address + path, json=body)
    assert response.status_code == 200, response.text


async def test_odd_embeddings_are_a_bad_gateway_in_ollamas_form() -> None:
    with serving((200, {"data": [{"vector": []}], "usage": {"prompt_tokens": 3}})) as provider:
        async with (
            open_question(provider.address, embedding_name="e") as question,
            httpx.AsyncClient(timeout=30) as client,
        ):
            response = await client.post(f"{question.address}/api/embed", json={"model": "e", "input": "Neva"})
    assert response.status_code == 502
    assert "can't be translated" in response.json()["error"]
    assert response.headers["x-should-retry"] == "false"  # the next attempt would get the same
