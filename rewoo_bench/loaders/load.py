"""Data sets as examples: bundled ones, ones on the Hugging Face hub, and files.

    load_dataset_examples("sample")                               # bundled, all of it
    load_dataset_examples("hotpotqa", limit=50)                   # from the hub
    load_dataset_examples("triviaqa:rc.wikipedia", limit=50)      # another configuration
    load_dataset_examples("hotpot_dev_distractor_v1.json")        # a file in an official format
    load_dataset_examples("./my_set")                             # a folder with a dataset.toml
    load_dataset_examples("chain?hops=1..4&width=2")              # generated, with options

`formats` tells the row formats apart, `sampling` takes the questions, `hub` and `files` read rows,
`generated` makes questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewoo_bench.config.specs import DatasetSpec, read_spec
from rewoo_bench.errors import DataError, SpecError, UsageError, unknown
from rewoo_bench.loaders import hub
from rewoo_bench.loaders.files import SUFFIXES, file_sha256, plain_name, read_rows
from rewoo_bench.loaders.formats import Format, read_examples
from rewoo_bench.loaders.generators import generated
from rewoo_bench.loaders.row_fields import Row
from rewoo_bench.loaders.sampling import Selection, ids_hash, select
from rewoo_bench.paths import bundled_folder, bundled_names
from rewoo_bench.scoring import Scoring
from rewoo_bench.types import Example

__all__ = ["Dataset", "load_dataset_examples"]

STREAMED_LIMIT = 1000
"""Up to so many questions a hub split is streamed; for more it is worth having in the cache."""

DESCRIPTION = "dataset.toml"


@dataclass(frozen=True)
class Dataset:
    """The questions of a run, and what is needed to take the same ones again."""

    name: str
    style: str
    """Which exemplars fit: `multihop` or `trivia`."""
    scoring: Scoring
    """Whose exact match and F1: `hotpotqa` or `triviaqa`."""
    split: str
    """For a lone file the split asked for, else `file`."""
    examples: Sequence[Example]
    ids_hash: str
    """sha256 over the list of ids, one a line."""
    corpus: Path | None
    """Passages that ship with the data set."""
    manifest: Mapping[str, Any]
    """JSON-ready: source (hub path, configuration and commit, or file and its sha256), split, seed, …"""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Raw rows and where they come from, in words and for the manifest."""

    rows: Iterable[Row]
    where: str
    source: dict[str, str | None]


def load_dataset_examples(
    dataset: str,
    *,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    load_rows: hub.LoadRows = hub.load_rows,
) -> Dataset:
    """The examples of `dataset`: a bundled name, `name:configuration`, `name?options`, a folder or a file.

    `limit` questions are taken in an order that `seed` decides, see `loaders.sampling`. None is
    the data set's `default_limit`, and all rows, in file order, where it has none and for files.
    A limit beyond the last row takes all. Of a generated set the first questions are taken, and
    `seed` decides what they are. `split` picks a split of a hub set; a file is one split, so there
    it is only a label.

    Raises `DataError`, `SpecError` (dataset.toml) or, for a limit below 1, `UsageError`.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit!r}")
    path, config, options = _find(dataset)
    if not path.is_dir():
        name = Path(plain_name(path)).stem
        return _sampled(name, _file_rows(path, str(path)), split or "file", limit, seed)
    spec = read_spec(path / DESCRIPTION, DatasetSpec)
    split, limit = split or spec.default_split, limit or spec.default_limit
    corpus = _part(path, spec.corpus) if spec.corpus else None
    if spec.generator:
        _check_choice(spec, config, split)
        made = generated(spec, spec.generator, options or "", limit=limit, seed=seed, where=str(path / DESCRIPTION))
        return _dataset(made.name, spec, made.source, made.selection, split, limit, seed, corpus)
    if options is not None:
        raise DataError(f"data set {spec.name!r} has no options, so {options!r} can't be given")
    if spec.questions:
        name, rows = spec.name, _own_rows(path, spec, spec.questions, config, split)
    else:
        name, rows = _hub_rows(path, spec, config, split, limit, load_rows)
    return _sampled(name, rows, split, limit, seed, spec, corpus)


def _find(dataset: str) -> tuple[Path, str | None, str | None]:
    """The folder or file that `dataset` names, the configuration behind a colon and the options behind `?`.

    Bundled names come first; `./name` is the folder or file of that name.
    """
    names = bundled_names("datasets", DESCRIPTION)
    if dataset not in names and dataset and Path(dataset).exists():
        return Path(dataset), None, None
    plain, mark, behind = dataset.partition("?")
    options = behind if mark else None
    name, _, config = plain.rpartition(":")
    for found, chosen in ((plain, None), (name, config)):
        if found in names:
            return bundled_folder("datasets") / found, chosen, options
        if found and Path(found).is_dir():
            return Path(found), chosen, options
    if "/" in plain or plain_name(Path(plain)).endswith(SUFFIXES):
        raise DataError(f"no such data file or folder: {dataset!r}; bundled data sets: {', '.join(names)}")
    raise DataError(f"{unknown('data set', plain, names)}; or the path of a file or folder")


def _file_rows(path: Path, shown_as: str) -> _Rows:
    rows = read_rows(path)
    return _Rows(rows, str(path), {"file": shown_as, "sha256": file_sha256(path)})


def _own_rows(folder: Path, spec: DatasetSpec, questions: str, config: str | None, split: str) -> _Rows:
    """The rows of a data set whose questions lie in its folder."""
    _check_choice(spec, config, split)
    # named within its folder: a manifest is published, and the same on every machine
    return _file_rows(_part(folder, questions), f"{folder.name}/{questions}")


def _check_choice(spec: DatasetSpec, config: str | None, split: str) -> None:
    """A data set that isn't on the hub has one configuration and one split."""
    if config is not None:
        raise DataError(f"data set {spec.name!r} has no configurations, so {config!r} can't be chosen")
    if split != spec.default_split:
        raise DataError(f"data set {spec.name!r}: {unknown('split', split, [spec.default_split])}")


def _hub_rows(
    folder: Path, spec: DatasetSpec, config: str | None, split: str, limit: int | None, load_rows: hub.LoadRows
) -> tuple[str, _Rows]:
    """Name and rows of a data set on the hub; the name says which configuration, if not the first."""
    if spec.hub is None:
        raise SpecError(
            f"{folder / DESCRIPTION}: neither 'questions' nor a [hub] table nor 'generator' says where they are"
        )
    known = (spec.hub.config, *spec.hub.configs)
    chosen = spec.hub.config if config is None else config
    if chosen not in known:
        raise DataError(f"data set {spec.name!r}: {unknown('configuration', chosen, known)}")
    fetched = load_rows(spec.hub, chosen, split, streaming=limit is not None and limit <= STREAMED_LIMIT)
    source = {"hub": spec.hub.path, "config": chosen, "revision": fetched.revision}
    name = spec.name if chosen == spec.hub.config else f"{spec.name}:{chosen}"
    return name, _Rows(fetched.rows, f"{spec.hub.path} ({chosen}, {split})", source)


def _part(folder: Path, name: str) -> Path:
    """A file that dataset.toml names."""
    if not (folder / name).is_file():
        raise DataError(f"{folder / DESCRIPTION} names {name!r}, and there is no such file")
    return folder / name


def _sampled(
    name: str,
    origin: _Rows,
    split: str,
    limit: int | None,
    seed: int,
    spec: DatasetSpec | None = None,
    corpus: Path | None = None,
) -> Dataset:
    """The sample of rows; style and scoring from `spec`, else from the rows' format."""
    found, examples = read_examples(origin.rows, origin.where)
    if spec and spec.format != found.name:
        raise DataError(f"{origin.where}: dataset.toml says format = {spec.format!r}, but the rows are {found.name!r}")
    selection = select(examples, limit=limit, seed=seed, repeats=found.repeats, where=origin.where)
    return _dataset(name, spec or found, origin.source, selection, split, limit, seed, corpus)


def _dataset(
    name: str,
    kind: DatasetSpec | Format,
    source: Mapping[str, Any],
    selection: Selection,
    split: str,
    limit: int | None,
    seed: int,
    corpus: Path | None,
) -> Dataset:
    """The selection with its manifest."""
    digest = ids_hash(example.id for example in selection.examples)
    manifest = {
        "name": name,
        "format": kind.format if isinstance(kind, DatasetSpec) else kind.name,
        "source": source,
        "split": split,
        "seed": seed,
        "limit": limit,
        "rows": selection.rows,
        "repeated_rows": selection.repeats,
        "examples": len(selection.examples),
        "ids_hash": digest,
        "corpus": {"file": corpus.name, "sha256": file_sha256(corpus)} if corpus else None,
    }
    return Dataset(name, kind.style, kind.scoring, split, selection.examples, digest, corpus, manifest)
