"""llama.cpp's prompt cache, played on recorded calls: to check the estimates against what it reported.

A slot holds its last prompt and the answer to it, and a new prompt goes to the slot with the most alike. Where that
would lose more than half of the slot, or no slot is alike, the slot's content is saved in memory first, and the most
alike saved prompt takes its place if more of it can be kept. (llama.cpp, tools/server: `get_available_slot`,
`server_prompt_cache`; its shares 0.1, 0.5 and 0.25 are the constants here.)
"""

from __future__ import annotations

from dataclasses import dataclass

from rewoo_bench.config.price_sheets import CacheRule
from rewoo_bench.repricing.prefix_cache import Found
from rewoo_bench.repricing.recorded import RecordedCall

_ALIKE = 0.1  # of the prompt: the least that a slot has to have of it
_KEPT = 0.5  # of the slot: if less of it would stay, it is saved
_SAVED_ALIKE = 0.25  # of a saved prompt: if less of it is used, it stays where it is


@dataclass(slots=True)
class _Slot:
    """The text in a slot. `until`: when its last answer ended."""

    text: str = ""
    until: float = 0.0


class SlotCache:
    """The slots of one server, with one rule."""

    def __init__(self, rule: CacheRule) -> None:
        self._slots = [_Slot() for _ in range(rule.slots)]
        self._saved_tokens = rule.saved_tokens
        self._saved: list[str] = []
        self._characters_a_token = 4.0

    def send(self, call: RecordedCall) -> list[Found]:
        prompt = "\n\n".join(call.prompt.texts)
        if not prompt or not call.input_tokens:
            return [Found(0, 0)]
        self._characters_a_token = len(prompt) / call.input_tokens
        slot = self._slot(prompt, call.start)
        common = common_prefix(slot.text, prompt)
        slot.text, slot.until = f"{prompt}{call.answer}", call.end
        cached = min(round(call.input_tokens * common / len(prompt)), call.input_tokens - 1)
        return [Found(cached, 0)]

    def _slot(self, prompt: str, now: float) -> _Slot:
        """The slot that takes a prompt."""
        free = [slot for slot in self._slots if slot.until <= now] or [min(self._slots, key=lambda slot: slot.until)]
        best = max(free, key=lambda slot: common_prefix(slot.text, prompt))
        common = common_prefix(best.text, prompt)
        if common <= _ALIKE * len(prompt):
            best = min(free, key=lambda slot: slot.until)
        elif common >= _KEPT * len(best.text):
            return best
        if best.text:
            self._save(best.text)
        best.text = self._restored(best.text, prompt)
        return best

    def _save(self, text: str) -> None:
        if any(saved.startswith(text) for saved in self._saved):
            return
        self._saved = [*(saved for saved in self._saved if not text.startswith(saved)), text]
        while len(self._saved) > 1 and sum(map(len, self._saved)) > self._saved_tokens * self._characters_a_token:
            del self._saved[0]

    def _restored(self, text: str, prompt: str) -> str:
        """The saved prompt that is more alike than the slot's and of which more would stay; else the slot's."""
        common = common_prefix(text, prompt)
        alike, kept = common / len(prompt), common / len(text) if text else -1.0
        chosen = None
        for saved in self._saved:
            common = common_prefix(saved, prompt)
            if common < _SAVED_ALIKE * len(saved):
                continue
            if common / len(saved) > kept and common / len(prompt) > alike:
                chosen, kept, alike = saved, common / len(saved), common / len(prompt)
        if chosen is not None:
            self._saved.remove(chosen)
            return chosen
        return text


def common_prefix(a: str, b: str) -> int:
    """Characters that two texts begin with."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # a[:low] == b[:low], a[:high] != b[:high]
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
