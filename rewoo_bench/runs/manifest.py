"""run.json, the manifest of a run: what was run, with what, and how it ended.

    manifest = read_manifest(Path("results/local/my-run"))
    manifest.status, manifest.dataset.ids_hash, manifest.options["temperature"]

A public format. `format_version` is its version; a file of another version is refused. Unknown keys are kept.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from os.path import commonprefix
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from rewoo_bench.config.names import SOLVED
from rewoo_bench.errors import DataError
from rewoo_bench.system.files import replaced
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.redaction import redact_settings
from rewoo_bench.text.words import duration

MANIFEST = "run.json"
FORMAT_VERSION = 3


class _Facts(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class DatasetFacts(_Facts):
    """The source of the questions."""

    name: str = ""
    format: str | None = None
    """Shape of the rows: a name of `loaders.formats`, such as `hotpotqa` or `sample`."""
    scoring: str | None = None
    """Name of the scorer."""
    source: dict[str, Any] = {}
    """`file` and `sha256`, or `hub`, `config` and `revision`, or `generator`, `settings` and `sha256`; of questions
    with an attacker's lines also `inject`: their kind, and a hash of all lines."""
    split: str | None = None
    seed: int | None = None
    limit: int | None = None
    """Number of questions asked for, the data set's own default included; None is all of them."""
    rows: int | None = None
    """Rows of the source, before sampling."""
    examples: int | None = None
    """Questions of this run."""
    with_chain: int | None = None
    """Those of them with a gold chain in the data, which an oracle can follow."""
    ids_hash: str | None = None
    """Hash of the questions' ids, in their order."""


class CorpusFacts(_Facts):
    """The passages of the search tool."""

    file: str | None = None
    content_hash: str | None = None
    passages: int | None = None


class ArchitectureFacts(_Facts):
    """An architecture of the run, with a hash of every text in its prompts."""

    name: str
    runner: str = ""
    settings: dict[str, Any] | None = None
    tools: dict[str, Any] = {}
    exemplars: dict[str, int] = {}
    prompts_sha256: str | None = None
    texts_sha256: dict[str, str] | None = None
    tool_prompts_sha256: dict[str, str] | None = None


class PrefixFacts(_Facts):
    """What the prompts of all questions have in common, which is all that a prefix cache can hold for the next one."""

    tokens: int
    ends_in: Literal["tool list", "instructions", "exemplars", "question", "trace"]
    """The part in which they begin to differ."""


class EngineFacts(_Facts):
    """A cluster that asked the questions."""

    name: str
    version: str | None = None
    workers: int = 1


class Manifest(_Facts):
    """The facts of a run."""

    format_version: int = FORMAT_VERSION
    run_id: str = ""
    status: str = ""
    """`running`, `done` or `incomplete`."""
    reason: str | None = None
    """Why the run is incomplete."""
    started_at: str | None = None
    finished_at: str | None = None
    command: list[str] = []
    sessions: list[dict[str, Any]] = []
    """Command and start of every later session (`--resume`)."""
    options: dict[str, Any] = {}
    """The flags, by the names of `RunOptions`."""
    concurrency: int | None = None
    """Number of questions at the same time."""
    engine: EngineFacts | None = None
    """The cluster that asked questions of the run, in its last session or an earlier one; None for one process."""
    dataset: DatasetFacts = DatasetFacts()
    corpus: CorpusFacts | None = None
    architectures: list[ArchitectureFacts] = []
    models: dict[str, dict[str, Any]] = {}
    """By role; `default` is the model of every role that has no other."""
    prices: dict[str, dict[str, float] | None] | None = None
    """US dollars per million tokens, by model and kind of token; None for an unknown price."""
    tokenizer: str | None = None
    """The tokenizer for providers that report no usage."""
    environment: dict[str, Any] = {}
    shared_prefixes: dict[str, dict[str, PrefixFacts]] = {}
    """By architecture and role: the beginning of the prompts that all questions share."""
    never_called: dict[str, dict[str, int | None]] = {}
    """By architecture the tools that it was offered and never called, with the tokens of their JSON where known."""
    rows: int | None = None
    """Rows of questions.parquet."""
    recorded_calls: int | None = None
    """Calls in the journal when the last session ended."""
    sent: dict[str, Any] = {}
    """By role: differences of the requests from the options, after the endpoint refused them."""
    study: dict[str, Any] | None = None
    """Of a run that is a cell of a study: the study's file, its hash when the run began, and the cell."""
    imported: dict[str, Any] | None = None
    """Of a run that another program recorded: its files, their formats, what they lack, and the models that answered.
    """
    published: dict[str, Any] | None = None
    """What `rewoo-bench publish` left out."""

    @property
    def took(self) -> str:
        """How long the run took from start to end, or why that isn't known: `25 min`, `resumed`."""
        if self.imported or not self.started_at or not self.finished_at:
            return "imported" if self.imported else "not recorded"
        if self.sessions:
            return "resumed"
        start, end = map(datetime.fromisoformat, (self.started_at, self.finished_at))
        return duration((end - start).total_seconds())

    def as_json(self) -> dict[str, Any]:
        """The keys that were given, as they are written."""
        return self.model_dump(mode="json", exclude_unset=True)


def read_manifest(folder: Path) -> Manifest:
    """run.json of a run folder. Raises `DataError`."""
    path = folder / MANIFEST
    try:
        values = load_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise no_run(folder, MANIFEST) from None
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror}") from None
    except ValueError as error:  # also of text that isn't UTF-8
        raise DataError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(values, dict) or not values.get("run_id"):
        raise DataError(f"{path}: not a manifest of a run: it has no run_id")
    manifest = manifest_of(values, str(path))
    if (version := values.get("format_version")) != FORMAT_VERSION:
        raise DataError(f"{path}: its format_version is {version}; this rewoo_bench reads {FORMAT_VERSION}")
    return manifest


def no_run(path: Path, lacks: str) -> DataError:
    """What lies at a path in the place of a run, and the nearest path that works."""
    near = Path("results/local", path.name)
    way = "expected a folder that `rewoo-bench run` wrote; `rewoo-bench runs` lists those of results/local"
    if not path.exists():
        what = "no such file or folder"
        way = f"did you mean {str(near)!r}?" if (near / MANIFEST).is_file() else way
    else:
        what = f"it has no {lacks}" if path.is_dir() else "a file; `rewoo-bench import` reads traces of other programs"
    return DataError(f"{str(path)!r} is no run: {what}; {way}")


def resume_command(folder: Path) -> str:
    """The command that continues a run."""
    return f"rewoo-bench run --resume {shlex.quote(str(folder))}"


def manifest_of(values: Mapping[str, Any], where: str = MANIFEST) -> Manifest:
    """The parsed JSON of a manifest. Raises `DataError` that begins with `where`."""
    try:
        return Manifest.model_validate({key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        raise DataError(f"{where}: not a manifest of a run: {key}: {fault['msg']}") from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes run.json atomically, without API keys and user info of addresses. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {**manifest.as_json(), "format_version": FORMAT_VERSION}
    shown = redact_settings(values, manifest.options.get("api_base"))
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    with replaced(folder / MANIFEST, follows=False) as file:
        file.write(f"{text}\n".encode("utf-8", "replace"))


Manifests = Mapping[str, Manifest]
"""By run id."""


def scored_by_check(runs: Iterable[str], manifests: Manifests) -> bool:
    """Whether a world's check is the score of all these runs: exact match says what was solved, and F1 is the same."""
    return {run in manifests and manifests[run].dataset.scoring == SOLVED for run in runs} == {True}


# Facts that change no answer, or few (a run may go on elsewhere), or repeat another fact.
LOOSE = frozenset(
    {"litellm", "xllamacpp", "llama_server", "llama_server_arguments", "n_parallel", "threads", "prefix_cache"}
    | {"api_base", "path", "texts_sha256", "processor"}
    | {"with_chain", "without_chain", "without_pages", "without_task", "one_look_up"}
)

_LONG, _SHOWN_OF_LONG, _BEFORE = 40, 12, 8  # characters of a value, shown of a long one, and before a difference


def differing(texts: Sequence[str]) -> list[str]:
    """Texts that differ, of long ones the place where they do.

    >>> differing(["uvx mcp-server-fetch --user-agent=the-first-one", "uvx mcp-server-fetch --user-agent=the-second"])
    ['…ent=the-first-one', '…ent=the-second']
    """
    alike = len(commonprefix([*texts]))  # noqa: RUF071 - of texts, character by character
    start = max(0, alike - _BEFORE) if alike >= _SHOWN_OF_LONG else 0
    end = start + _SHOWN_OF_LONG + (_BEFORE if start else 0)
    return [
        text if len(text) <= _LONG else f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
        for text in texts
    ]


def changed_values(before: Any, now: Any, where: str, without: Collection[str] = ()) -> Iterator[str]:
    """A line for each value of a manifest's part that changed, without the keys in `without` at any depth.

    >>> list(changed_values({"seed": 0, "style": "chat"}, {"seed": 1, "style": "chat"}, "model"))
    ['model.seed was 0 and is 1 now']
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in {**before, **now}:
            if key not in without:
                yield from changed_values(before.get(key), now.get(key), f"{where}.{key}", without)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (old, new) in enumerate(zip(before, now, strict=True)):
            name = new.get("name", place) if isinstance(new, Mapping) else place
            yield from changed_values(old, new, f"{where}.{name}", without)
    elif before != now:
        was, is_ = differing([repr(before), repr(now)])
        yield f"{where} was {was} and is {is_} now"
