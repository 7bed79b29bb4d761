"""Agents of tests, as functions: the SDKs of OpenAI and Anthropic, in each dialect, streamed and not.

architecture.toml names one of them: `callable = "gateway_agents:chat_streamed"`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import openai.resources  # noqa: F401 - the SDK imports its parts on first use, which threads do at the same time
from anthropic import Anthropic
from gateway_settings import SETTINGS
from openai import AuthenticationError, OpenAI

Agent = Callable[..., str]


@dataclass
class Asking:
    """A question's clients."""

    question: str
    base_url: str
    api_key: str
    model: str

    @property
    def openai(self) -> OpenAI:
        return OpenAI(base_url=self.base_url, api_key=self.api_key, **_limits())

    @property
    def anthropic(self) -> Anthropic:
        return Anthropic(base_url=self.base_url.removesuffix("/v1"), api_key=self.api_key, **_limits())

    def seen(self, events: Any) -> Iterator[Any]:
        for event in events:
            SETTINGS.on_event(self.question, event)
            yield event


def _limits() -> dict[str, Any]:
    return {"timeout": SETTINGS.timeout_s, "max_retries": SETTINGS.max_retries}


def _agent(ask: Callable[[Asking, str], str]) -> Agent:
    """An agent that asks so many times, and answers with the last answer."""

    def answer(question: str, *, base_url: str, api_key: str, model: str, tools: Any) -> str:
        asking = Asking(question, base_url, api_key, model)
        return [ask(asking, f"{number}: {question}") for number in range(SETTINGS.calls)][-1]

    return answer


def _chat(asking: Asking, text: str) -> str:
    with asking.openai as client:
        made = client.chat.completions.create(model=asking.model, messages=[{"role": "user", "content": text}])
    return made.choices[0].message.content or ""


def _chat_streamed(asking: Asking, text: str) -> str:
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if SETTINGS.include_usage else {}
    with asking.openai as client:
        stream = client.chat.completions.create(
            model=asking.model, messages=[{"role": "user", "content": text}], stream=True, **options
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in asking.seen(stream) if chunk.choices)


def _completion(asking: Asking, text: str) -> str:
    with asking.openai as client:
        return client.completions.create(model=asking.model, prompt=text).choices[0].text


def _completion_streamed(asking: Asking, text: str) -> str:
    with asking.openai as client:
        stream = client.completions.create(model=asking.model, prompt=text, stream=True)
        return "".join(chunk.choices[0].text for chunk in asking.seen(stream) if chunk.choices)


def _responses(asking: Asking, text: str) -> str:
    with asking.openai as client:
        return client.responses.create(model=asking.model, input=text).output_text


def _responses_streamed(asking: Asking, text: str) -> str:
    with asking.openai as client:
        stream = client.responses.create(model=asking.model, input=text, stream=True)
        return "".join(e.delta for e in asking.seen(stream) if e.type == "response.output_text.delta")


def _messages(asking: Asking, text: str) -> str:
    with asking.anthropic as client:
        made = client.messages.create(model=asking.model, max_tokens=64, messages=[{"role": "user", "content": text}])
    return "".join(block.text for block in made.content if block.type == "text")


def _messages_streamed(asking: Asking, text: str) -> str:
    with asking.anthropic as client:
        stream = client.messages.create(
            model=asking.model, max_tokens=64, messages=[{"role": "user", "content": text}], stream=True
        )
        events = list(asking.seen(stream))
    return "".join(e.delta.text for e in events if e.type == "content_block_delta" and e.delta.type == "text_delta")


def _gemini(asking: Asking, text: str, verb: str = "generateContent") -> str:
    """As its SDK sends it, the key in a header."""
    address = f"{asking.base_url.removesuffix('/v1')}/v1beta/models/{asking.model}:{verb}"
    body = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    made = httpx.post(address, json=body, headers={"x-goog-api-key": asking.api_key}, timeout=SETTINGS.timeout_s)
    made.raise_for_status()
    documents = made.json()
    candidates = [each["candidates"][0] for each in (documents if isinstance(documents, list) else [documents])]
    return "".join(part["text"] for each in candidates for part in each["content"]["parts"])


def _gemini_streamed(asking: Asking, text: str) -> str:
    return _gemini(asking, text, "streamGenerateContent")


def _everything(asking: Asking, text: str) -> str:
    """All dialects, and the requests that generate nothing."""
    with asking.openai as client:
        embedded = client.embeddings.create(model="text-embedding-3-large", input=text)
        assert [model.id for model in client.models.list()] == [asking.model, embedded.model]
    with asking.anthropic as anthropic:
        counted = anthropic.messages.count_tokens(model=asking.model, messages=[{"role": "user", "content": text}])
        assert counted.input_tokens
    return [ask(asking, text) for ask in (_chat, _chat_streamed, _responses, _messages_streamed, _completion)][-1]


def _same_again(asking: Asking, text: str) -> str:
    """The same request twice, with a client for each: two samples."""
    return [_chat(asking, text), _chat(asking, text)][-1]


def _votes(asking: Asking, text: str) -> str:
    """The same request three times at once: three samples."""
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(_chat(asking, text))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return " | ".join(answers)


def _asks_for_ever(asking: Asking, text: str) -> str:
    for number in range(10_000):
        try:
            _chat(asking, f"{number} {text}")
        except AuthenticationError:  # its question has ended, and so should its thread
            break
        except Exception:  # as a careless agent does
            continue
    return "never"


def _raises(asking: Asking, text: str) -> str:
    raise ValueError("no idea of this")


chat, chat_streamed = _agent(_chat), _agent(_chat_streamed)
completion, completion_streamed = _agent(_completion), _agent(_completion_streamed)
responses, responses_streamed = _agent(_responses), _agent(_responses_streamed)
messages, messages_streamed = _agent(_messages), _agent(_messages_streamed)
gemini, gemini_streamed = _agent(_gemini), _agent(_gemini_streamed)
everything, same_again, votes = _agent(_everything), _agent(_same_again), _agent(_votes)
asks_for_ever, raises = _agent(_asks_for_ever), _agent(_raises)
