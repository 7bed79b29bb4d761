"""Where questions come from: a file, the Hugging Face hub, or the tasks of a run; and which data set a text means.

A file is JSON, JSON lines, parquet, CSV or TSV, each also as `.gz`. JSON is a list of rows or TriviaQA's
`{"Data": [rows]}`. Whether a file is JSON or JSON lines is seen from its first line, since both are published under
either ending. CSV and TSV have a line of column names: `question` and `answers` (or `answer`), several answers with
` | ` between them or as a list, and `id` if there are ids.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow
from pyarrow import parquet

from rewoo_bench.config.named import Named, find_named, find_scorer, known_names
from rewoo_bench.config.specs import HubSource
from rewoo_bench.errors import DataError, unknown
from rewoo_bench.loaders.row_fields import ANSWER_KEYS, RawRow, RowError, listed
from rewoo_bench.runs.folder import TRACES_FILE, load_table
from rewoo_bench.runs.manifest import MANIFEST, DatasetFacts, read_manifest
from rewoo_bench.text.data_files import DATA_FAULTS, data_fault, open_data, plain_name
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.scoring import Score, Scorer
from rewoo_bench.types import Example

_SUFFIXES = (".json", ".jsonl", ".parquet", ".csv", ".tsv")
_BATCH_ROWS = 256
_LONGEST_CELL = 64 * 2**20  # bytes; Python's own limit is 131,072 characters


def read_data_file(path: Path) -> Iterator[RawRow]:
    """The rows of `path`, one at a time. Raises `DataError` where it is missing or damaged."""
    if not path.is_file():
        raise DataError(f"no such data file: {str(path)!r}")
    if not path.stat().st_size:
        raise DataError(f"{path} is empty")
    return _rows_of(path)


def _rows_of(path: Path) -> Iterator[RawRow]:
    kind = Path(plain_name(path)).suffix
    try:
        with open_data(path) as file:
            if kind == ".parquet":
                yield from _parquet_rows(file)
            elif kind in (".csv", ".tsv"):
                yield from _csv_rows(file, "," if kind == ".csv" else "\t")
            else:
                yield from _json_rows(file)
    except RowError as error:
        raise DataError(f"{path}, {error}") from None
    except (*DATA_FAULTS, csv.Error, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: {data_fault(error)}") from None


def file_sha256(path: Path) -> str:
    """sha256 of the file as it is on disk."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _json_rows(file: BinaryIO) -> Iterator[Any]:
    first = next((line for line in file if line.strip()), b"")
    try:
        start = load_json(first.decode("utf-8-sig"))
    except ValueError:  # the value goes on over the next lines
        start = load_json((first + file.read()).decode("utf-8-sig"))
    if not isinstance(start, dict) or isinstance(start.get("Data"), list):
        yield from start["Data"] if isinstance(start, dict) else start if isinstance(start, list) else [start]
        return
    yield start
    for number, line in enumerate(file, start=2):
        if line.strip():
            try:
                yield load_json(line.decode())
            except ValueError as error:
                raise RowError(f"row {number}: {data_fault(error)}") from None


def _csv_rows(file: BinaryIO, between: str) -> Iterator[Any]:
    """Rows in this project's own form, cells with `between` between them; several answers in a cell have ` | `, or
    are a list as pandas writes one. A row whose values don't fit the columns is refused.
    """
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.DictReader((line.decode("utf-8-sig") for line in file), delimiter=between)
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            what = f"its values don't fit the {len(rows.fieldnames or ())} columns"
            raise RowError(f"row {number}: {what}; put a text that contains {between!r} into quotation marks")
        cells: dict[str, Any] = {name.strip().lower(): value for name, value in row.items() if name.strip()}
        for column in ANSWER_KEYS:
            if given := cells.pop(column, ""):
                items = listed(given, numbers=column != "answer")
                texts = [answer.strip() for answer in given.split(" | ")]
                cells.setdefault("answers", texts if items is None else items)
        if "question" in cells:
            cells.setdefault("answers", [])  # the row is named that has no answer
        yield cells


def _parquet_rows(file: BinaryIO) -> Iterator[Any]:
    with parquet.ParquetFile(file) as table:
        for batch in table.iter_batches(batch_size=_BATCH_ROWS):
            yield from batch.to_pylist()


# The rows of a data set on the Hugging Face hub.
#
# A stream reads only the files of one split and keeps nothing. Otherwise every split of the configuration is downloaded
# once and stays in the cache; HF_HUB_OFFLINE=1 reads it from there.

REACH_TIMEOUT_S = 10.0


LoadRows = Callable[..., tuple[Iterable[RawRow], str | None]]
"""`load_rows`, or what a test has in its place."""


def load_rows(source: HubSource, config: str, split: str, *, streaming: bool) -> tuple[Iterable[RawRow], str | None]:
    """The rows of `split` of `config`, and the commit that they are of. Raises `DataError`, also while they are read.

    Without a network this ends at once, or after two timeouts of `REACH_TIMEOUT_S` where a
    firewall swallows the packets.
    """
    import datasets
    import httpx  # huggingface_hub's client, which lets its errors through
    import huggingface_hub

    where, is_offline = f"{source.path} ({config})", datasets.config.HF_HUB_OFFLINE

    @contextmanager
    def faults() -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, RuntimeError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            instead = "HF_HUB_OFFLINE is set; unset it" if is_offline else "HF_HUB_OFFLINE=1 reads a copy in the cache"
            raise DataError(
                f"can't read {where} from the Hugging Face hub: {reason}; {instead}, or use a downloaded file "
                "(--dataset NAME=path/to/file.json) or --dataset sample"
            ) from None

    def guarded(rows: Iterable[Any]) -> Iterator[RawRow]:
        with faults():
            yield from rows

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
        huggingface_hub.utils.disable_progress_bars()  # type: ignore[attr-defined]  # documented
    with faults():
        if not is_offline:  # asked once: `datasets` itself retries for half a minute first
            huggingface_hub.HfApi().dataset_info(source.path, revision=source.revision, timeout=REACH_TIMEOUT_S)
        builder = datasets.load_dataset_builder(source.path, config, revision=source.revision)
        splits = list(builder.info.splits or builder.config.data_files or ())
    if splits and split not in splits:
        raise DataError(f"{where}: {unknown('split', split, splits)}")
    with faults():
        if streaming:
            return guarded(builder.as_streaming_dataset(split=split)), builder.hash
        builder.download_and_prepare()
        return guarded(builder.as_dataset(split=split)), builder.hash


# The tasks of a run as questions: `--dataset RUN`, where RUN is the folder of an imported run or of your own.
#
#     find_run("results/local/airline?system=no")     # NamedRun(Path("results/local/airline"), system=False)
#
# The id of a question is that of its task, so that both runs can be compared. Its text is what the recorded agent was
# told, in this order: its instructions (a system prompt; `?system=no` leaves them out) and all that the user said, a
# paragraph each. For an architecture can't ask back: what the user answered later belongs to the task. Of several
# trials and agents the first recorded one counts. A task without gold answers isn't scored.

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


def scorer_of(tasks: RecordedTasks, otherwise: str) -> Scorer:
    """The run's scorer, if it is one by its name: a run can't name code. `otherwise` for an imported run.

    Raises `DataError`.
    """
    name = str(tasks.dataset.scoring or UNSCORED)
    if not any(example.answers for example in tasks.examples):
        return Scorer(UNSCORED, no_score)
    if ":" in name:
        raise DataError(f"the run was scored by the code {name!r}, which a run can't name: give its own data set")
    return find_scorer(otherwise if name == UNSCORED else name)


def no_score(prediction: str, answers: Sequence[str]) -> Score:
    """In the place of a scorer where none compares answers."""
    raise DataError("there are no gold answers")


def find_run(text: str) -> NamedRun | None:
    """The run that a text names as a data set; None where it names no run. Raises `DataError` for wrong options."""
    plain, _, options = text.partition("?")
    if not plain or not (Path(plain) / MANIFEST).is_file():
        return None
    if options not in ("", "system=no", "system=yes"):
        raise DataError(f"{text!r}: the tasks of a run have one option, ?system=no, which leaves out its instructions")
    return NamedRun(Path(plain), options != "system=no")


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
        examples[id_] = Example(id_, told[id_], answers, kind=kind, level=level)
    if not examples:
        raise DataError(f"{run.folder}: this run has no texts of its questions, as one that was published without them")
    source = {key: value for key, value in manifest.dataset.source.items() if key != "python"}
    source |= {"tasks_of": manifest.run_id, "tasks_sha256": sha256(repr([*examples.values()]).encode()).hexdigest()}
    facts = manifest.dataset.model_copy(update={"name": manifest.dataset.name or run.folder.resolve().name})
    return RecordedTasks([*examples.values()], facts, source)


def _told(run: NamedRun) -> Iterator[tuple[str, str]]:
    """The id of each task, and what its first recorded agent was told."""
    path, seen = run.folder / TRACES_FILE, set[str]()
    try:
        with path.open(encoding="utf-8") as lines:
            for trace in map(json.loads, lines):
                id_ = str(trace["example_id"])
                if id_ in seen or not trace.get("question"):
                    continue
                seen.add(id_)
                turns = [turn["text"] for turn in trace.get("turns") or ()]
                parts = [trace.get("system") if run.system else "", trace["question"], *turns]
                yield id_, "\n\n".join(part.strip() for part in parts if part and part.strip())
    except FileNotFoundError:
        raise DataError(f"{run.folder}: it has no {TRACES_FILE}, where the questions' texts are") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not the traces of questions: {error}") from None


# Which data set a text means, as `--dataset` takes it.
#
# hotpotqa                        a bundled or installed set
# triviaqa:rc.wikipedia           another configuration of it
# chain?hops=3                    options of a generated set
# gsm8k=test.jsonl                its questions from a file of one's own, read and scored as that set
# questions.jsonl, ./my_set       a file or a folder


@dataclass(frozen=True, slots=True)
class NamedDataset:
    """A data set, its configuration (behind `:`), options (behind `?`) and file (behind `=`).

    Without a data set the file stands alone.
    """

    dataset: Named | None
    config: str | None = None
    options: str | None = None
    file: Path | None = None


def find_dataset(text: str) -> NamedDataset:
    """The data set or the file that a text means. Raises `DataError`, and `SpecError` as `find_named` does.

    Bundled and installed names come first; `./name` is the folder or file of that name. A file that exists under
    the whole text is that file, whatever its name has in it.
    """
    known = known_names("datasets")
    if text not in known and text and Path(text).exists():
        path = Path(text)
        return NamedDataset(Named(text, path)) if path.is_dir() else NamedDataset(None, file=path)
    name, mark, file = text.partition("=")
    if mark and "?" not in name:
        named = find_named("datasets", name)
        if named and not Path(file).is_file():
            raise DataError(f"no such data file: {file!r}; expected the questions of {name!r}, as NAME=FILE")
        if named:
            return NamedDataset(named, file=Path(file))
        if "/" not in name and (_is_data_file(file) or Path(file).exists()):
            raise DataError(f"{unknown('data set', name, known)}; expected NAME=FILE")
    plain, mark, behind = text.partition("?")
    options = behind if mark else None
    name, _, config = plain.rpartition(":")
    for candidate, chosen in ((plain, None), (name, config)):
        if named := find_named("datasets", candidate):
            return NamedDataset(named, chosen, options)
    if "/" in plain or _is_data_file(plain):
        raise DataError(f"no such data file or folder: {text!r}; bundled data sets: {', '.join(known)}")
    raise DataError(f"{unknown('data set', plain, known)}; or the path of a file or folder")


def _is_data_file(name: str) -> bool:
    return plain_name(Path(name)).endswith(_SUFFIXES)
