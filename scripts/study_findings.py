"""The findings in results/models/README.md: sentences with numbers computed from the runs.

python scripts/study_findings.py            # writes them between the README's two marks
python scripts/study_findings.py --check    # exit code 1 where the README has others
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rewoo_bench import load
from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import Comparison, System
from rewoo_bench.analysis.pairs import PRICED, Pair, Pricing, bounds
from rewoo_bench.analysis.prices import SHOWN, STAND_IN, cached_tokens, priced_rows, read_calls
from rewoo_bench.analysis.stats.paired import difference_of_proportions
from rewoo_bench.analysis.stats.tests import mcnemar_exact
from rewoo_bench.analysis.summary import loops_text, valid_first_plans
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.runs.folder import CALLS_FILE, manifests
from rewoo_bench.runs.manifest import read_manifest

if TYPE_CHECKING:
    import pandas as pd

RESULTS = Path(__file__).parents[1] / "results" / "models"
_PLACE = re.compile(r"(<!-- findings: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)

BIG_HOTPOT, BIG_TRIVIA = "hotpotqa-qwen-1.5b-100", "triviaqa-qwen-1.5b-100"
BIG_EIGHT, BIG_SAMPLE = "hotpotqa-qwen-1.5b-eight", "sample-qwen-1.5b-eight"
SMALL_HOTPOT, SMALL_TRIVIA = "hotpotqa-smollm2-135m-300", "triviaqa-smollm2-135m-300"
BASE_HOTPOT, BASE_TRIVIA = "hotpotqa-gemma-3-270m", "triviaqa-gemma-3-270m"
GUARD = "guard-qwen-1.5b"
NAMES = {
    BIG_HOTPOT: "1.5B, HotpotQA",
    BIG_TRIVIA: "1.5B, TriviaQA",
    BIG_SAMPLE: "1.5B, bundled sample",
    SMALL_HOTPOT: "135M, HotpotQA",
    SMALL_TRIVIA: "135M, TriviaQA",
    "sample-smollm2-135m": "135M, bundled sample",
    BASE_HOTPOT: "270M base, HotpotQA",
    BASE_TRIVIA: "270M base, TriviaQA",
}
RATES = ("0", "0.25", "0.5", "1")
"""Of the runs with failing tools."""


def rules() -> str:
    """The prices of the tables by their names, a sentence each."""
    return " ".join(f"{under[0].upper()}{under[1:]}." for under in (named_tariff(name).under for name in SHOWN))


@cache
def rows_of(run: str) -> pd.DataFrame:
    return load(RESULTS / run)


@cache
def calls_of(run: str) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(RESULTS / run / CALLS_FILE)


@cache
def dollars_of(run: str, price: str) -> Pricing:
    (found,) = priced_rows([RESULTS / run], rows_of(run), [[price]])
    return Pricing(cost_usd=found.usd)


@cache
def comparison(run: str, price: str = "") -> Comparison:
    """The run's architectures, with their dollars under a named price where one is given."""
    pricing = dollars_of(run, price) if price else None
    return compare(rows_of(run), manifests=manifests(RESULTS / run), intersect=True, pricing=pricing)


def system(run: str, architecture: str) -> System:
    (found,) = [each for each in comparison(run).systems if each.summary.architecture == architecture]
    return found


def pair(run: str, b: str, a: str = "rewoo", price: str = "") -> Pair:
    (found,) = [each for each in comparison(run, price).pairs if (each.a, each.b) == (a, b)]
    return found


def ratio(run: str, b: str = "react", a: str = "rewoo", price: str = "") -> str:
    """`3.36 [2.91, 3.96]`: b / a with its 95% interval, of tokens, or of dollars under a named price."""
    return bounds(pair(run, b, a, price)[PRICED if price else "total_tokens"].interval, 1.0)


def cached(run: str, architecture: str, price: str) -> str:
    """`83%`: the share of input tokens that the cache of a named price holds."""
    rows = rows_of(run)
    calls = read_calls(RESULTS / run, rows[rows["architecture"] == architecture])
    found, _ = cached_tokens(calls.columns, named_tariff(price).rule)
    return f"{found.sum() / calls.columns['input_tokens'].sum():.0%}"


def exact_match(run: str, architecture: str) -> str:
    found = system(run, architecture).summary.exact_match
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def tokens(run: str, architecture: str) -> str:
    return f"{system(run, architecture).summary.total_tokens:,.0f}"


def discordant(run: str, b: str = "react", a: str = "rewoo") -> str:
    """`17 questions only rewoo, 7 only react; p = 0.064, after Holm 0.19`."""
    figure = pair(run, b, a)["exact_match"]
    if figure.discordant is None:
        raise ValueError(f"{run}: no test of exact match between {a} and {b}")
    counts = f"{figure.discordant.only_a} questions only {a}, {figure.discordant.only_b} only {b}"
    return f"{counts}; p {_p(figure.p)}, after Holm {_p(figure.p_holm)}"


def repeated(run: str) -> str:
    """`15 of 15 do so; these hold 41% of ReAct's tokens, the loops alone 19%`: of questions at the step limit."""
    rows = rows_of(run)[rows_of(run)["architecture"] == "react"]
    at_limit = rows[rows["stop_reason"] == "step_limit"]
    share = at_limit["total_tokens"].sum() / rows["total_tokens"].sum()
    loops = f"{at_limit['loop_step'].notna().sum()} of {len(at_limit)} do so"
    in_loops = system(run, "react").summary.loop_token_share
    return f"{loops}; the {len(at_limit)} hold {share:.0%} of ReAct's tokens, the loops alone {in_loops:.0%}"


def guarded() -> str:
    """What a guard against loops changes; nothing where its run isn't there."""
    if not (RESULTS / GUARD).is_dir():
        return ""
    clauses = []
    for guard in ("nudge", "stop"):
        both = pair(GUARD, f"react?repeat_guard={guard}", "react")
        one, score = system(GUARD, both.b).summary, both["exact_match"].interval
        difference = f"{score.estimate:+.2f} [{score.low:+.2f}, {score.high:+.2f}]"
        clauses.append(
            f"with `{guard}` {bounds(both['total_tokens'].interval, 1.0)} times the tokens, {one.loop_token_share:.0%} "
            f"of them in loops, and exact match {difference}"
        )
    plain = system(GUARD, "react").summary
    return (
        f"\n- **A guard against loops** (`{GUARD}`, {plain.total} questions), against ReAct without one, which has "
        f"{plain.loop_token_share:.0%} of its tokens in loops: {'; '.join(clauses)}."
    )


def forms() -> str:
    """Where the runs' settings, as run.json has them, aren't the papers'."""
    said: dict[str, set[str]] = {"solver": set(), "direct": set(), "replans": set(), "limit": set()}
    for run in NAMES:
        named = {each.name: each for each in read_manifest(RESULTS / run).architectures}
        said["solver"].add(str((named["rewoo"].exemplars or {}).get("solver", 0)))
        said["direct"].add(str((named["direct"].exemplars or {}).get("answer", 0)))
        said["replans"].add(str((named["rewoo"].settings or {})["max_replans"]))
        react = named["react"].settings or {}  # the setting had another name in older runs
        said["limit"].add("is" if react.get("answer_at_limit", react.get("partial_answer")) else "isn't")
    solver, direct, replans, limit = (" or ".join(sorted(values)) for values in said.values())
    asked, failing = limited(NAMES), limited(f"failure-smollm2-135m/{rate}" for rate in RATES)
    return (
        f"All runs but `{GUARD}` are older than today's defaults, the papers' forms. In the {len(NAMES)} runs of the next "
        f"table the number of exemplars of ReWOO's solver is {solver}, of direct prompting {direct} (the paper's have "
        f"none), and the number of new plans that ReWOO may make {replans} (the paper's: 0). At the step limit ReAct "
        f"{limit} asked for an answer (the paper's isn't). Of its questions that ended there {asked} have a right one in "
        f"these runs, and {failing} in the runs with failing tools."
    )


def limited(runs: Iterable[str]) -> str:
    """`3 of 174`: ReAct's questions at the step limit that have a right answer."""
    react = "architecture == 'react' and stop_reason == 'step_limit'"
    right = [score for run in runs for score in rows_of(run).query(react)["exact_match"]]
    return f"{sum(right)} of {len(right)}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def ended(run: str, architecture: str, reason: str) -> str:
    summary = system(run, architecture).summary
    return f"{summary.not_answered.get(reason, 0)} of {summary.total}"


def sound(run: str, architecture: str) -> tuple[int, int]:
    """Number of questions with a valid first plan, and of all questions."""
    rows = rows_of(run)[rows_of(run)["architecture"] == architecture]
    return int(valid_first_plans(rows).sum()), len(rows)


def costs() -> str:
    heads = ["run", "n", "tokens", "tokens where both answered (n)", *(f"dollars, {title}" for title in SHOWN.values())]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for run, name in NAMES.items():
        n = pair(run, "react")["total_tokens"].interval.n
        some = pair(run, "react").both_answered
        answered = f"{bounds(some, 1.0)} ({some.n})" if some else ""
        lines.append([name, str(n), ratio(run), answered, *(ratio(run, price=price) for price in SHOWN)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def accuracies() -> str:
    lines = [
        "| run | rewoo | react | direct | only rewoo / only react | p | after Holm | detectable |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run, name in NAMES.items():
        figure = pair(run, "react")["exact_match"]
        if figure.discordant is None or figure.detectable is None:
            raise ValueError(f"{run}: no test of exact match")
        shares = " | ".join(exact_match(run, each) for each in ("rewoo", "react", "direct"))
        counts = f"{figure.discordant.only_a} / {figure.discordant.only_b}"
        tests = f"{_p(figure.p)} | {_p(figure.p_holm)} | {figure.detectable:.3f}"
        lines.append(f"| {name} | {shares} | {counts} | {tests} |")
    return "\n".join(lines)


def exemplars() -> str:
    """A row for each number of exemplars: what ReAct does, and its multiples of ReWOO's tokens and dollars."""
    lines = [
        "| exemplars | ReAct's tool calls | ReAct in loops (of tokens) | tokens | tokens where both answered (n) | "
        "dollars, OpenAI's rule |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    run = "ablation-smollm2-135m"
    rows, usd = rows_of(run), dollars_of(run, "openai").cost_usd
    assert usd is not None
    for number in (0, 1, 2, 6):
        react, rewoo = (f"{each}?max_exemplars={number}" for each in ("react", "rewoo"))
        some = rows["architecture"].isin([rewoo, react])
        both = compare(rows[some], baseline=rewoo, pricing=Pricing(cost_usd=usd[some]))
        (its,) = [each.summary for each in both.systems if each.summary.architecture == react]
        (found,) = both.pairs
        answered = f"{bounds(found.both_answered, 1.0)} ({found.both_answered.n})" if found.both_answered else "all"
        ratios = [bounds(found[each].interval, 1.0) for each in ("total_tokens", PRICED)]
        shown = [f"{number}", f"{its.tool_calls:.2f}", loops_text(its), ratios[0], answered, ratios[1]]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def failing() -> str:
    lines = ["| share of tool calls with an empty result | rewoo | react | rewoo-react |", "|---:|---:|---:|---:|"]
    for rate in RATES:
        run = f"failure-smollm2-135m/{rate}"
        cells = [
            f"{tokens(run, each)} / {system(run, each).summary.llm_calls:.2f} / {exact_match(run, each)}"
            for each in ("rewoo", "react", "rewoo-react")
        ]
        lines.append(f"| {rate} | {' | '.join(cells)} |")
    return "\n".join(lines)


def unsettled(run: str) -> str:
    """ReWOO with evidence and without: `48 of 50 questions score the same`. Raises where its accuracy differs."""
    scores = [
        rows.set_index("example_id")["exact_match"]
        for rows in (rows_of(f"{run}/{rate}").query("architecture == 'rewoo'") for rate in RATES)
    ]
    if len({each.mean() for each in scores}) > 1:
        raise ValueError(f"{run}: the accuracy of ReWOO depends on the evidence")
    same = int((scores[0] == scores[-1].reindex(scores[0].index)).sum())
    return f"{scores[0].mean():.3f} at every rate, and {same} of {len(scores[0])} questions score the same"


def offered() -> str:
    """Exact match and tokens of ReWOO with one to four tools."""
    run = "tools-smollm2-135m"
    names = ["rewoo?tools=Search", "rewoo", "rewoo?tools=Search+LLM+Lookup", "rewoo?tools=Search+LLM+Lookup+Calculator"]
    return ", ".join(f"{exact_match(run, name)} at {tokens(run, name)} tokens" for name in names)


def undetected() -> str:
    """What difference of exact match between numbers of tools the run would detect: about all of the accuracy.

    Raises `ValueError` where it is less, or where there is one.
    """
    figures = [each["exact_match"] for each in comparison("tools-smollm2-135m").pairs]
    sizes = [each.detectable for each in figures if each.detectable is not None and math.isfinite(each.detectable)]
    means = [each.summary.exact_match.mean or 0.0 for each in comparison("tools-smollm2-135m").systems]
    if any(each.p_holm < 0.05 for each in figures) or min(sizes) < max(means):
        raise ValueError("tools-smollm2-135m: the run can test it")
    shown = " to ".join(dict.fromkeys(f"{size:.3f}" for size in (min(sizes), max(sizes))))
    return f"The smallest difference that would be detected 4 times in 5 is {shown}, as large as the accuracy itself."


def unfinished() -> str:
    """How much of the ratio is of questions that one of the two doesn't finish. Raises where it isn't most of it."""
    clauses = []
    for run, is_most in ((BIG_TRIVIA, True), (BASE_TRIVIA, True), (BIG_HOTPOT, False), (BASE_HOTPOT, False)):
        found = pair(run, "react")
        whole, some = found["total_tokens"].interval.estimate, found.both_answered
        if some is None or ((whole - some.estimate) / (whole - 1) > 0.5) != is_most:
            raise ValueError(f"{run}: most of the ratio is of other questions")
        clauses.append(f"{whole:.2f} becomes {some.estimate:.2f} ({NAMES[run]})")
    return "; ".join(clauses)


def dearer() -> str:
    """`7 of these 8 rows: 2.33 to 3.36 times`: where ReAct takes more tokens, as the data show."""
    ratios = [pair(run, "react")["total_tokens"].interval for run in NAMES]
    more = [each.estimate for each in ratios if each.low > 1]
    return f"{len(more)} of these {len(ratios)} rows: {min(more):.2f} to {max(more):.2f} times"


def cheaper(price: str) -> str:
    """`ReAct takes fewer dollars in 5 of these 8 rows, ReWOO in 2`: as the intervals under a named price show."""
    ratios = [pair(run, "react", price=price)[PRICED].interval for run in NAMES]
    react, rewoo = sum(each.high < 1 for each in ratios), sum(each.low > 1 for each in ratios)
    return f"ReAct takes fewer dollars in {react} of these {len(ratios)} rows, ReWOO in {rewoo}"


def ahead() -> str:
    """`ReWOO is ... ahead in 2 of these 8 rows (...), ReAct in none`, after Holm."""
    tested = {NAMES[run]: pair(run, "react")["exact_match"] for run in NAMES}
    rewoo, react = (
        [name for name, each in tested.items() if each.p_holm < 0.05 and sign * each.interval.estimate > 0]
        for sign in (-1, 1)
    )
    said = [f"{len(each)} ({'; '.join(each)})" if each else "none" for each in (rewoo, react)]
    return f"Of these {len(tested)} rows ReWOO is significantly more accurate in {said[0]}, ReAct in {said[1]}"


def judged() -> str:
    """The judge's verdicts on both architectures, for both data sets. Raises where a difference is significant."""
    clauses = []
    for name, run in (("HotpotQA", "judged-hotpotqa-qwen-1.5b"), ("TriviaQA", "judged-triviaqa-qwen-1.5b")):
        both = [system(run, each).summary.judged_correct for each in ("rewoo", "react")]
        shares = [f"{each.mean:.2f} [{each.low:.2f}, {each.high:.2f}]" for each in both]
        verdicts = rows_of(run).pivot_table(index="example_id", columns="architecture", values="judged_correct")
        rewoo, react = (verdicts[each].to_numpy(dtype=float) for each in ("rewoo", "react"))
        test, apart = mcnemar_exact(react, rewoo), difference_of_proportions(react, rewoo)
        if test.p < 0.05:
            raise ValueError(f"{run}: the judge finds a difference")
        clauses.append(
            f"on {name} (n = {len(verdicts)}) it accepts {shares[0]} of ReWOO's answers and {shares[1]} of ReAct's "
            f"(difference {bounds(apart, 0.0, '+')}; {test.only_b} questions only rewoo, {test.only_a} only react; p "
            f"{_p(test.p)})"
        )
    return "; ".join(clauses)


def lenient() -> tuple[int, int]:
    """Number of accepted answers without a word in common with a gold answer, and of all judged answers."""
    import pandas as pd

    rows = pd.concat([rows_of("judged-hotpotqa-qwen-1.5b"), rows_of("judged-triviaqa-qwen-1.5b")])
    judged = rows[rows["judged_correct"].notna()]
    return int((judged["judged_correct"].astype(bool) & (judged["f1"] == 0)).sum()), len(judged)


def native(run: str) -> str:
    """`62 of 100 questions begin with a `Lookup`, and 25 replies run on to the limit of output tokens`."""
    calls = calls_of(run)
    calls = calls[calls["architecture"] == "react-native"].sort_values("call_index")
    first = calls[calls["kind"] == "tool"].groupby("example_id", observed=True)["name"].first()
    cut = int((calls["finish_reason"] == "length").sum())
    begun = f"{int((first == 'Lookup').sum())} of {calls['example_id'].nunique()} questions begin with a `Lookup`"
    return f"{begun}, and {cut} replies run on to the limit of output tokens"


def held_to_plans(*runs: str) -> str:
    """What decides how many plans are valid. Raises `ValueError` where no grammar did."""
    for run in runs:
        rows = rows_of(run)[rows_of(run)["architecture"] == "rewoo"]
        calls = calls_of(run).query("architecture == 'rewoo' and place == 'planner 0' and finish_reason == 'length'")
        if read_manifest(RESULTS / run).models["default"]["constrain"] != "grammar":
            raise ValueError(f"{run}: its plans were held to no grammar")
        if not rows[~valid_first_plans(rows)]["example_id"].isin(calls["example_id"]).all():
            raise ValueError(f"{run}: a first plan is invalid that wasn't cut off")
    return "since a grammar allows nothing else; the others were cut off"


def plans(run: str) -> str:
    return f"{sound(run, 'rewoo')[0]} of {sound(run, 'rewoo')[1]}"


def findings() -> str:
    """All findings, as Markdown."""
    passed, answers = lenient()
    json_pair = pair(BIG_SAMPLE, "rewoo-json")["total_tokens"].interval
    return f"""{forms()}

### Is ReWOO cheaper?

ReAct's tokens and dollars as multiples of ReWOO's:

{costs()}

- **In tokens, yes, in {dearer()}.** The paper has 4.93 times on HotpotQA and 3.14 on TriviaQA. A small model's ReAct may be cheaper because it doesn't use tools: on TriviaQA the 135M model makes {system(SMALL_TRIVIA, "react").summary.llm_calls:.1f} calls a question.
- **On TriviaQA most of it comes from questions that one of the two doesn't finish, on HotpotQA less.** Where both answered, {unfinished()}. This leaves out questions by how they ended, which may be the hard ones.
- **In dollars, where a prefix cache reaches ReAct's prompts and not ReWOO's, it isn't shown to be.** Under OpenAI's rule {cheaper("openai")}, as the intervals show; under Anthropic's {cheaper("anthropic-5m")}. {rules()} On HotpotQA OpenAI's rule caches {cached(BIG_HOTPOT, "react", "openai")} of ReAct's input and {cached(BIG_HOTPOT, "rewoo", "openai")} of ReWOO's; on TriviaQA {cached(BIG_TRIVIA, "react", "openai")} and {cached(BIG_TRIVIA, "rewoo", "openai")} (1.5B). {STAND_IN[0].upper()}{STAND_IN[1:]}.
- **Other architectures** (1.5B, HotpotQA, `{BIG_EIGHT}`), as multiples of ReWOO's tokens: plans in JSON {ratio(BIG_EIGHT, "rewoo-json")}, native calls {ratio(BIG_EIGHT, "react-native")}, plan-execute {ratio(BIG_EIGHT, "plan-execute")}, the hybrid `rewoo-react` {ratio(BIG_EIGHT, "rewoo-react")}.

### What does it cost in accuracy?

{accuracies()}

- **{ahead()}.** The test is exact McNemar on the questions that only one answered correctly, with Holm's adjustment within the run, over its tests of exact match and tokens against ReWOO, not over these rows. An interval of a difference (in [tables.md](tables.md) and [claims.md](claims.md)) is Tango's score interval: with few discordant questions the exact test is more careful, so an interval may leave 0 out where p is above 0.05, as on HotpotQA with the 1.5B model ({bounds(pair(BIG_HOTPOT, "react")["exact_match"].interval, 0.0, "+")}, ReAct's minus ReWOO's; p {_p(pair(BIG_HOTPOT, "react")["exact_match"].p)}). The last column is the smallest difference that this number of questions detects 4 times in 5 at Holm's first step. In the paper ReAct is ahead by 1.8 points on HotpotQA with gpt-3.5-turbo.
- **Many of a small model's questions end in a loop**: it repeats the same turns until the step limit. Of ReAct's questions that end there, on HotpotQA {repeated(BIG_HOTPOT)} (1.5B); on TriviaQA {repeated(BIG_TRIVIA)} (1.5B), and {repeated(BASE_TRIVIA)} (270M base). A loop is counted from its first repetition. Loops are inferred from the sizes of calls, since these runs have no column for them.{guarded()}
- **The 1.5B model is more accurate with ReWOO than with direct prompting on HotpotQA** (n = {system(BIG_HOTPOT, "direct").summary.total}; {discordant(BIG_HOTPOT, "direct")}). **On TriviaQA no difference was detected** (n = {system(BIG_TRIVIA, "direct").summary.total}; {discordant(BIG_TRIVIA, "direct")}; detectable {pair(BIG_TRIVIA, "direct")["exact_match"].detectable:.3f}); direct prompting takes {tokens(BIG_TRIVIA, "direct")} tokens there, ReWOO {tokens(BIG_TRIVIA, "rewoo")}. In the paper ReWOO is 14 points behind direct prompting on TriviaQA (66.6 against 80.6, judged).
- **Valid first plans, {held_to_plans(BIG_HOTPOT, SMALL_HOTPOT, SMALL_TRIVIA, BASE_HOTPOT, BASE_TRIVIA)}**: {plans(BIG_HOTPOT)} (1.5B, HotpotQA), {plans(SMALL_HOTPOT)} (135M, HotpotQA), {plans(SMALL_TRIVIA)} (135M, TriviaQA), {plans(BASE_HOTPOT)} and {plans(BASE_TRIVIA)} (270M base, HotpotQA and TriviaQA).
- **On the bundled sample the 1.5B model gains from plans in JSON**: {exact_match(BIG_SAMPLE, "rewoo-json")} against the text plans' {exact_match(BIG_SAMPLE, "rewoo")} ({discordant(BIG_SAMPLE, "rewoo-json")}), for {json_pair.estimate:.2f} times the tokens.

### Where does the ratio come from?

ReAct's tokens and dollars as multiples of ReWOO's, by the number of exemplars of both (`ablation-smollm2-135m`, n = {system("ablation-smollm2-135m", "react?max_exemplars=0").summary.total}):

{exemplars()}

- **In the 135M model the number of exemplars changes what ReAct does, which hides what they cost**: with none it goes round in loops and seldom finishes, with one it hardly uses its tools. What exemplars cost where nothing goes wrong is in [the oracle's study](../oracle/README.md).
- **At this size, longer questions don't lead to more steps** (`chain-smollm2-135m`): whatever the question needs, the 135M model plans {system("chain-smollm2-135m", "rewoo").means["steps"]:.3f} tool calls in ReWOO and makes {system("chain-smollm2-135m", "react").summary.tool_calls:.3f} in ReAct. [The oracle's study](../oracle/README.md) has longer chains.

### When tools fail

{failing()}

Tokens / model calls / exact match (135M, HotpotQA, n = {system("failure-smollm2-135m/1", "react").summary.total}).

- **The more tool calls return nothing, the more calls this 135M model makes as ReAct.** With all of them empty, as in the paper's Table 3, {ended("failure-smollm2-135m/1", "react", "step_limit")} ReAct questions end at the step limit.
- **ReWOO's accuracy doesn't depend on the evidence here**: {unsettled("failure-smollm2-135m")} with no calls empty and with all. So this run doesn't show how ReWOO copes without evidence.

### With more tools on offer

- **This run can't test whether more tools help or harm** (`tools-smollm2-135m`, n = {system("tools-smollm2-135m", "rewoo").summary.total}; one to four tools): exact match {offered()}. {undetected()} The paper goes up to seven tools.

### With a model as judge

- **The 1.5B model as its own judge decides nothing**: {judged()}. It is a lenient judge: among the {answers} answers it accepts {passed} without a word in common with a gold answer.

### Native tool calls

- **The 1.5B model often begins with the wrong tool**: {native(BIG_HOTPOT)} on HotpotQA; {native(BIG_TRIVIA)} on TriviaQA. A `Lookup` needs a page, and before the first search there is none. Exact match {exact_match(BIG_HOTPOT, "react-native")} and {exact_match(BIG_TRIVIA, "react-native")}.
- **The 135M model's chat template has no tools**, so its `react-native` never calls one and answers directly.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where they differ")
    options = parser.parse_args(arguments)
    readme = RESULTS / "README.md"
    before = readme.read_text(encoding="utf-8")
    made = findings()
    after, places = _PLACE.subn(lambda place: f"{place[1]}{made}{place[2]}", before)
    if places != 1:
        parser.error(f"{readme} has {places} places for the findings, not one")
    if options.check:
        return int(before != after)
    readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
