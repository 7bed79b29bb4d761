"""Trajectories of a question for a terminal: two systems next to each other, or below each other where it is narrow.

Everything that a model, a tool or a data set said is shown as text: control characters are escaped, and rich's own
markup isn't read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.jupyter import JupyterMixin
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from rewoo_bench.analysis.prices import of_dollars, pricing_of
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.report.alignment import Cells, beside, parting
from rewoo_bench.report.rows import FAILED, NOT_ASKED, NOT_SCORED, RIGHT, WRONG, QuestionTable, question_table
from rewoo_bench.report.trajectories import Trajectories
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.runs.rows import ended_unanswered
from rewoo_bench.text.argument_checks import check_known
from rewoo_bench.text.escaping import terminal
from rewoo_bench.text.words import counted

SIDE_BY_SIDE = 100  # columns of a terminal
_LONGEST = 700  # characters of an argument or an observation
_REPEATED = 80  # characters of a result from which on an argument names its step in its place
_MARKS = {
    RIGHT: ("right", "green"), WRONG: ("wrong", "red"), FAILED: ("failed", "yellow"),
    NOT_SCORED: ("not scored", "dim"), NOT_ASKED: ("not asked", "dim"),
}  # fmt: skip


class ShownQuestions(JupyterMixin):
    """Questions with the steps of each architecture: a notebook shows them as a table, `print` as text.

    Arguments and errors as for `show`; `sample` is how many of the questions are chosen by chance, and `nth` the place
    of the only one, from 1.
    """

    def __init__(
        self,
        run: Path,
        question: str | None,
        architectures: Sequence[str],
        *,
        unanswered: bool,
        only_right: str | None,
        limit: int,
        sample: int | None = None,
        nth: int | None = None,
    ) -> None:
        self._run = run
        rows = load(run)
        pricing = pricing_of([run], rows, manifests(run))
        self._dollars = of_dollars(pricing)
        self._table: QuestionTable = question_table(pricing.of(rows))
        systems = self._table.columns["systems"]
        labels = [system["label"] for system in systems]
        check_known("architecture", architectures, labels, "--arch")
        check_known("architecture", [only_right] if only_right else [], labels, "--only-right")
        self._chosen = [i for i, label in enumerate(labels) if not architectures or label in architectures]
        lines = self._named(question) if question is not None else list(range(len(self._table.lines)))
        if question is None and unanswered:
            stops = [systems[i]["stop"] for i in self._chosen]
            lines = [line for line in lines if any(ended_unanswered(stop[line]) for stop in stops)]
        if question is None and only_right:
            right = {line: [each["label"] for each in systems if each["outcome"][line] == RIGHT] for line in lines}
            lines = [line for line in lines if right[line] == [only_right]]
        if nth is not None:
            if nth > len(lines):
                raise DataError(f"-n {nth}: {str(run)!r} has {counted(len(lines), 'question')} to choose from")
            lines = lines[nth - 1 : nth]
        if sample is not None:
            lines = sorted(random.sample(lines, min(sample, len(lines))))
        self._lines = lines[: max(limit, sample or 0)]
        self.ids: list[str] = [self._table.columns["ids"][line] for line in self._lines]

    def _named(self, question: str) -> list[int]:
        """The lines of an example id, or of a question that has this text in it. Raises `DataError`."""
        ids, texts = self._table.columns["ids"], self._table.columns["questions"]
        if exact := [line for line, id_ in enumerate(ids) if id_ == question]:
            return exact
        lines = [line for line, text in enumerate(texts) if question.casefold() in text.casefold()]
        lines += [line for line, id_ in enumerate(ids) if question in id_.split("+")]  # of a task of several questions
        if lines:
            return lines[:1]
        near = get_close_matches(question, ids, n=1, cutoff=0.7)
        hint = f", did you mean {near[0]!r}?" if near else ";"
        said = f"{str(self._run)!r} has no question {question!r}{hint} expected an id, or a part of its text"
        raise DataError(said)

    def _answered(self, trajectories: Trajectories, line: int) -> dict[int, Mapping[str, Any]]:
        """The trajectories of the chosen systems that answered a question."""
        systems = trajectories.question(line)["systems"]
        return {i: systems[i] for i in self._chosen if systems[i]}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        columns = self._table.columns
        trajectories = Trajectories([self._run], self._table)
        for line in self._lines:
            systems = self._answered(trajectories, line)
            said = parting(list(systems.values()))
            trial = f", trial {columns['trials'][line]}" if any(columns["trials"]) else ""
            yield Rule(Text(_cut(columns["ids"][line]) + trial), align="left")
            asked = _cut(columns["questions"][line]) or "(this copy of the run is without the questions' texts)"
            yield Text(asked, style="bold")
            if answers := columns["answers"][line]:
                yield Text(f"gold: {_cut(' | '.join(answers))}", style="dim")
            answered = [*systems]
            is_beside = options.max_width >= SIDE_BY_SIDE and len(answered) == 2
            if len(answered) == 2 and not is_beside:
                told = f"one below the other, since the terminal has {options.max_width} columns"
                yield Text(f"{told}; side by side needs {SIDE_BY_SIDE}", style="dim")
            elif len(answered) > 2:
                yield Text("one below the other: two of them are side by side (--arch A --arch B)", style="dim")
            if said:
                yield Rule(Text(_cut(said)), style="yellow", align="left")
            for group in [answered] if is_beside else [[i] for i in answered]:
                own = [_without_repeats(systems[i]) for i in group]
                table = _table([_head(columns["systems"][i], line) for i in group], beside(own))
                predictions = [columns["systems"][i]["prediction"][line] for i in group]
                table.add_row(*map(_answer, own, predictions))
                yield table
        if self._lines and self._dollars:
            yield Text(_cut(self._dollars), style="dim")

    def __str__(self) -> str:
        text = StringIO()
        Console(file=text, width=120, highlight=False, force_jupyter=False).print(self, markup=False)
        return text.getvalue()

    __repr__ = __str__


def _head(system: Mapping[str, Any], line: int) -> Text:
    word, style = _MARKS[system["outcome"][line]]
    tokens, calls, stop, cost, startup = (system[name][line] for name in ("tokens", "calls", "stop", "cost", "startup"))
    known = tokens is not None and calls is not None
    counts = f"  {tokens:,.0f} tokens, {counted(int(calls), 'call')}" if known else "  tokens and calls not counted"
    counts += "" if cost is None else f", ${cost:.2g}"
    counts += f", {startup:.1f} s to start" if startup else ""
    why = f" ({stop})" if stop and stop != "answered" else ""
    flags = f"  {', '.join(system['flags'][line])}"
    label = (_cut(system["label"]), "bold")
    return Text.assemble(label, " ", (word + why, style), (counts, "dim"), (_cut(flags).rstrip(), "red"))


def _table(heads: Sequence[Text], rows: Sequence[Cells]) -> Table:
    """A table with columns of one width."""
    table = Table(show_lines=True, expand=True)
    for head in heads:
        table.add_column(head, ratio=1, overflow="fold")
    for cells in rows:
        table.add_row(*("" if cell is None else _block(cell) if "title" in cell else _step(cell) for cell in cells))
    return table


def _block(block: Mapping[str, Any]) -> Text:
    """A program with its output, an unusable plan, or where a new plan begins."""
    text = Text(_cut(block["title"]), style="cyan")
    if block["text"]:
        text.append(f"\n{_cut(block['text'])}", style="default")
    if block["output"]:
        text.append(f"\nprinted: {_cut(block['output'])}", style="dim")
    for fault in block["faults"]:
        text.append(f"\n{_cut(fault)}", style="red")
    return text


def _step(step: Mapping[str, Any]) -> Text:
    text = Text.assemble((_cut(str(step["id"])), "dim"), " ", (_cut(str(step["tool"] or "")), "bold"))
    if step["failed"]:
        text.append(" failed", style="red")
    if step["changes_state"]:
        text.append(" changes state", style="magenta")
    if step["attack"]:
        text.append(f" {', '.join(step['attack'])}", style="bold red")
    shown = (
        ("thought", "", "italic dim"),
        ("written", "", ""),
        ("argument", "asks: ", ""),
        ("observation", "result: ", "dim"),
    )
    for name, before, style in shown:
        if step[name]:
            text.append(f"\n{before}{_cut(step[name])}", style=style)
    return text


def _without_repeats(trajectory: Mapping[str, Any]) -> dict[str, Any]:
    """The trajectory with `… (E1)` where an argument repeats the result of an earlier step: a model reads it whole."""
    steps = list[dict[str, Any]]()
    for step in trajectory["steps"]:
        argument = step["argument"]
        for earlier in steps:
            if len(result := earlier["observation"] or "") >= _REPEATED:
                argument = argument.replace(result, f"… ({earlier['id']})")
        steps.append({**step, "argument": argument})
    return {**trajectory, "steps": steps}


def _answer(trajectory: Mapping[str, Any], prediction: str | None) -> Text:
    """The answer, of a published run that of its row; without one, the error."""
    text = Text.assemble(("answer  ", "dim"), (_cut(trajectory["answer"] or prediction or "none"), "bold"))
    if trajectory["answer_attacked"]:
        text.append(" attacker's words", style="bold red")
    if trajectory["error"]:
        text.append(f"\n{_cut(trajectory['error'])}", style="red")
    for note in trajectory["notes"].get("gateway", ()):
        text.append(f"\n{_cut(note)}", style="dim")
    if log := trajectory["notes"].get("stderr"):
        text.append(f"\nstandard error: {_cut(log[-_LONGEST:])}", style="dim")
    return text


def _cut(text: str) -> str:
    shown = terminal(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} … ({len(text):,} characters)"


def show(
    run: str | Path,
    question: str | None = None,
    *,
    architectures: Sequence[str] = (),
    unanswered: bool = False,
    only_right: str | None = None,
    limit: int = 10,
) -> ShownQuestions:
    """The steps of each architecture on a question of a finished run, the same look-ups in one row.

    `question` is an id, or a part of the question's text. Without one: the first `limit` questions, those that an
    architecture ended without an answer (`unanswered`), or those that one alone has right (`only_right`).
    Raises `UsageError` for an unknown architecture, and `DataError` for an unknown question or what is no run.
    """
    if not isinstance(run, str | Path):
        raise UsageError(f"expected the folder of a run, got {run!r}")
    names = [architectures] if isinstance(architectures, str) else architectures
    return ShownQuestions(Path(run), question or None, names, unanswered=unanswered, only_right=only_right, limit=limit)
