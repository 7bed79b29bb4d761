"""Separate a model's reasoning from its visible text, in every form that models write.

    split("<think>It is in France.</think>Answer: Paris")
    # SplitReply(text="Answer: Paris", thoughts="It is in France.", unclosed=False)

Some servers send the reasoning in a field of its own (responses.py reads it). Others leave it in the text:
between tags, before a closing tag alone (if the prompt's template has opened it), after an opening tag that
is never closed (the reply was cut), or in the channels of the Harmony format
(https://cookbook.openai.com/articles/openai-harmony). Reasoning must never be read as an answer, an
action or a plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

# Opening and closing marks, by the models that write them.
_MARKS = (
    ("<think>", "</think>"),  # DeepSeek R1, Qwen, and most others
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # Gemini behind some gateways
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<|channel>thought", "<channel|>"),  # Gemma
    ("<antThinking>", "</antThinking>"),
    ("<scratchpad>", "</scratchpad>"),
)
_CLOSING = {opening.casefold(): closing.casefold() for opening, closing in _MARKS}
_OPENINGS = frozenset(_CLOSING)
_ANY_MARK = re.compile("|".join(re.escape(mark) for marks in _MARKS for mark in marks), re.IGNORECASE)

_SIGN = re.compile("<|THINK]|◁|analysis")  # a text without any of them has no thoughts in it
_ANSWER_TAGS = re.compile(r"</?answer>", re.IGNORECASE)  # around the visible text, as R1's own prompt asks
_HARMONY = re.compile(r"<\|(start|end|message|channel|constrain|return|call)\|>")
_FINAL = "final"
# Harmony without its special tokens, which some servers drop.
_BARE_HARMONY = re.compile(r"\A\s*+analysis(.*?)assistant\s?final", re.DOTALL)
_BARE_CUT = re.compile(r"\A\s*+analysis[A-Z]")


@dataclass(frozen=True, slots=True)
class SplitReply:
    """The parts of a reply. `unclosed`: it ends inside a thought. `late_close`: it began inside one.

    `calls` holds (tool, arguments as text) of Harmony's tool calls.
    """

    text: str
    thoughts: str = ""
    unclosed: bool = False
    late_close: bool = False
    calls: tuple[tuple[str, str], ...] = ()


def split(text: str, *, cut: bool = False) -> SplitReply:
    """The visible text and the reasoning of a reply. Takes time linear in its length.

    `cut`: the reply was cut for its length. Without it, an opening mark in the middle of a line that is never
    closed is plain text.
    """
    if not _SIGN.search(text):
        return SplitReply(text)
    if _HARMONY.search(text):
        return _split_harmony(text)
    if match := _BARE_HARMONY.match(text):
        return SplitReply(text[match.end() :].strip(), match[1].strip())
    if _BARE_CUT.match(text):
        return SplitReply("", text.strip().removeprefix("analysis"), unclosed=True)
    if _ANY_MARK.search(text):
        return _split_tags(text, cut)
    return SplitReply(text)


def _split_tags(text: str, cut: bool) -> SplitReply:
    """A closing mark without an opening one closes a thought that began before the text."""
    visible: list[str] = []
    thoughts: list[str] = []
    position, visible_from, opened, closing, late_close = 0, 0, 0, "", False
    for match in _ANY_MARK.finditer(text):
        mark = match[0].casefold()
        if closing and mark != closing:
            continue  # another mark inside a thought
        piece = text[position : match.start()]
        if closing:
            thoughts.append(piece)
            closing = ""
        elif mark in _OPENINGS:
            visible.append(piece)
            closing, opened, visible_from = _CLOSING[mark], match.start(), position
        else:
            thoughts += [*visible, piece]
            visible, late_close = [], True
        position = match.end()
    if closing and not cut and text[:opened].rpartition("\n")[2].strip(" \t*>") and _joined(visible):
        visible[-1], closing = text[visible_from:], ""
    else:
        (thoughts if closing else visible).append(text[position:])
    return SplitReply(_ANSWER_TAGS.sub("", _joined(visible)), _joined(thoughts), bool(closing), late_close)


def _joined(pieces: list[str]) -> str:
    return "\n".join(piece.strip() for piece in pieces if piece.strip())


def _split_harmony(text: str) -> SplitReply:
    """Messages such as `<|channel|>analysis<|message|>…<|end|>`; the channel `final` is the answer."""
    visible: list[str] = []
    thoughts: list[str] = []
    calls: list[tuple[str, str]] = []
    marks = list(_HARMONY.finditer(text))
    before = text[: marks[0].start()].strip()
    if before and not before.startswith("assistant"):
        thoughts.append(before)  # the rest of a message that began in the prompt
    header, in_message, closed = "", False, True
    for mark, following in pairwise([*marks, None]):
        assert mark is not None
        piece = text[mark.end() : following.start() if following else len(text)]
        if mark[1] in ("channel", "start", "constrain"):
            header = f"{header} {piece}" if mark[1] != "start" else piece
        elif mark[1] == "message":
            in_message = True
            recipient = re.search(r"to=(?:functions\.)?([\w.-]+)", header)
            closed = following is not None and following[1] in ("end", "return", "call", "start")
            if recipient:
                calls.append((recipient[1], piece.strip()))
            else:
                (visible if _FINAL in header.split() else thoughts).append(piece)
        else:
            header = ""
    if not in_message:  # cut in the middle of a header
        return SplitReply("", _joined([*thoughts, text[marks[-1].end() :]]), unclosed=True)
    return SplitReply(_joined(visible), _joined(thoughts), not closed and not visible and not calls, calls=tuple(calls))
