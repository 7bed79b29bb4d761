"""Draws the README's picture: one question, call by call, and what each architecture sends to the model.

    python scripts/question_picture.py            # results/question.svg
    python scripts/question_picture.py --check    # exit code 1 where it is another

The question is generated: four look-ups, each of which needs what the one before found, in results of some 1,500
tokens. The oracle answers, so both make no mistake, and the tokens are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import rewoo_bench

FILE = Path(__file__).parents[1] / "results" / "question.svg"
DATASET = "chain?hops=4&words=1250"
SHOWN = {
    "rewoo-json?slot_tokens=2000&map_tokens=9000": "A plan (ReWOO): all calls are written at once",
    "react-native?observation_tokens=2000": "A loop (ReAct): each turn sends everything again",
}
ROLES = {"planner": "plan", "tool": "read a result", "solver": "answer", "agent": "turn"}
_LEFT, _WIDTH, _ROW = 116, 260, 22
_STYLE = """
text{font:13px system-ui,sans-serif;fill:#1b1b1b} .t{font-weight:600;font-size:14px} .d{fill:#5d5d5d}
.e{text-anchor:end} .new{fill:#2f6fa8} .again{fill:#e0a458}
@media (prefers-color-scheme:dark){text{fill:#ececec} .d{fill:#a5a5a5} .new{fill:#86b7e0} .again{fill:#c98a3a}}
"""


def calls_of_one_question() -> pd.DataFrame:
    """The model calls of both architectures on one question, in their order."""
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        rewoo_bench.bench(
            architectures=list(SHOWN), dataset=DATASET, questions=1, model="oracle", out=run, progress=False,
            report=False,
        )  # fmt: skip
        calls = pd.read_parquet(run / "calls.parquet")
    return calls[calls["kind"] == "model"]


def picture(calls: pd.DataFrame) -> str:
    """A bar for each call: the beginning that an earlier prompt of the question has too, and what follows."""
    scale = _WIDTH / float(calls["input_tokens"].max())
    lines, top = [], 44
    lines += [
        '<rect class="again" x="8" y="8" width="12" height="12"/>'
        '<text x="26" y="19">sent before: a tenth of the price with a cache</text>',
        '<rect class="new" x="336" y="8" width="12" height="12"/><text x="354" y="19">new</text>',
    ]
    for name, title in SHOWN.items():
        own = calls[calls["architecture"] == name]
        lines.append(f'<text class="t" x="8" y="{top + 12}">{title}</text>')
        lines += _bars(own, scale, top + 22)
        top += 22 + _ROW * len(own)
        total, repeated = int(own["input_tokens"].sum()), sum(_repeated(own))
        for words, tokens in (("together", total), ("priced like", round(total - 0.9 * repeated))):
            lines.append(f'<text class="d e" x="{_LEFT - 8}" y="{top + 14}">{words}</text>')
            lines.append(f'<text class="t" x="{_LEFT}" y="{top + 14}">{tokens:,} tokens</text>')
            top += 20
        top += 24
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 430 {top - 20}" role="img">'
    label = "<title>One question: the tokens of each model call</title>"
    return "\n".join([head, f"{label}<style>{_STYLE}</style>", *lines, "</svg>"]) + "\n"


def _repeated(own: pd.DataFrame) -> list[int]:
    """Tokens of each call that an earlier prompt of this question begins with, too.

    The first call of a role repeats what other questions sent, and nothing of this one.
    """
    is_first = ~own["role"].duplicated()
    return [0 if first else int(count) for first, count in zip(is_first, own["cached_input_tokens"], strict=True)]


def _bars(own: pd.DataFrame, scale: float, top: int) -> Iterator[str]:
    """The name, the bar and the number of each call."""
    for at, (call, again) in enumerate(zip(own.to_dict("records"), _repeated(own), strict=True)):
        y, sent = top + _ROW * at, int(call["input_tokens"])
        role = ROLES[call["role"]] + (f" {at + 1}" if call["role"] == "agent" else "")
        yield f'<text class="d e" x="{_LEFT - 8}" y="{y + 13}">{role}</text>'
        yield f'<rect class="again" x="{_LEFT}" y="{y}" width="{again * scale:.1f}" height="16"/>'
        start, width = _LEFT + again * scale, (sent - again) * scale
        yield f'<rect class="new" x="{start:.1f}" y="{y}" width="{width:.1f}" height="16"/>'
        yield f'<text class="d" x="{_LEFT + sent * scale + 6:.1f}" y="{y + 13}">{sent:,}</text>'


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    drawn = picture(calls_of_one_question())
    if options.check:
        return int(not FILE.is_file() or FILE.read_text("utf-8") != drawn)
    FILE.write_text(drawn, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
