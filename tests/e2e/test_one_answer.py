"""Every command that prints figures of a run prints the same, on a published run and on one of the oracle.

These are `run`, `compare`, the report, `show`, `plannable`, `gate`, `claims`, a plot, a study and the Python API.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import rewoo_bench
from rewoo_bench.analysis.prices import pricing_of
from rewoo_bench.cli.main import group
from rewoo_bench.report.plots.data import read
from rewoo_bench.report.plots.draw import draw
from rewoo_bench.report.write import read_page
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.study.declaration import read_study
from rewoo_bench.study.outcomes import read_results

STUDY = Path(__file__).parents[2] / "results" / "study"
PUBLISHED = STUDY / "runs" / "main-hotpotqa-qwen"
Said = tuple[str, str, str]
"""Who says it, the figure's name, and what is said of it, as it is printed."""
MEANS = {
    "EM": "exact match", "exact match": "exact match", "LLM calls": "LLM calls", "model calls": "LLM calls",
    "tool calls": "tool calls", "in": "input", "cached": "cached", "out": "output", "tokens": "tokens",
    "$ / 1000": "dollars",
}  # fmt: skip
"""Head of a column of means -> the figure that stands below it."""
SENTENCE = re.compile(
    r"^(?:In \w+ |At .+ )?\S+(?: and \S+)? (?:took|cost|are too close|is (?:more|less) accurate)\b.*\.$"
)


def command(*arguments: object) -> str:
    return CliRunner().invoke(group, [*map(str, arguments)], terminal_width=400).output


def of_tables(who: str, text: str) -> Iterator[Said]:
    """Means in the tables of a terminal: their columns are two spaces apart, and the first one names the system."""
    title = ""
    for block in text.split("\n\n"):
        head, *rows = [re.split(r" {2,}", line.strip()) for line in block.splitlines()] or [[]]
        if head[0] in ("system", "architecture") and "per solved" not in title:
            yield from of_cells(who, head, [row for row in rows if len(row) == len(head)])
        if head[0] in ("difference", "ratio"):
            yield from of_pairs(who, head, rows)
        title = block


def of_cells(who: str, head: list[str], rows: list[list[str]]) -> Iterator[Said]:
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            if name in MEANS:
                yield who, f"{row[0]}: {MEANS[name]}", cell.rstrip("*?")


def of_pairs(who: str, head: list[str], rows: list[list[str]]) -> Iterator[Said]:
    """Differences, a row each; and ratios, whose pair has a line above the rows of its measures."""
    pair = ""
    for row in rows:
        if len(row) < len(head):
            (pair,) = row
            continue
        named = dict(zip(head, row, strict=True))
        if head[0] == "ratio" and "of means" in named:
            yield who, f"{pair}: {row[0]}", named["of means"].rstrip("*?")
            yield who, f"{pair}: p of {row[0]}", named["p"]
        elif "EM" in named:
            yield who, f"{row[0]}: EM", named["EM"].rstrip("*?")


def of_sentences(who: str, lines: list[str]) -> Said:
    return who, "what it comes to", " ".join(line for line in lines if SENTENCE.match(line))


def of_comparison(who: str, found: rewoo_bench.Comparison) -> Iterator[Said]:
    """The Python API: the estimates as `compare` rounds them."""
    for system in found.systems:
        of, name = system.summary, system.label
        yield who, f"{name}: LLM calls", f"{of.llm_calls:.2f}"
        yield who, f"{name}: tool calls", f"{of.tool_calls:.2f}"
        for what in ("input", "cached_input", "output"):
            yield who, f"{name}: {what.removesuffix('_input')}", f"{getattr(of, f'{what}_tokens'):,.0f}"
    frame = found.to_frame()
    for row in frame[frame["kind"].isin(["ratio", "difference"])].to_dict("records"):
        if measured := {"exact_match": "EM", "total_tokens": "total tokens", "cost_usd": "cost"}.get(row["measure"]):
            sign, form = ("-", "+.3f") if row["kind"] == "difference" else ("/", ".3f")
            shown = f"{row['estimate']:{form}} [{row['low']:{form}}, {row['high']:{form}}]"
            yield who, f"{row['system']} {sign} {row['against']}: {measured}", shown
    yield who, "what it comes to", " ".join(found.verdicts)


def of_report(run: Path) -> Iterator[Said]:
    page, _ = read_page([run], [run])
    for table in (page["table"], page["ends"]):
        yield from of_cells("report", table["head"], table["rows"])
    for point in page["points"]:
        for name, figure in (("cached", "cached"), ("output", "output")):
            yield "report's figure", f"{point['label']}: {figure}", f"{point[name]:,.0f}"
        yield "report's figure", f"{point['label']}: input", f"{point['input'] + point['cached']:,.0f}"
    yield "report", "what it comes to", " ".join(each["text"] for each in page["sentences"])


def of_questions(run: Path) -> Iterator[Said]:
    """`show`, and the lines of the report: tokens, calls and dollars of one question."""
    _, table = read_page([run], [run])
    first, systems = table.columns["ids"][0], table.columns["systems"]
    shown = re.findall(r"([\d,]+) tokens, (\d+) calls?, \$([\d.e-]+)", command("show", run, "-n", 1))
    for system, (tokens, calls, dollars) in zip(systems, shown, strict=True):
        for who, values in (
            ("report", (f"{system['tokens'][0]:,.0f}", f"{system['calls'][0]:.0f}", f"{system['cost'][0]:.2g}")),
            ("show", (tokens, calls, dollars)),
        ):
            yield who, f"{first}, {system['label']}: tokens, calls, dollars", " ".join(values)


def of_plot(run: Path) -> Iterator[Said]:
    """The ratio and its interval in the figure's caption."""
    (_, picture), *_ = draw(read([run]), only=["ratio"], pair=("rewoo", "react"))
    found = re.search(r"([\d.]+) times in mean tokens.*interval ([\d.]+) to ([\d.]+)\.", picture.caption)
    assert found
    ratio, low, high = found.groups()
    yield "plot", "react / rewoo: total tokens, two digits", f"{ratio} [{low}, {high}]"


def of_runs(run: Path) -> Iterator[Said]:
    (listed,) = json.loads(command("runs", run, "--json"))
    for name, tokens in listed["tokens"].items():
        yield "runs", f"{name}: tokens, with a digit", f"{tokens:,.1f}"
        yield "runs", f"{name}: exact match, with three digits", f"{listed['exact_match'][name]:.3f}"


def of_gate(run: Path, folder: Path) -> Iterator[Said]:
    """A gate whose limit nothing keeps prints the mean that it measured."""
    rows = load(run)
    facts = {name: str(rows[name].iloc[0]) for name in ("dataset", "model")}
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"architecture": "rewoo", **facts}.items()]
    budgets = folder / "budgets.toml"
    budgets.write_text("\n".join(["[[budget]]", *lines, "total_tokens = { mean = 1 }", "llm_calls = { mean = 0.1 }",
                                  "tokens_per_solved = { at_most = 1 }", "exact_match = { min = 0 }"]))  # fmt: skip
    text = command("gate", run, "--budgets", budgets, "--allow-incomplete")
    for metric, name in (("total_tokens", "tokens, with a digit"), ("llm_calls", "LLM calls")):
        (measured,) = re.findall(rf"{metric} mean: ([\d.,]+) is over", text)
        yield "gate", f"rewoo: {name}", measured
    table = dict(re.findall(r"^  (exact_match min|tokens_per_solved)(?: \(.*\))? +([\d.,]+) ", text, re.MULTILINE))
    yield "gate", "rewoo: exact match, with three digits", table["exact_match min"]
    yield "gate", "rewoo: tokens per solved question, with a digit", table["tokens_per_solved"]


def of_claims(run: Path) -> Iterator[Said]:
    for finding in rewoo_bench.check_claims(run):
        if finding.claim.id.endswith("tokens-react-rewoo") and finding.interval:
            found = finding.interval
            shown = f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"
            yield "claims", "react / rewoo: total tokens, two digits", shown


def everything(run: Path, folder: Path) -> list[Said]:
    text = command("compare", run)
    api = rewoo_bench.compare(run)
    said = [*of_tables("compare", text), of_sentences("compare", text.split("\n\n")[0].splitlines())]
    said += [*of_comparison("Python", api), *of_report(run), *of_plot(run), *of_gate(run, folder), *of_claims(run)]
    said += of_runs(run)
    rounded = api.pairs[0]["total_tokens"].interval
    shown = f"{rounded.estimate:.2f} [{rounded.low:.2f}, {rounded.high:.2f}]"
    said.append(("Python", "react / rewoo: total tokens, two digits", shown))
    for each in rewoo_bench.summarise(load(run)):
        said.append(("summarise", f"{each.architecture}: tokens, with a digit", f"{each.total_tokens:,.1f}"))
        score, solved = each.exact_match.estimate, each.tokens_per_solved.estimate
        said.append(("summarise", f"{each.architecture}: exact match, with three digits", f"{score:.3f}"))
        if each.architecture == "rewoo":
            said.append(("summarise", "rewoo: tokens per solved question, with a digit", f"{solved:,.1f}"))
    return said


def contradictions(said: list[Said]) -> list[str]:
    """The figures of which two commands say different things."""
    by_name: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for who, name, value in said:
        by_name[name][value].append(who)
    return [f"{name}: {dict(values)}" for name, values in by_name.items() if len(values) > 1]


def said_by_several(said: list[Said]) -> set[str]:
    sources: dict[str, set[str]] = defaultdict(set)
    for who, name, _ in said:
        sources[name].add(who)
    return {name for name, those in sources.items() if len(those) > 1}


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Said]]:
    """A run of two architectures on 20 questions, the loop first, and what its end said."""
    run = tmp_path_factory.mktemp("oracle") / "run"
    flags = ("--arch", "react,rewoo", "--model", "oracle", "-n", 20, "--out", run, "--no-progress", "--no-report")
    text = command("run", *flags)
    return run, [*of_tables("run", text), of_sentences("run", text.splitlines())]


def test_all_commands_say_the_same_of_an_oracles_run(oracle: tuple[Path, list[Said]], tmp_path: Path) -> None:
    run, said = oracle
    said = [*said, *everything(run, tmp_path), *of_questions(run)]
    said.append(of_sentences("plannable", command("plannable", run).splitlines()))
    assert contradictions(said) == []
    figures = ("exact match", "LLM calls", "tool calls", "input", "cached", "output", "tokens", "dollars")
    pairs = ("react / rewoo: total tokens", "react / rewoo: cost", "react - rewoo: EM", "what it comes to")
    assert {f"{name}: {what}" for name in ("react", "rewoo") for what in figures} | {*pairs} <= said_by_several(said)
    assert {"plot", "gate", "plannable", "show", "run"} <= {who for who, _, _ in said}


def test_all_commands_say_the_same_of_three_architectures_and_of_each_as_the_baseline(tmp_path: Path) -> None:
    """A loop is divided by a plan whatever is asked for; a sentence on each further architecture."""
    run = tmp_path / "run"
    flags = ("--model", "oracle", "-n", 20, "--out", run, "--no-progress", "--no-report")
    text = command("run", "--arch", "react,cot,rewoo", *flags)
    said = [*of_tables("run", text), of_sentences("run", text.splitlines()), *everything(run, tmp_path)]
    for name in ("rewoo", "react"):
        said += of_tables(f"--baseline {name}", command("compare", run, "--baseline", name))
    ratios = [(name, value) for _, name, value in said if name == "react / rewoo: total tokens"]
    p_values = {"p of", "detectable"}  # of other pairs there are other numbers of tests
    assert contradictions([each for each in said if not any(word in each[1] for word in p_values)]) == []
    assert len(ratios) >= 4
    assert not any(name.startswith("rewoo / react") for _, name, _ in said)
    (sentences,) = {value for _, name, value in said if name == "what it comes to"}
    assert [line.split()[0] for line in sentences.split(". ")] == ["react", "cot"]


def test_all_commands_say_the_same_of_a_run_that_stopped_in_the_middle_of_its_trials(tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = ("--arch", "react,rewoo", "--model", "oracle", "-n", 20, "--out", run, "--no-progress", "--no-report")
    text = command("run", *flags, "--trials", 3, "--concurrency", 1, "--run-tokens", 60_000)
    rows = load(run)
    trials = rows[rows["architecture"] == "rewoo"].groupby("example_id", observed=True).size()
    assert trials.nunique() > 1
    said = [*of_tables("run", text), *everything(run, tmp_path)]
    assert contradictions(said) == []
    of_rows = rows[rows["architecture"] == "rewoo"]["total_tokens"].mean()
    another: Said = ("rows", "rewoo: tokens, with a digit", f"{of_rows:,.1f}")
    assert contradictions([*said, another]) != []
    figures = ("tokens, with a digit", "exact match, with three digits", "tokens per solved question, with a digit")
    assert {f"rewoo: {figure}" for figure in figures} <= said_by_several(said)


def test_all_commands_say_the_same_of_a_published_run(tmp_path: Path) -> None:
    said = everything(PUBLISHED, tmp_path)
    study = read_study(STUDY / "study.toml")
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / PUBLISHED.name).symlink_to(PUBLISHED)
    figures = read_results(study, runs).figures
    names = {"/ rewoo/total_tokens": "/ rewoo: total tokens, two digits", "- rewoo/exact_match": "- rewoo: EM"}
    for what, name in names.items():
        said.append(("study", f"react {name}", figures[f"{PUBLISHED.name}/react {what}"].text))
    said.append(("study", "react - rewoo: EM", figures["accuracy/hotpotqa/qwen"].text))
    page = (STUDY / "papers.md").read_text("utf-8")
    line = next(line for line in page.splitlines() if line.startswith("**On HotpotQA:**"))
    said.append(("study's page", "what it comes to", line.partition(":** ")[2].partition(" **On")[0]))
    assert contradictions(said) == []
    assert {"claims", "study", "study's page"} <= {who for who, _, _ in said}
    assert {"react / rewoo: total tokens, two digits", "react - rewoo: EM", "what it comes to"} <= said_by_several(said)


def test_a_contradiction_is_found(oracle: tuple[Path, list[Said]], monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: cached tokens as the endpoint counted them, dollars under a rule."""
    run, said = oracle
    rows = load(run)
    own = rows.groupby("architecture", observed=True)["cached_input_tokens"].mean()
    priced = pricing_of([run], rows, manifests(run)).of(rows)
    assert contradictions([*said, *of_report(run)]) == []
    endpoint: list[Said] = [("another", f"{name}: cached", f"{value:,.0f}") for name, value in own.items()]
    assert not priced["cached_input_tokens"].equals(rows["cached_input_tokens"])
    assert any("cached" in line for line in contradictions([*said, *endpoint]))
    turned: Said = ("another", "what it comes to", "rewoo took about 0.29 times the tokens of react.")
    assert any("what it comes to" in line for line in contradictions([*said, turned]))
