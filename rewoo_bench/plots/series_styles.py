"""A name, a colour and a marker for each architecture, no two alike in one figure.

    series_styles(["rewoo", "rewoo?max_steps=5"])["rewoo?max_steps=5"].name    # "ReWOO, max steps 5"

Colours are those of Okabe and Ito 2008 (Color Universal Design), without their yellow, which is invisible on
white, and five more of Paul Tol's muted scheme. Each has its own marker, so that a grey print is readable too.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewoo_bench.escaping import one_line

_LINES = 3  # of a name; what is longer loses its end


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """Name, colour and marker of an architecture."""

    name: str
    """The name for readers."""
    colour: str
    marker: str

    def wrapped(self, width: int) -> str:
        """The name on up to three lines of at most `width` characters."""
        return "\n".join(textwrap.wrap(self.name, width, max_lines=_LINES, placeholder="…")) or self.name


_STYLES = {
    "rewoo": SeriesStyle("ReWOO", "#0072B2", "o"),
    "rewoo-json": SeriesStyle("ReWOO, JSON plan", "#56B4E9", "s"),
    "react": SeriesStyle("ReAct", "#D55E00", "^"),
    "react-native": SeriesStyle("ReAct, native calls", "#E69F00", "v"),
    "rewoo-react": SeriesStyle("ReWOO, then ReAct", "#009E73", "D"),
    "router": SeriesStyle("router", "#AA4499", "*"),
    "plan-execute": SeriesStyle("plan-execute", "#CC79A7", "P"),
    "llmcompiler": SeriesStyle("LLMCompiler", "#882255", "h"),
    "direct": SeriesStyle("direct", "#000000", "X"),
    "cot": SeriesStyle("chain of thought", "#7F7F7F", "p"),
}
# For other architectures, including variants of bundled ones; in this order.
_COLOURS = ("#332288", "#44AA99", "#999933", *(own.colour for own in _STYLES.values()))
_MARKERS = ("<", ">", "d", "8", *(own.marker for own in _STYLES.values()))


def series_styles(architectures: Iterable[str]) -> dict[str, SeriesStyle]:
    """A style for each: up to 13 have unique colours and markers, more have unique pairs.

    A bundled architecture has the same style everywhere, another one wherever the same architectures are drawn.
    """
    names = sorted(set(architectures))
    found = {name: _STYLES[name] for name in names if name in _STYLES}
    for name in names:
        if name not in found:
            colour = _least_used(_COLOURS, [own.colour for own in found.values()])
            marker = _least_used(_MARKERS, [own.marker for own in found.values()])
            found[name] = SeriesStyle(_readable_name(name), colour, marker)
    return found


def _least_used(wanted: Sequence[str], used: Sequence[str]) -> str:
    """The first of the least used."""
    return min(wanted, key=used.count)


def _readable_name(architecture: str) -> str:
    """`rewoo?max_steps=5&schedule=levels` as `ReWOO, max steps 5, schedule levels`."""
    plain, mark, options = one_line(architecture).partition("?")
    if not mark or plain not in _STYLES:
        return one_line(architecture)
    changes = options.replace("_", " ").replace("=", " ").replace("+", " + ").split("&")
    return ", ".join([_STYLES[plain].name, *changes])
