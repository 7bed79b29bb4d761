"""Data sets as examples: bundled ones, ones on the Hugging Face hub, and files; and those that an oracle can answer.

    load_dataset_examples("sample")                               # bundled, all of it
    load_dataset_examples("hotpotqa", limit=50)                   # from the hub
    load_dataset_examples("triviaqa:rc.wikipedia", limit=50)      # another configuration
    load_dataset_examples("hotpot_dev_distractor_v1.json")        # a file in an official format
    load_dataset_examples("gsm8k=test.jsonl")                     # a file, read and scored as that data set
    load_dataset_examples("./my_set")                             # a folder with a dataset.toml
    load_dataset_examples("chain?hops=1..4&width=2")              # generated, with options
    load_dataset_examples("hotpotqa?objectives=3")                # three questions as one task
    load_dataset_examples("hotpotqa?inject=call")                 # with an attacker's line in a gold page (poison.py)
    load_dataset_examples("results/local/airline")                # the tasks of a run (loaders/sources.py)

`sources` reads rows and recorded tasks, `formats` recognises the row formats, `sampling` chooses, makes or joins the
questions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rewoo_bench.config.named import Named, checked_tools, find_scorer, read_dataset
from rewoo_bench.config.names import DESCRIPTIONS
from rewoo_bench.config.specs import DatasetSpec
from rewoo_bench.errors import DataError, SpecError, UsageError, unknown
from rewoo_bench.loaders.formats import ROW_FORMATS, TASK, Defaults, RowFormat, format_named, read_examples
from rewoo_bench.loaders.poison import ALL, INJECT, KINDS, kinds_of, lines_sha256, poisoned
from rewoo_bench.loaders.row_fields import RawRow
from rewoo_bench.loaders.sampling import (
    MOST_JOINED,
    OBJECTIVES,
    Selection,
    generated,
    ids_hash,
    join,
    select,
    shuffled,
)
from rewoo_bench.loaders.sources import (
    LoadRows,
    NamedDataset,
    NamedRun,
    file_sha256,
    find_dataset,
    find_run,
    load_rows,
    read_data_file,
    read_tasks,
    scorer_of,
)
from rewoo_bench.runs.manifest import DatasetFacts
from rewoo_bench.text.argument_checks import check_kind
from rewoo_bench.text.data_files import plain_name
from rewoo_bench.text.scoring import Scorer
from rewoo_bench.text.words import fold
from rewoo_bench.tools import DocumentPages, Pages
from rewoo_bench.tools.corpus import read_passages
from rewoo_bench.types import Example, Hop
from rewoo_bench.worlds.world import Worlds

__all__ = ["Dataset", "load_dataset_examples"]

STREAMED_LIMIT = 1000
"""Number of questions up to which a hub split is streamed; for more, a copy in the cache is worth its time."""


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
    worlds: Worlds | None = None
    """What makes the world of each question, of a set whose tasks happen in one."""

    @property
    def scoring(self) -> str:
        """Name of the scorer."""
        return self.scorer.name


def load_dataset_examples(
    dataset: str,
    *,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    in_world: bool = False,
    load_rows: LoadRows = load_rows,
) -> Dataset:
    """The examples of `dataset`: a bundled or installed name, also with `:configuration`, `?options` or `=file` behind
    it, a folder or a file. With `?objectives=3` three questions are a task, and `limit` counts tasks. With
    `?inject=call` each has an attacker's line in a page; with `?inject=all` each is asked once with each kind of line,
    and `limit` counts all of them.

    `limit` questions are taken in an order that `seed` decides, see `loaders.sampling`. None is
    the data set's `default_limit`, and all rows, in file order, where it has none and for files.
    A limit beyond the last row takes all. Of a generated set the first questions are taken, and
    `seed` decides what they are. `split` picks a split of a hub set; a file is one split, so there
    it is only a label. `in_world` reads tasks in a world: a row needs no gold answer, and stays with its example.

    Raises `DataError`, `SpecError` (dataset.toml) or, for a limit below 1, `UsageError`.
    """
    check_kind("dataset", dataset, (str, Path), "a name or a path")
    check_kind("limit", limit, (int, type(None)), "a whole number or None")
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit!r}")
    plain, objectives, inject = split_options(str(dataset))
    if run := find_run(plain):
        if objectives > 1 or inject:
            raise DataError(f"{str(dataset)!r}: the tasks of a run are asked as they are: leave {OBJECTIVES} out")
        return _tasks_of_run(run, split, limit, seed)
    found = find_dataset(plain)
    named, spec = found.dataset, _spec(found.dataset) if found.dataset else None
    if found.file:
        if spec and spec.generator:
            what = f"makes its questions, so the file {str(found.file)!r} has no place"
            raise DataError(f"data set {spec.name!r} {what}")
        split = split or "file"
    else:
        assert spec is not None, "a data set or a file"
        split, limit = split or spec.default_split, limit or spec.default_limit
        _check_choice(spec, found, split)
    take = partial(_selected, found, spec, split, seed=seed, in_world=in_world, load_rows=load_rows)
    tasks = limit and math.ceil(limit / len(kinds_of(inject)))
    if objectives == 1:
        selected = take(tasks)
        taken = selected.selection.examples
    else:
        selected, taken = _joined(take, objectives, tasks, seed)
    over = len(selected.selection.examples) - objectives * len(taken)
    without_task = over if tasks is None or len(taken) < tasks else 0
    corpus = _part(named, spec.corpus) if named and spec and spec.corpus else None
    if inject:
        if corpus:  # each question has passages of its own then, one of them with the line
            pages = tuple(read_passages(corpus))
            taken = tuple(replace(example, documents=pages) for example in taken)
        selected, taken = _with_lines(selected, taken, inject, limit, seed)
    name, row_format, selection, left_out, source, worlds = selected

    # Exemplars, scorer and tools: what dataset.toml says, else what fits the rows' format.
    defaults, where = row_format.defaults, _where(named, name)
    scorer = find_scorer((spec and spec.scoring) or defaults.scoring, where, named.folder if named else None)
    scorer = scorer.of_objectives(objectives)
    tools = checked_tools(spec.tools, f"{where}: tools") if spec else defaults.tools
    digest = ids_hash(example.id for example in taken)
    manifest = {
        "name": name,
        "format": row_format.name,
        "scoring": scorer.name,
        "source": source,
        "split": split,
        "seed": seed,
        "limit": limit,
        "rows": selection.rows + left_out,
        "repeated_rows": selection.repeats,
        "examples": len(taken),
        "with_chain": sum(bool(example.chain or example.actions) for example in taken),
        "ids_hash": digest,
        "corpus": {"file": corpus.name, "sha256": file_sha256(corpus)} if corpus else None,
    }
    if named and named.package:
        manifest["package"] = named.package
    if without_task:
        manifest["without_task"] = without_task
    if left_out:
        manifest["unanswerable_rows"] = left_out
    style = (spec and spec.exemplars) or defaults.style
    shared = None if inject else corpus
    return Dataset(name, style, scorer, split, taken, digest, shared, manifest, tools, worlds)


def _tasks_of_run(run: NamedRun, split: str | None, limit: int | None, seed: int) -> Dataset:
    """The tasks of a run under the name of its data set, so that it can be compared with the run that asks them."""
    recorded = read_tasks(run)
    facts, where = recorded.dataset, str(run.folder)
    if split not in (None, facts.split, ""):
        raise DataError(f"--split {split}: the tasks of a run have no splits; leave it out")
    selection = select(recorded.examples, limit=limit, seed=seed, where=where)
    taken = selection.examples
    defaults = next((each.defaults for each in ROW_FORMATS if each.name == facts.format), Defaults())
    scorer = scorer_of(recorded, defaults.scoring)
    digest = ids_hash(example.id for example in taken)
    manifest = {
        "name": facts.name,
        "format": facts.format,
        "scoring": scorer.name,
        "source": recorded.source,
        "split": facts.split,
        "seed": facts.seed,  # of the recorded run: what a sample of its tasks lacks is seen from the ids
        "limit": limit,
        "rows": selection.rows,
        "examples": len(taken),
        "ids_hash": digest,
    }
    return Dataset(facts.name, defaults.style, scorer, facts.split or "", taken, digest, None, manifest, defaults.tools)


def load_questions_of(dataset: str, run: DatasetFacts) -> Dataset:
    """The examples of `dataset` for a run that was made of it: all of a file or a run, else the run's sample."""
    if find_run(dataset) or Path(split_options(dataset)[0]).is_file() or "=" in dataset.partition("?")[0]:
        return load_dataset_examples(dataset)
    return load_dataset_examples(dataset, split=run.split, limit=run.limit, seed=run.seed or 0)


def split_options(dataset: str) -> tuple[str, int, str]:
    """A data set's name without the options of every set, and their values: `objectives`, else 1; `inject`, else "".

    Raises `DataError`.
    """
    name, _, options = dataset.partition("?")
    given, rest = dict[str, str](), list[str]()
    for part in options.split("&") if options else ():
        option, _, value = part.partition("=")
        if option in given:
            raise DataError(f"{dataset!r:.300}: {option} is given once; {INJECT}={ALL} asks with each kind of line")
        if option in (OBJECTIVES, INJECT):
            given[option] = value
        else:
            rest.append(part)
    objectives, inject = given.get(OBJECTIVES, "1"), given.get(INJECT, "")
    if objectives not in map(str, range(1, MOST_JOINED + 1)):
        raise DataError(f"{dataset!r:.300}: objectives is given once, as a number from 1 to {MOST_JOINED}")
    if INJECT in given and inject not in (*KINDS, ALL):
        raise DataError(f"{dataset!r:.300}: {unknown(INJECT, inject, (*KINDS, ALL))}")
    return (f"{name}?{'&'.join(rest)}" if rest or (not given and "?" in dataset) else name), int(objectives), inject


def _spec(named: Named) -> DatasetSpec:
    """What dataset.toml says; a generator class of an installed package has none."""
    if named.folder:
        return read_dataset(named)
    return DatasetSpec(
        name=named.name, format="sample", generator=named.class_path, default_split="generated", default_limit=100
    )


def _where(named: Named | None, name: str) -> str:
    """What messages about dataset.toml begin with."""
    if named is None:
        return name
    return str(named.folder / DESCRIPTIONS["datasets"]) if named.folder else f"data set {named.name!r}"


def _part(named: Named, file: str) -> Path:
    """A file that dataset.toml names."""
    if named.folder is None or not (named.folder / file).is_file():
        raise DataError(f"{_where(named, named.name)} names {file!r}, and there is no such file")
    return named.folder / file


def _check_choice(spec: DatasetSpec, found: NamedDataset, split: str) -> None:
    """Raises `DataError` for options, a configuration or a split that the data set doesn't have."""
    about = f"data set {spec.name!r}"
    if found.options is not None and not spec.generator:
        raise DataError(f"{about} has no options but {OBJECTIVES} and {INJECT}, so {found.options!r} can't be given")
    if not (spec.generator or spec.questions):  # the hub knows
        return
    if found.config is not None:
        raise DataError(f"{about} has no configurations, so {found.config!r} can't be chosen")
    if split != spec.default_split:
        raise DataError(f"{about}: {unknown('split', split, [spec.default_split])}")


class _Selected(NamedTuple):
    """What was taken of a data set, and its source as JSON."""

    name: str
    format: RowFormat
    selection: Selection
    left_out: int
    """Rows."""
    source: Mapping[str, Any]
    worlds: Worlds | None = None


def _joined(
    take: Callable[[int | None], _Selected], objectives: int, limit: int | None, seed: int
) -> tuple[_Selected, tuple[Example, ...]]:
    """What was taken, and tasks of so many of its questions: more are taken until `limit` tasks can be joined."""
    wanted = limit and limit * (objectives + 1)  # a question may wait for a later task
    while True:
        selected = take(wanted)
        examples = selected.selection.examples
        are_all = wanted is None or len(examples) < wanted
        ordered = examples if wanted else shuffled(examples, seed)
        taken = tuple(islice(join(ordered, objectives, are_all=are_all), limit))
        if wanted is None or are_all or len(taken) == limit:
            break
        wanted *= 2
    name = f"{selected.name}{'&' if '?' in selected.name else '?'}{OBJECTIVES}={objectives}"
    if not taken:
        raise DataError(f"{name}: there are fewer than {objectives} questions that can be asked together")
    return selected._replace(name=name), taken


def _with_lines(
    selected: _Selected, tasks: Sequence[Example], inject: str, limit: int | None, seed: int
) -> tuple[_Selected, tuple[Example, ...]]:
    """What was taken, under a name and with a source that say so, and the tasks with an attacker's lines."""
    taken = tuple(islice(poisoned(tasks, inject, seed), limit))
    name = f"{selected.name}{'&' if '?' in selected.name else '?'}{INJECT}={inject}"
    if not taken:
        raise DataError(f"{name}: a line is put into a page of the gold chain, and no question has chain and pages")
    source = {**selected.source, INJECT: {"kind": inject, "lines": lines_sha256(inject)}}
    return selected._replace(name=name, source=source), taken


def _selected(
    found: NamedDataset,
    spec: DatasetSpec | None,
    split: str,
    limit: int | None,
    *,
    seed: int,
    in_world: bool,
    load_rows: LoadRows,
) -> _Selected:
    source: Mapping[str, Any]
    if spec and spec.generator:
        named, options = found.dataset, found.options or ""
        folder, where = named.folder if named else None, _where(named, spec.name)
        name, selection, source, worlds = generated(spec, options, limit=limit, seed=seed, where=where, folder=folder)
        return _Selected(name, format_named(spec.format or "sample"), selection, 0, source, worlds)
    name, rows, origin, source = _rows(found, spec, split, limit, load_rows)
    examples = read_examples(rows, origin, TASK if in_world else spec.format if spec else None)
    selection = select(examples, limit=limit, seed=seed, repeats=examples.format.repeats, where=origin)
    if not selection.examples:
        raise DataError(f"{origin}: none of the {examples.left_out} rows can be answered from its paragraphs")
    return _Selected(name, examples.format, selection, examples.left_out, source)


def _rows(
    found: NamedDataset, spec: DatasetSpec | None, split: str, limit: int | None, load_rows: LoadRows
) -> tuple[str, Iterable[RawRow], str, Mapping[str, Any]]:
    """A data set's name (with the configuration, if not the first), its rows, and their source in words and as JSON."""
    if path := found.file:
        name = spec.name if spec else Path(plain_name(path)).stem
        return name, read_data_file(path), str(path), {"file": str(path), "sha256": file_sha256(path)}
    assert spec is not None
    assert found.dataset is not None
    if spec.questions:
        path = _part(found.dataset, spec.questions)
        # named within its folder: a manifest is published, and the same on every machine
        source = {"file": f"{path.parent.name}/{spec.questions}", "sha256": file_sha256(path)}
        return spec.name, read_data_file(path), str(path), source
    if spec.hub is None:
        if spec.url:
            raise DataError(
                f"data set {spec.name!r} comes without questions: get their file from {spec.url}, "
                f"and give it as --dataset {spec.name}=FILE"
            )
        raise SpecError(
            f"{_where(found.dataset, spec.name)}: no questions; give 'questions', 'generator' or a [hub] table, "
            f"or a file: --dataset {spec.name}=FILE"
        )
    config, known = found.config, (spec.hub.config, *spec.hub.configs)
    config = spec.hub.config if config is None else config
    if config not in known:
        raise DataError(f"data set {spec.name!r}: {unknown('configuration', config, known)}")
    rows, revision = load_rows(spec.hub, config, split, streaming=limit is not None and limit <= STREAMED_LIMIT)
    name = spec.name if config == spec.hub.config else f"{spec.name}:{config}"
    where = f"{spec.hub.path} ({config}, {split})"
    return name, rows, where, {"hub": spec.hub.path, "config": config, "revision": revision}


# The gold chains that the oracle follows: those of a data set, and a search for questions without one.
#
# A trivia question has answers but no chain. One look-up is its chain: the best page for the question that shows an
# answer in its first paragraph. A question without such a page is left out, and counted; so is a question with a chain
# that lacks the documents which the others bring.


_PAGES_READ = 50
_ON_NO_PAGE = frozenset({"gsm8k", "yes_no", "physics", "parallelqa"})
"""Scorers of answers that are worked out: a page that shows the same word or number doesn't answer the question."""
_LARGER = 4  # times the sample, where too few of its questions have a chain


def with_chains(
    dataset: Dataset,
    corpus: Pages | None,
    load: Callable[[int], Dataset] | None = None,
    *,
    looks_up: bool = True,
    in_world: bool = False,
) -> Dataset:
    """The data set's questions that have a chain, and pages to follow it; its manifest counts those left out.

    Architectures that look nothing up need neither: without `looks_up` all questions stay.
    `load` gives the sample of a larger limit. With it the limit counts questions that are taken: the first
    of the sample's order are taken, so a sample still begins with every smaller one. Raises `DataError`.
    """
    if in_world:
        chained = [example for example in dataset.examples if example.actions]
        if not chained:
            needed = "the oracle needs the gold calls of each task, under 'calls' (docs/tools.md)"
            raise DataError(f"{dataset.name!r}: {needed}; or name a language model with --model")
        return _with_examples(dataset, chained, without_chain=len(dataset.examples) - len(chained), without_pages=0)
    if not looks_up:
        return replace(dataset, manifest={**dataset.manifest, "without_chain": 0, "without_pages": 0})
    limit, asked = dataset.manifest["limit"], dataset.manifest["limit"]
    sample, chained, read, without_pages, with_gold = dataset, list[Example](), 0, 0, 0
    is_worked_out = dataset.scoring in _ON_NO_PAGE
    brings_pages = corpus is None and dataset.corpus is None and any(each.documents for each in dataset.examples)
    while True:
        for example in sample.examples[read:]:
            if limit is not None and len(chained) == limit:
                break
            read += 1
            if example.chain and brings_pages and not example.documents:
                without_pages += 1
            elif (example.chain or not is_worked_out) and (found := with_chain(example, corpus)):
                chained.append(found)
                with_gold += bool(example.chain)
        has_more = asked is not None and len(sample.examples) >= asked and "generator" not in sample.manifest["source"]
        if load is None or not has_more or len(chained) == limit:  # a generator would never end
            break
        asked *= _LARGER
        sample = load(asked)
    if not any(example.answers for example in dataset.examples):
        raise DataError(f"{dataset.name!r}: its tasks have no gold answers, and the oracle needs them: name a --model")
    if not chained:
        why = " or a page that shows its answer; ask a language model, or give passages with --corpus"
        if is_worked_out:
            why = ": answers that are worked out stand on no page; ask a language model"
        needed = "the oracle needs a way to each answer, and no question has a gold chain"
        raise DataError(f"{dataset.name!r}: {needed}{why}")
    without_chain = read - len(chained) - without_pages
    counts = {"with_chain": with_gold, "without_chain": without_chain, "without_pages": without_pages}
    counts["one_look_up"] = len(chained) - with_gold
    return _with_examples(dataset, chained, **counts)


def _with_examples(dataset: Dataset, examples: list[Example], **counts: int) -> Dataset:
    digest = ids_hash(example.id for example in examples)
    manifest = {**dataset.manifest, "examples": len(examples), **counts, "ids_hash": digest}
    return replace(dataset, examples=examples, ids_hash=digest, manifest=manifest)


def with_chain(example: Example, corpus: Pages | None) -> Example | None:
    """The example with its chain, or with the one look-up that answers it; None where there is no such page."""
    if example.chain:
        return example
    pages = corpus if corpus is not None else DocumentPages(example.documents)
    answers = sorted((each for each in example.answers if len(each) > 1), key=len, reverse=True)
    hops: list[Hop] = []
    for hit in pages.search(example.question, _PAGES_READ):
        page = hit.document
        first = page.text.partition("\n")[0]
        matches = (re.search(rf"(?<!\w){re.escape(each)}(?!\w)", first, re.IGNORECASE) for each in answers)
        if pages.find(page.title) == page and (match := next(filter(None, matches), None)):
            hops.append(Hop(page.title, match[0], "what the question asks for"))
    if not hops:
        return None
    golds = {fold(answer) for answer in example.answers}
    others = [hop for hop in hops if fold(hop.title) not in golds]
    return replace(example, chain=((others or hops)[0],))  # rather not a page that only the answer names
