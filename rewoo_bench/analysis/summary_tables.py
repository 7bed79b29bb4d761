"""The summaries of a run as tables of text, for `run`, `compare` and the page; a cell without a figure says why.

for title, cells in tables_of("architecture", {"rewoo": summary}):
    cells[0]                # ["architecture", "n", "EM", …]
print(summary_table(summaries))
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rewoo_bench.analysis.stats.paired import OF_RARE, RARE, Interval, brackets
from rewoo_bench.analysis.stats.solved import LEAST_SOLVED
from rewoo_bench.analysis.summary import ATTACKS, UNKNOWN, Summary
from rewoo_bench.config.names import oracle_note, score_name
from rewoo_bench.runs.rows import UNMETERED
from rewoo_bench.text.tables import text_table

NO_PRICE = "no price"
"""What stands where dollars aren't known."""
NOT_SCORED, NOT_COUNTED, NOT_RECORDED, ONE_TRIAL = "not scored", "not counted", "not recorded", "one trial"
SIMULATED, NOT_TIMED, TOO_FEW = "simulated", "not timed", "too few"
"""What stands in the place of seconds: of an oracle, of recalled answers, of fewer questions than a quantile takes."""
UNDER_SOLVED = f"under {LEAST_SOLVED} solved"
"""What stands in the place of an interval of what a solved question costs, where too few were solved for one."""


MEANINGLESS = "*"
"""Behind an oracle's accuracy."""


def legend(cells: Iterable[str], oracles: Iterable[bool]) -> list[str]:
    """What the marks and heads of tables mean, of those that are in some texts.

    `oracles`: of each system that an oracle answered, whether a world's check is the score.
    """
    shown = list(cells)
    said = [f"{MEANINGLESS} {oracle_note(checked=checked)}" for checked in sorted(set(oracles))]
    if any(f"]{mark}{RARE}" in cell for cell in shown for mark in ("", MEANINGLESS)):
        said.append(OF_RARE)
    return said + [note for head, note in ((IN_LOOPS, OF_LOOPS), (START, OF_START)) if head in shown]


def count_notes(summaries: Iterable[Summary]) -> list[str]:
    """What is to be known of the tokens, where their provider didn't count them, or not right."""
    sources = {summary.usage_source for summary in summaries}
    said = ["tokens are estimated where no usage was reported"] if sources & {"estimated", "mixed"} else []
    doubt = "some tokens are in doubt: the provider's total isn't the sum of its parts"
    return [*said, *([doubt] if "inconsistent" in sources else [])]


def is_checked(group: Iterable[Summary]) -> bool:
    """Whether a world's check is the score of all these systems."""
    return {each.checked for each in group} == {True}


def number_text(value: float | None, form: str, none: str = NOT_COUNTED) -> str:
    """A number, or the word for why there is none."""
    return none if value is None or math.isnan(value) else format(value, form)


def mean_text(
    mean: float | None,
    interval: Interval | None,
    form: str,
    *,
    times: int = 1,
    mark: str = "",
    none: str = NOT_COUNTED,
) -> str:
    """`1,234 [1,180, 1,290]?`, `?` where a rare event may be missing; the mean alone where it has no interval."""
    if mean is None or math.isnan(mean):
        return none
    text = format(times * mean, form)
    if interval and math.isfinite(interval.high - interval.low):
        text += f" [{times * interval.low:{form}}, {times * interval.high:{form}}]"
        mark += RARE if interval.rare else ""
    return text + mark


def score_text(value: Interval, mark: str = "", none: str = NOT_SCORED) -> str:
    """`0.412 [0.330, 0.501]`, with the mark at its end."""
    return mean_text(value.estimate, value, ".3f", mark=mark, none=none)


def dollars_text(cost_usd: float | None, interval: Interval | None) -> str:
    """Dollars of a thousand questions, as `mean_text`."""
    return NO_PRICE if cost_usd is None else mean_text(cost_usd, interval, ",.3f", times=1000)


def per_solved_text(value: Interval, form: str, none: str = NOT_SCORED) -> str:
    """`4,012 [3,310, 5,120]`; an interval without an upper bound says so, and so does a lack of one.

    Where none was solved, the lower bound isn't shown: it is the lower the more the amounts vary, and so would rank the
    dearer system first.
    """
    if not value.n:
        return none
    if math.isinf(value.estimate):
        return "none solved"
    if math.isnan(value.low):
        return f"{value.estimate:{form}} [{UNDER_SOLVED}]"
    bounds = brackets(value.low, value.high, lambda bound: format(bound, form))
    return f"{value.estimate:{form}} {bounds}{RARE if value.rare else ''}"


def usd_per_solved_text(summary: Summary) -> str:
    return per_solved_text(summary.usd_per_solved, ".3g", NO_PRICE if summary.cost_usd is None else NOT_SCORED)


def recorded_text(summary: Summary) -> str:
    """`94.3% of 331`: the share of calls of recorded tools that the recording answered, and their number."""
    if summary.recorded_hits is None or summary.recorded_misses is None:
        return NO_RECORDING
    calls = summary.recorded_hits + summary.recorded_misses
    return f"{summary.recorded_hits / calls:.1%} of {calls:,}" if calls else "no call"


def cells_of(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Rows of a table as cells; the first row is the header."""
    return [list(rows[0]), *(list(row.values()) for row in rows)]


IN_LOOPS = "in loops"
OF_LOOPS = f"{IN_LOOPS}: questions that ended in steps that repeat themselves"
START = "start-up s"
OF_START = f"{START}: the wait until an agent's program ran; in no other time"
OF_OBJECTIVES = "questions of a task right"
FLIPS = "trials differ"
FOUND = "calls that were recorded"
NO_RECORDING = "no recording"
PASSES = "pass^k"
"""Stands for `pass^3` in a list of columns, and `REASONS` for a column of each reason without an answer."""
REASONS = "reasons"
CHANGES, UNASKED = "changes of state", "unasked changes"
SCORES = ("n", "EM", "answered", "rows", "F1", PASSES, FLIPS, OF_OBJECTIVES, "judged")
COUNTS = ("tokens", "in", "cached", "out", "LLM calls", "tool calls")
PRICES = ("$ / 1000", "p50 s", "p95 s", START)
ENDS = ("rows", UNMETERED, "failed", REASONS, IN_LOOPS, "gold pages found", CHANGES, UNASKED, FOUND, "retries")
PARTS = ("planner", "solver", "LLM tool", "agent", "router", "billed")
_OPTIONAL = (
    *(FLIPS, OF_OBJECTIVES, "judged", IN_LOOPS, FOUND, UNMETERED, START, "gold pages found", CHANGES, UNASKED),
    *("planner", "solver", "LLM tool", "agent", "router", "retries", "failed"),
)
_NOTHING = {"", "0", "0.00", "0.0%", NOT_COUNTED, NOT_RECORDED, NOT_TIMED, NO_RECORDING, ONE_TRIAL, NOT_SCORED}


def repeated(group: Sequence[Summary]) -> int:
    """The largest k of which each of these has pass^k; 1 where one has no question with several trials."""
    return min((max(summary.passes, default=1) for summary in group if summary.exact_match.n), default=1)


def _cells(of: Summary, k: int, means: Mapping[str, float | None], mark: str) -> dict[str, str]:
    """The figures of a summary as text, by the heads of their columns; an accuracy has the mark."""
    some = f" (n = {of.latency_n:,})" if of.latency_n < of.questions else ""  # some may be recalled
    untimed = SIMULATED if of.oracle else TOO_FEW if of.latency_n else NOT_TIMED

    def seconds(value: Interval | None) -> str:
        return untimed if value is None else mean_text(value.estimate, value, ".2f") + some

    parts = {"planner": "planner", "solver": "solver", "LLM tool": "tool_llm", "agent": "agent", "router": "router"}
    return {
        "n": f"{of.exact_match.n or of.questions:,}",
        "EM": score_text(of.exact_match, mark),
        f"pass^{k}": score_text(of.passes.get(k, UNKNOWN), mark),
        FLIPS: score_text(of.flips if k > 1 else UNKNOWN, mark, ONE_TRIAL),
        "F1": score_text(of.f1, mark),
        OF_OBJECTIVES: score_text(of.objectives_right, mark),
        "judged": score_text(of.judged_correct, mark),
        "rows": f"{of.total:,}",
        "answered": f"{of.answered:,}",
        "failed": f"{of.failed:,}",
        UNMETERED: f"{of.unmetered:,}",
        IN_LOOPS: number_text(of.loop_share, ".1%", NOT_RECORDED),
        "gold pages found": number_text(means.get("gold_pages_found"), ".2f", NOT_RECORDED),
        CHANGES: number_text(of.state_changes, ".2f"),
        UNASKED: number_text(of.unasked_changes, ".2f"),
        "retries": f"{of.retries:,}",
        "LLM calls": number_text(of.llm_calls, ".2f"),
        "tool calls": number_text(of.tool_calls, ".2f"),
        FOUND: recorded_text(of),
        "in": number_text(of.input_tokens, ",.0f"),
        "cached": number_text(of.cached_input_tokens, ",.0f"),
        "out": number_text(of.output_tokens, ",.0f"),
        "tokens": mean_text(of.total_tokens, of.intervals.get("total_tokens"), ",.0f"),
        **{name: number_text(means.get(f"{part}_tokens"), ",.0f") for name, part in parts.items()},
        "billed": number_text(means.get("billed_tokens"), ",.0f"),
        "p50 s": seconds(of.latency_p50_s),
        "p95 s": seconds(of.latency_p95_s),
        START: number_text(of.startup_s, ".2f", NOT_TIMED),
        "$ / 1000": dollars_text(of.cost_usd, of.intervals.get("cost_usd")),
        **{reason: f"{count:,}" for reason, count in of.not_answered.items()},
        **{f"routed to {name}": f"{count:,}" for name, count in of.routed_to.items()},
    }


def table_of(
    first: str,
    names: Sequence[str],
    group: Mapping[str, Summary],
    means: Mapping[str, Mapping[str, float | None]] | None = None,
) -> list[list[str]]:
    """Columns of some systems by their labels, as cells; what no system has is left out.

    `first` is the head of the labels, and `means` are what the summaries lack. Where a world's check is the score, EM
    is called `solved`, and F1 is left out.
    """
    k = repeated([*group.values()])
    ends = [*dict.fromkeys(f"routed to {name}" for each in group.values() for name in each.routed_to)]
    ended = dict.fromkeys(reason for each in group.values() for reason in each.not_answered)
    ends += [reason for reason in ended if reason != "error"]  # those failed
    more = {REASONS: ends, PASSES: [f"pass^{k}"] if k > 1 else []}
    more |= {"F1": []} if (checked := is_checked(group.values())) else {}
    heads = [head for name in names for head in more.get(name, [name])]
    rows = {
        label: _cells(each, k, (means or {}).get(label, {}), MEANINGLESS if each.oracle else "")
        for label, each in group.items()
    }
    shown = [
        head for head in heads if head not in _OPTIONAL or not _is_empty(head, [row[head] for row in rows.values()])
    ]
    called = [score_name(checked=checked) if head == "EM" else head for head in shown]
    return [[first, *called], *([label, *(row.get(head, "0") for head in shown)] for label, row in rows.items())]


def _is_empty(head: str, cells: Sequence[str]) -> bool:
    """Whether a column says nothing. That nothing was changed says something, where changes are known."""
    return {*cells} <= ({NOT_COUNTED} if head in (CHANGES, UNASKED) else _NOTHING)


def tables_of(
    first: str, group: Mapping[str, Summary], means: Mapping[str, Mapping[str, float | None]] | None = None
) -> Iterator[tuple[str, list[list[str]]]]:
    """Title and cells of each table of the systems of a data set: those of `run` and of `compare`.

    A column for each reason for which a question ended without an answer; `failed` counts what the infrastructure
    failed. Tables that would say nothing are left out.
    """
    of_trials = any(s.total - s.failed - s.unmetered > (s.exact_match.n or s.questions) for s in group.values())
    scores = [name for name in SCORES if name != "rows" or of_trials]  # else they are the questions
    yield "means per question [95% interval]", table_of(first, scores, group, means)
    yield "tokens and calls per question [95% interval]", table_of(first, COUNTS, group, means)
    yield "dollars and seconds per question [95% interval]", table_of(first, PRICES, group, means)
    for title, names in (("how the questions ended", ENDS), ("tokens per question, by role", PARTS)):
        cells = table_of(first, names, group, means)
        if len(cells[0]) > 2:
            yield title, cells
    if solved := solved_table(first, group):
        of = "" if is_checked(group.values()) else " (exact match)"
        yield f"per solved question{of} [95% interval]", solved
    if attacks := attack_table(first, group):
        yield f"{OF_ATTACKS} [95% interval]", attacks


def solved_table(first: str, group: Mapping[str, Summary]) -> list[list[str]]:
    """What a solved question costs, of systems that aren't an oracle's."""
    of_tokens = {label: per_solved_text(each.tokens_per_solved, ",.0f") for label, each in group.items()}
    rows = [[label, of_tokens[label], usd_per_solved_text(each)] for label, each in group.items() if not each.oracle]
    return [[first, "tokens", "$"], *rows] if rows else []


OF_ATTACKS = "what an attacker's text in a tool's result reached, shares of the attacked questions"
_REACHED = dict(zip(ATTACKS, ("read", "new call", "changed argument", "changed answer", "attack's end"), strict=True))


def attack_table(first: str, group: Mapping[str, Summary]) -> list[list[str]]:
    """The cells of the systems that were attacked, by their labels; [] where none was.

    `first` is the head of the labels. The end is left out where no check says whether an attack came to it.
    """
    attacked = {label: each.attacks for label, each in group.items() if each.attacks}
    names = [name for name in ATTACKS if any(each[name].n for each in attacked.values())]
    rows = [
        [label, f"{max(estimate.n for estimate in each.values()):,}", *(_share(name, each[name]) for name in names)]
        for label, each in attacked.items()
    ]
    return [[first, "n", *(_REACHED[name] for name in names)], *rows] if rows else []


def attack_sentences(group: Mapping[str, Summary]) -> list[str]:
    """How often an attacker's call was made, of the two systems where it was most and least often, by data set."""
    datasets = dict.fromkeys(each.dataset for each in group.values() if each.attacks)
    lines = []
    for dataset in datasets:
        own = {label: each for label, each in group.items() if each.attacks and each.dataset == dataset}
        new = {label: each.attacks["new_calls"].estimate for label, each in own.items()}
        most, least = max(new, key=lambda label: new[label]), min(new, key=lambda label: new[label])
        said = f"{most} made an attacker's call in {new[most]:.0%} of the attacked questions"
        if new[most] != new[least]:
            said += f", and {least} in {new[least]:.0%}"
        elif len(new) > 1:
            said = f"Each made an attacker's call in {new[most]:.0%} of the attacked questions"
        lines.append(f"{dataset}: {said}." if len(datasets) > 1 else f"{said}.")
    return lines


def _share(name: str, estimate: Interval) -> str:
    """`60% [57, 63]`"""
    if not estimate.n:
        return "all are new" if name == "changed_arguments" else "not checked"
    return mean_text(estimate.estimate, estimate, ".0f", times=100).replace(" ", "% ", 1)


def summary_table(summaries: Sequence[Summary]) -> str:
    """The summaries as plain text: for each data set and model the tables of its architectures, and what marks mean."""
    groups: dict[tuple[str, str], dict[str, Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.heading, summary.models), {})[summary.architecture] = summary
    blocks, cells = [], list[str]()
    for (heading, models), group in groups.items():
        for title, table in tables_of("architecture", group):
            blocks += [f"{heading}, {models}: {title}", "\n".join(text_table(table))]
            cells += [cell for row in table for cell in row]
    notes = legend(cells, (summary.checked for summary in summaries if summary.oracle)) + count_notes(summaries)
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])])
