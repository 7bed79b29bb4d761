"""A figure that is drawn, and what else the command may say about it."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from rewoo_bench.escaping import markdown
from rewoo_bench.plots.style import finish


@dataclass(frozen=True, slots=True)
class Options:
    """What a figure may be told; most figures need none of it."""

    pair: tuple[str, str] = ("react", "rewoo")
    """The architectures that `ratio` compares and whose formulas `steps` draws."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and its caption, which stands in it too."""

    figure: Figure
    title: str
    caption: str

    @property
    def markdown(self) -> str:
        """Title and caption for captions.md: names in them may come from somebody else's run."""
        return f"**{markdown(self.title)}.** {markdown(self.caption)}"


def picture(figure: Figure, title: str, *sentences: str, facts: str) -> Picture:
    """The figure with its title and caption put in; sentences that are empty are left out."""
    text = " ".join(sentence for sentence in sentences if sentence)
    finish(figure, title, text, facts)
    return Picture(figure, title, f"{text} {facts.replace(chr(10), '; ')}")
