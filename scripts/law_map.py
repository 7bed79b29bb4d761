"""The map of plan and loop: dollars by look-ups and by tokens of a result, as pictures that follow the reader's theme.

    python scripts/law_map.py        # results/law-*.svg

The numbers are those of the law (rewoo_bench/analysis/law.py), so the files are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from rewoo_bench.analysis.law import estimate

FOLDER = Path(__file__).resolve().parents[1] / "results"
DEPTHS, PAGES = (1, 2, 4, 8, 16), (50, 300, 1500, 6000)
CELL, LEFT, TOP, WIDTH = 78, 70, 78, 400
_STEPS = 60  # of the line where both cost the same
_STYLE = """
text{font:14px system-ui,sans-serif;fill:#1b1b1b} .t{font-weight:600;font-size:15px} .d{fill:#5d5d5d;font-size:12px}
.n{text-anchor:middle} .loop{fill:#e8a27f} .plan{fill:#86b7e0} .same{fill:#e9e9e9}
.tie{fill:none;stroke:#1b1b1b;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#ececec} .d{fill:#a5a5a5} .loop{fill:#94502f} .plan{fill:#2d628f}
.same{fill:#3a3d42} .tie{stroke:#ececec}}
"""


class Map(NamedTuple):
    """A picture: its file, what it says, a price, and the shape of its tasks."""

    name: str
    title: str
    prices: str
    shape: Mapping[str, Any]


MAPS = (
    Map("law-cache", "Read, with a cache: the loop is cheaper", "openai:gpt-5-mini", {}),
    Map("law-no-cache", "Read, no cache: the plan, from a few calls on", "none:gpt-5-mini", {}),
    Map(
        "law-reasoning",
        "Read, with a cache; all but readers reason",
        "openai:gpt-5-mini",
        {"reasoning": 200},
    ),
)


def picture(of: Map) -> str:
    """The map as SVG: a number a cell, the loop's dollars by the plan's, and a line where both cost the same."""
    height = TOP + CELL * len(DEPTHS) // 2 + 64
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(of.title)}</title><style>{_STYLE}</style>",
        f'<text class="t" x="8" y="22">{escape(of.title)}</text>',
        '<text class="d" x="8" y="42">dollars of the loop / dollars of the plan</text>',
        f'<text class="d" x="8" y="{TOP - 10}">calls</text>',
    ]
    numbers: list[str] = []
    for column, page in enumerate(PAGES):
        x = LEFT + CELL * column
        lines.append(f'<text class="d n" x="{x + CELL / 2:g}" y="{TOP - 10}">{page:,}</text>')
        for row, depth in enumerate(DEPTHS):
            ratio = estimate(of.prices, depth=depth, page=page, **of.shape).ratio
            side = "same" if f"{ratio:.2f}" == "1.00" else "loop" if ratio < 1 else "plan"
            y = TOP + CELL / 2 * row
            lines.append(f'<rect class="{side}" x="{x}" y="{y:g}" width="{CELL - 2}" height="{CELL / 2 - 2:g}"/>')
            numbers.append(f'<text class="n" x="{x + CELL / 2 - 1:g}" y="{y + 24:g}">{ratio:.2f}</text>')
    for row, depth in enumerate(DEPTHS):
        lines.append(f'<text class="n" x="{LEFT - 22}" y="{TOP + CELL / 2 * row + 24:g}">{depth}</text>')
    lines += [f'<polyline class="tie" points="{" ".join(line)}"/>' for line in _ties(of) if len(line) > 3]
    lines += numbers
    below = TOP + CELL * len(DEPTHS) // 2
    price = estimate(of.prices).tariff.name
    lines += [
        f'<text class="d" x="{LEFT}" y="{below + 16}">tokens of a result; line: both cost the same</text>',
        f'<rect class="loop" x="8" y="{below + 28}" width="12" height="12"/>',
        f'<text class="d" x="26" y="{below + 39}">loop cheaper</text>',
        f'<rect class="plan" x="112" y="{below + 28}" width="12" height="12"/>',
        f'<text class="d" x="130" y="{below + 39}">plan cheaper</text>',
        f'<text class="d" x="8" y="{below + 57}">{escape(price)}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _ties(of: Map) -> Iterator[list[str]]:
    """The pieces of the line where both cost the same, over the cells: both axes are logarithmic."""
    line: list[str] = []
    first, last = math.log(PAGES[0]), math.log(PAGES[-1])
    for step in range(_STEPS + 1):
        page = math.exp(first + (last - first) * step / _STEPS)
        tie = estimate(of.prices, depth=1, page=page, **of.shape).tie
        if tie is not None and tie <= DEPTHS[-1] * math.sqrt(2):
            line.append(f"{_x(page):.1f},{_y(tie):.1f}")
        elif line:
            yield line
            line = []
    if line:
        yield line


def _x(page: float) -> float:
    """The place of a length of results: columns stand at their middles, and what is between in proportion."""
    column = next(n for n in range(len(PAGES) - 1) if page <= PAGES[n + 1] * 1.000001)
    inside = math.log(page / PAGES[column]) / math.log(PAGES[column + 1] / PAGES[column])
    return LEFT + CELL * (column + 0.5 + inside)


def _y(depth: float) -> float:
    return TOP + CELL / 2 * (math.log2(max(depth, 1)) + 0.5)


def main() -> None:
    for each in MAPS:
        (FOLDER / f"{each.name}.svg").write_text(picture(each), "utf-8")


if __name__ == "__main__":
    main()
