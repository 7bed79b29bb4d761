"""Data sets as examples: bundled ones, ones on the Hugging Face hub, and files.

    load_dataset_examples("sample")                               # bundled, all of it
    load_dataset_examples("hotpotqa", limit=50)                   # from the hub
    load_dataset_examples("triviaqa:rc.wikipedia", limit=50)      # another configuration
    load_dataset_examples("hotpot_dev_distractor_v1.json")        # a file in an official format
    load_dataset_examples("gsm8k=test.jsonl")                     # a file, read and scored as that data set
    load_dataset_examples("./my_set")                             # a folder with a dataset.toml
    load_dataset_examples("chain?hops=1..4&width=2")              # generated, with options

`formats` recognises the row formats, `sampling` chooses the questions, `hub` and `files` read rows,
`generators` makes questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewoo_bench.config.named import DESCRIPTIONS, Named, checked_tools, find_scorer, read_dataset
from rewoo_bench.config.specs import DatasetSpec
from rewoo_bench.errors import DataError, SpecError, UsageError, unknown
from rewoo_bench.loaders import hub
from rewoo_bench.loaders.files import file_sha256, find_dataset, plain_name, read_rows
from rewoo_bench.loaders.formats import Format, format_named, read_examples
from rewoo_bench.loaders.row_fields import Row
from rewoo_bench.loaders.sampling import Selection, generated, ids_hash, select
from rewoo_bench.runs.manifest import DatasetFacts
from rewoo_bench.text.argument_checks import check_kind
from rewoo_bench.text.scoring import Scorer
from rewoo_bench.types import Example

__all__ = ["Dataset", "load_dataset_examples"]

STREAMED_LIMIT = 1000
"""Number of questions up to which a hub split is streamed; for more, a copy in the cache is worth its time."""

DESCRIPTION = DESCRIPTIONS["datasets"]


@dataclass(frozen=True)
class Dataset:
    """The questions of a run, and the facts that identify them."""

    name: str
    style: str
    """Which exemplars fit: `multihop`, `trivia`, `arithmetic` or `yes_no`."""
    scorer: Scorer
    split: str
    """For a lone file the split asked for, else `file`."""
    examples: Sequence[Example]
    ids_hash: str
    """sha256 over the list of ids, one a line."""
    corpus: Path | None
    """Passages that ship with the data set."""
    manifest: Mapping[str, Any]
    """JSON-ready: source (hub path, configuration and commit, or file and its sha256), split, seed, …"""
    tools: tuple[str, ...] = ()
    """Tools that the questions need; none leaves the choice to each architecture."""

    @property
    def scoring(self) -> str:
        """Name of the scorer."""
        return self.scorer.name


@dataclass(frozen=True, slots=True)
class _Rows:
    """Raw rows and where they come from, in words and for the manifest."""

    rows: Iterable[Row]
    where: str
    source: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class _Sampling:
    """The flags that decide which rows are taken."""

    split: str
    limit: int | None
    seed: int


@dataclass(frozen=True, slots=True)
class _Described:
    """A dataset.toml, and its folder; None for a generator class of an installed package, which has no file."""

    spec: DatasetSpec
    folder: Path | None
    package: str | None = None

    @property
    def where(self) -> str:
        """What an error message begins with."""
        return str(self.folder / DESCRIPTION) if self.folder else f"data set {self.spec.name!r}"

    def part(self, name: str) -> Path:
        """A file that dataset.toml names. Raises `DataError`."""
        if self.folder is None or not (self.folder / name).is_file():
            raise DataError(f"{self.where} names {name!r}, and there is no such file")
        return self.folder / name


def load_dataset_examples(
    dataset: str,
    *,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    load_rows: hub.LoadRows = hub.load_rows,
) -> Dataset:
    """The examples of `dataset`: a bundled or installed name, also with `:configuration`, `?options` or `=file` behind
    it, a folder or a file.

    `limit` questions are taken in an order that `seed` decides, see `loaders.sampling`. None is
    the data set's `default_limit`, and all rows, in file order, where it has none and for files.
    A limit beyond the last row takes all. Of a generated set the first questions are taken, and
    `seed` decides what they are. `split` picks a split of a hub set; a file is one split, so there
    it is only a label.

    Raises `DataError`, `SpecError` (dataset.toml) or, for a limit below 1, `UsageError`.
    """
    check_kind("dataset", dataset, (str, Path), "a name or a path")
    check_kind("limit", limit, (int, type(None)), "a whole number or None")
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit!r}")
    found = find_dataset(str(dataset))
    described = _described(found.dataset) if found.dataset else None
    if found.file is not None:
        path = found.file
        if described and described.spec.generator:
            what = f"makes its questions, so the file {str(path)!r} has no place"
            raise DataError(f"data set {described.spec.name!r} {what}")
        rows = _Rows(read_rows(path), str(path), {"file": str(path), "sha256": file_sha256(path)})
        own_name = described.spec.name if described else Path(plain_name(path)).stem
        return _sampled(own_name, rows, _Sampling(split or "file", limit, seed), described)
    assert described is not None, "a data set or a file"
    spec, config, options = described.spec, found.config, found.options
    sampling = _Sampling(split or spec.default_split, limit or spec.default_limit, seed)
    if spec.generator:
        _check_choice(spec, config, sampling.split)
        return _generated(described, spec.generator, options or "", sampling)
    if options is not None:
        raise DataError(f"data set {spec.name!r} has no options, so {options!r} can't be given")
    if spec.questions:
        _check_choice(spec, config, sampling.split)
        path = described.part(spec.questions)
        # named within its folder: a manifest is published, and the same on every machine
        source: dict[str, str | None] = {"file": f"{path.parent.name}/{spec.questions}", "sha256": file_sha256(path)}
        name, rows = spec.name, _Rows(read_rows(path), str(path), source)
    else:
        name, rows = _hub_rows(described, config, sampling, load_rows)
    return _sampled(name, rows, sampling, described)


def load_questions_of(dataset: str, run: DatasetFacts) -> Dataset:
    """The examples of `dataset` for a run that was made of it: all of a file, else the run's sample."""
    if Path(dataset).is_file() or "=" in dataset.partition("?")[0]:
        return load_dataset_examples(dataset)
    return load_dataset_examples(dataset, split=run.split, limit=run.limit, seed=run.seed or 0)


def generated_count(dataset: str, limit: int | None) -> int | None:
    """The most questions that a run of a generated data set asks; None for every other set, or where nothing says."""
    found = find_dataset(str(dataset))
    if found.dataset is None or found.file is not None:
        return None
    spec = _described(found.dataset).spec
    return limit or spec.default_limit if spec.generator else None


def _described(named: Named) -> _Described:
    if named.folder:
        return _Described(read_dataset(named), named.folder, named.package)
    spec = DatasetSpec(
        name=named.name, format="sample", generator=named.class_path, default_split="generated", default_limit=100
    )
    return _Described(spec, None, named.package)


def _check_choice(spec: DatasetSpec, config: str | None, split: str) -> None:
    """A data set that isn't on the hub has one configuration and one split."""
    if config is not None:
        raise DataError(f"data set {spec.name!r} has no configurations, so {config!r} can't be chosen")
    if split != spec.default_split:
        raise DataError(f"data set {spec.name!r}: {unknown('split', split, [spec.default_split])}")


def _hub_rows(
    described: _Described, config: str | None, sampling: _Sampling, load_rows: hub.LoadRows
) -> tuple[str, _Rows]:
    """Name and rows of a data set on the hub; the name says which configuration, if not the first."""
    spec, split, limit = described.spec, sampling.split, sampling.limit
    if spec.hub is None:
        if spec.url:
            raise DataError(
                f"data set {spec.name!r} comes without questions: get their file from {spec.url}, "
                f"and give it as --dataset {spec.name}=FILE"
            )
        raise SpecError(
            f"{described.where}: no questions; give 'questions', 'generator' or a [hub] table, or a file: "
            f"--dataset {spec.name}=FILE"
        )
    known = (spec.hub.config, *spec.hub.configs)
    chosen = spec.hub.config if config is None else config
    if chosen not in known:
        raise DataError(f"data set {spec.name!r}: {unknown('configuration', chosen, known)}")
    fetched = load_rows(spec.hub, chosen, split, streaming=limit is not None and limit <= STREAMED_LIMIT)
    source = {"hub": spec.hub.path, "config": chosen, "revision": fetched.revision}
    name = spec.name if chosen == spec.hub.config else f"{spec.name}:{chosen}"
    return name, _Rows(fetched.rows, f"{spec.hub.path} ({chosen}, {split})", source)


def _generated(described: _Described, generator: str, options: str, sampling: _Sampling) -> Dataset:
    """The first questions of a generator."""
    limit, seed = sampling.limit, sampling.seed
    name, selection, source = generated(
        described.spec,
        generator,
        options,
        limit=limit,
        seed=seed,
        where=described.where,
        folder=described.folder,
    )
    rows_format = format_named(described.spec.format or "sample")
    return _dataset(name, rows_format, source, selection, sampling, described)


def _sampled(name: str, origin: _Rows, sampling: _Sampling, described: _Described | None = None) -> Dataset:
    """The sample of rows."""
    expected = described.spec.format if described else None
    examples = read_examples(origin.rows, origin.where, expected)
    rows_format = examples.format
    repeats, where = rows_format.repeats, origin.where
    selection = select(examples, limit=sampling.limit, seed=sampling.seed, repeats=repeats, where=where)
    if not selection.examples:
        raise DataError(f"{where}: none of the {examples.left_out} rows can be answered from its paragraphs")
    dataset = _dataset(name, rows_format, origin.source, selection, sampling, described)
    if not examples.left_out:
        return dataset
    rows = selection.rows + examples.left_out
    return replace(dataset, manifest={**dataset.manifest, "rows": rows, "unanswerable_rows": examples.left_out})


def _dataset(
    name: str,
    rows_format: Format,
    source: Mapping[str, Any],
    selection: Selection,
    sampling: _Sampling,
    described: _Described | None,
) -> Dataset:
    """The selection with its manifest; style and scorer from dataset.toml, else those of the rows' format."""
    spec = described.spec if described else None
    where = described.where if described else name
    defaults = rows_format.defaults
    scorer = find_scorer((spec and spec.scoring) or defaults.scoring, where, described.folder if described else None)
    corpus = described.part(spec.corpus) if described and spec and spec.corpus else None
    digest = ids_hash(example.id for example in selection.examples)
    manifest = {
        "name": name,
        "format": rows_format.name,
        "scoring": scorer.name,
        "source": source,
        "split": sampling.split,
        "seed": sampling.seed,
        "limit": sampling.limit,
        "rows": selection.rows,
        "repeated_rows": selection.repeats,
        "examples": len(selection.examples),
        "with_chain": sum(bool(example.chain) for example in selection.examples),
        "ids_hash": digest,
        "corpus": {"file": corpus.name, "sha256": file_sha256(corpus)} if corpus else None,
    }
    if described and described.package:
        manifest["package"] = described.package
    style = (spec and spec.exemplars) or defaults.style
    tools = checked_tools(spec.tools, f"{where}: tools") if spec else defaults.tools
    return Dataset(name, style, scorer, sampling.split, selection.examples, digest, corpus, manifest, tools)
