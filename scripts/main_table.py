"""The table on the README's first screen, made from a committed run.

    python scripts/main_table.py            # writes it between the README's two marks
    python scripts/main_table.py --check    # exit code 1 where the README has another

A row an architecture: exact match, tokens, model calls, and dollars under each price of `SHOWN`. Below it, ReAct's
tokens and dollars as multiples of ReWOO's, what loops have to do with it, and the rule of each cache.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rewoo_bench import compare, load
from rewoo_bench.analysis.pairs import bounds
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.analysis.stats.paired import Interval, mean_of, ratio_of_means
from rewoo_bench.analysis.summary import Estimate, summaries_of
from rewoo_bench.runs.rows import left_out

ROOT = Path(__file__).parents[1]
RUN = "hotpotqa-qwen-1.5b-100"
ARCHITECTURES = ("rewoo", "react", "direct", "cot")
_MARKS = re.compile(r"(<!-- main table: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


def table(run: Path) -> str:
    """The table as Markdown, and what it says of ReAct and ReWOO."""
    rows = load(run)
    prices = priced_rows([run], rows, [[name] for name in SHOWN])
    _, openai, anthropic = (each.tariffs[0][""] for each in prices)
    amounts = rows[["example_id", "architecture", "total_tokens"]].assign(
        **{name: 1000 * each.usd for name, each in zip(SHOWN, prices, strict=True)}
    )[~left_out(rows)]
    by_question = amounts.pivot_table(index="example_id", columns="architecture", observed=True)

    def shown(estimate: Estimate | Interval, form: str = ".2f") -> str:
        middle = estimate.mean if isinstance(estimate, Estimate) else estimate.estimate
        return f"{middle:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"

    def cells(name: str) -> list[str]:
        (own,) = summaries_of(rows[rows["architecture"] == name])
        tokens, *dollars = (mean_of(by_question[each, name].dropna()) for each in ("total_tokens", *SHOWN))
        measured = [shown(own.exact_match), shown(tokens, ",.0f"), f"{own.llm_calls:.2f}"]
        return [name, *measured, *map(shown, dollars)]

    def ratio(column: str) -> str:
        both = by_question[column][["rewoo", "react"]].dropna()
        return bounds(ratio_of_means(both["rewoo"], both["react"]), 1.0)

    (pair,) = [each for each in compare(rows, intersect=True).pairs if (each.a, each.b) == ("rewoo", "react")]
    answered = pair.both_answered
    assert answered
    react = rows[rows["architecture"] == "react"]
    looping = react[react["loop_step"].notna()]
    share, loops = (looping[each].sum() / react["total_tokens"].sum() for each in ("total_tokens", "loop_tokens"))
    heads = ["", "exact match [95% CI]", "tokens", "model calls", *(f"$, {title}" for title in SHOWN.values())]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *map(cells, ARCHITECTURES)]
    text = [
        f"{rows['example_id'].nunique()} HotpotQA questions, Qwen2.5-Coder-1.5B on a CPU "
        f"([run](results/models/{run.name}), with [older forms](results/models/README.md#results) of the agents). "
        f"$ are for 1,000 questions at {openai.model}'s prices, under Anthropic's rule {anthropic.model}'s.",
        "",
        f"- **Tokens.** ReAct took {ratio('total_tokens')} times ReWOO's, {bounds(answered, 1.0)} times where both "
        f"answered (n = {answered.n}). {len(looping)} of its questions end in a loop; they hold {share:.0%} of its "
        f"tokens, the loops alone {loops:.0%}.",
        f"- **Dollars.** ReAct cost {ratio('none')} times as much without a cache, {ratio('openai')} under OpenAI's "
        f"rule ({openai.rule}) and {ratio('anthropic-5m')} under Anthropic's ({anthropic.rule})."
        + " What can be cached is taken from what llama.cpp's cache found, and nothing expires."
        * prices[0].stands_in,
    ]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *text])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    options = parser.parse_args(arguments)
    before = options.readme.read_text(encoding="utf-8")
    made = table(ROOT / "results" / "models" / RUN)
    after, count = _MARKS.subn(lambda marks: f"{marks[1]}{made}\n{marks[2]}", before)
    if count != 1:
        parser.error(f"{options.readme} has {count} places for the table, not one")
    if options.check:
        return int(before != after)
    options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
