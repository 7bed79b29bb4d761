"""The tasks of a run as questions: `--dataset RUN`, where RUN is the folder of an imported run or of your own.

    find_run("results/local/airline?system=no")     # NamedRun(Path("results/local/airline"), system=False)

The id of a question is that of its task, so that both runs can be compared. Its text is what the recorded agent was
told, in this order: its instructions (a system prompt; `?system=no` leaves them out) and all that the user said, a
paragraph each. For an architecture can't ask back: what the user answered later belongs to the task. Of several
trials and agents the first recorded one counts. A task without gold answers isn't scored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewoo_bench.config.named import find_scorer
from rewoo_bench.config.names import read_options
from rewoo_bench.errors import DataError
from rewoo_bench.loaders.row_fields import RowError, encodable
from rewoo_bench.runs.folder import TRACES_FILE, load_table
from rewoo_bench.runs.manifest import MANIFEST, DatasetFacts, check_no_pipe, read_manifest
from rewoo_bench.text.scoring import Score, Scorer
from rewoo_bench.types import Example

UNSCORED = "recorded"
"""Name of the scorer of tasks without gold answers, as of a run that was imported: its verdicts were recorded."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run whose tasks are asked; `system` says whether its instructions are a part of them."""

    folder: Path
    system: bool = True


@dataclass(frozen=True, slots=True)
class RecordedTasks:
    """The tasks of a run, and the facts of the data set that they are of."""

    examples: Sequence[Example]
    dataset: DatasetFacts
    source: Mapping[str, Any]

    def scorer(self, otherwise: str) -> Scorer:
        """The run's scorer, if it is one by its name: a run can't name code. `otherwise` for an imported run.

        Raises `DataError`.
        """
        if not any(example.answers for example in self.examples):
            return Scorer(UNSCORED, _no_score)
        name = self.dataset.scoring
        if name in (None, UNSCORED):
            return find_scorer(otherwise)
        if ":" in str(name):
            raise DataError(f"the run was scored by the code {name!r}, which a run can't name: give its own data set")
        return find_scorer(str(name))


def _no_score(prediction: str, answers: Sequence[str]) -> Score:
    raise DataError("there are no gold answers")


def find_run(text: str) -> NamedRun | None:
    """The run that a text names as a data set; None where it names no run. Raises `DataError` for wrong options."""
    if text and (Path(text) / MANIFEST).is_file():
        return NamedRun(Path(text))
    plain, _, options = text.partition("?")
    if not plain or not (Path(plain) / MANIFEST).is_file():
        return None
    with suppress(ValueError):
        given = read_options(options)
        if given.keys() <= {"system"} and given.get("system") in ("yes", "no"):
            return NamedRun(Path(plain), given["system"] == "yes")
    raise DataError(f"{text!r}: the tasks of a run have one option, ?system=no, which leaves out its instructions")


def read_tasks(run: NamedRun) -> RecordedTasks:
    """The tasks of a run. Raises `DataError` where it is none, or has no texts of its questions."""
    manifest = read_manifest(run.folder)
    told = dict(_told(run))
    examples: dict[str, Example] = {}
    names = ("example_id", "answers", "question_type", "difficulty")
    for row in load_table(run.folder).select(names).to_pylist():
        id_ = str(row["example_id"])
        if id_ in examples or not told.get(id_):
            continue
        answers = tuple(answer for answer in row["answers"] or () if answer.strip())
        kind, level = row["question_type"] or "", row["difficulty"] or ""
        try:
            examples[id_] = encodable(Example(id_, told[id_], answers, kind=kind, level=level))
        except RowError as error:
            raise DataError(f"{run.folder}: {error}") from None
    if not examples:
        raise DataError(f"{run.folder}: this run has no texts of its questions, as one that was published without them")
    source = {key: value for key, value in manifest.dataset.source.items() if key != "python"}
    source |= {"tasks_of": manifest.run_id, "tasks_sha256": sha256(repr([*examples.values()]).encode()).hexdigest()}
    facts = manifest.dataset.model_copy(update={"name": manifest.dataset.name or run.folder.resolve().name})
    return RecordedTasks([*examples.values()], facts, source)


def _told(run: NamedRun) -> Iterator[tuple[str, str]]:
    """The id of each task, and what its first recorded agent was told."""
    path, seen = run.folder / TRACES_FILE, set[str]()
    check_no_pipe(path)
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    trace = json.loads(line)
                    id_ = str(trace["example_id"])
                    if id_ in seen or not trace.get("question"):
                        continue
                    turns = [turn["text"] for turn in trace.get("turns") or ()]
                    parts = [trace.get("system") if run.system else "", trace["question"], *turns]
                    text = "\n\n".join(part.strip() for part in parts if part and part.strip())
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    raise DataError(f"{path}, line {number}: not a trace of a question") from None
                seen.add(id_)
                yield id_, text
    except FileNotFoundError:
        raise DataError(f"{run.folder}: it has no {TRACES_FILE}, where the questions' texts are") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: can't be read: {error}") from None
