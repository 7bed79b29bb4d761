"""A drawn figure with its title and caption, and the options of figures."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from rewoo_bench.escaping import markdown
from rewoo_bench.plots.style import finish


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """Options of figures; most figures need none."""

    pair: tuple[str, str] = ("react", "rewoo")
    """The architectures that `ratio`, `cache` and `cache-map` compare and that `steps` draws formulas for."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and its caption, which is also in the figure."""

    figure: Figure
    title: str
    caption: str

    @property
    def markdown(self) -> str:
        """Title and caption for captions.md, escaped: names in them may come from another person's run."""
        return f"**{markdown(self.title)}.** {markdown(self.caption)}"


def picture(figure: Figure, title: str, *sentences: str, facts: str) -> Picture:
    """The figure with its title and caption; empty sentences are left out."""
    text = " ".join(sentence for sentence in sentences if sentence)
    finish(figure, title, text, facts)
    return Picture(figure, title, f"{text} {facts.replace(chr(10), '; ')}")
