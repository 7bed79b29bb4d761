"""A name, a colour and a marker for each architecture, no two alike in one figure.

    looks(["rewoo", "rewoo?max_steps=5"])["rewoo?max_steps=5"].name    # "ReWOO, max steps 5"

Colours are those of Okabe and Ito 2008 (Color Universal Design), without their yellow, which is lost on
white, and four more of Paul Tol's muted scheme; each comes with a marker of its own, so that a grey print
tells as much.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewoo_bench.escaping import one_line

_LINES = 3  # of a name; what is longer loses its end


@dataclass(frozen=True, slots=True)
class Look:
    """An architecture in a figure."""

    name: str
    """As a reader knows it."""
    colour: str
    marker: str

    def wrapped(self, width: int) -> str:
        """The name on up to three lines of at most so many characters."""
        return "\n".join(textwrap.wrap(self.name, width, max_lines=_LINES, placeholder="…")) or self.name


_LOOKS = {
    "rewoo": Look("ReWOO", "#0072B2", "o"),
    "rewoo-json": Look("ReWOO, JSON plan", "#56B4E9", "s"),
    "react": Look("ReAct", "#D55E00", "^"),
    "react-native": Look("ReAct, native calls", "#E69F00", "v"),
    "rewoo-react": Look("ReWOO, then ReAct", "#009E73", "D"),
    "plan-execute": Look("plan-execute", "#CC79A7", "P"),
    "direct": Look("direct", "#000000", "X"),
    "cot": Look("chain of thought", "#7F7F7F", "p"),
}
# For architectures that aren't bundled, variants of bundled ones included; in this order.
_COLOURS = ("#882255", "#332288", "#44AA99", "#999933", *(own.colour for own in _LOOKS.values()))
_MARKERS = ("h", "<", ">", "d", "8", *(own.marker for own in _LOOKS.values()))


def looks(architectures: Iterable[str]) -> dict[str, Look]:
    """A look for each: up to 12 have colours and markers of their own, more have pairs of their own.

    A bundled architecture looks the same everywhere, another one wherever the same ones are drawn.
    """
    names = sorted(set(architectures))
    found = {name: _LOOKS[name] for name in names if name in _LOOKS}
    for name in names:
        if name not in found:
            colour = _least_used(_COLOURS, [own.colour for own in found.values()])
            marker = _least_used(_MARKERS, [own.marker for own in found.values()])
            found[name] = Look(_spoken(name), colour, marker)
    return found


def _least_used(wanted: Sequence[str], used: Sequence[str]) -> str:
    """The first of those that are used least."""
    return min(wanted, key=used.count)


def _spoken(architecture: str) -> str:
    """`rewoo?max_steps=5&schedule=levels` as `ReWOO, max steps 5, schedule levels`."""
    plain, mark, options = one_line(architecture).partition("?")
    if not mark or plain not in _LOOKS:
        return one_line(architecture)
    changes = options.replace("_", " ").replace("=", " ").replace("+", " + ").split("&")
    return ", ".join([_LOOKS[plain].name, *changes])
