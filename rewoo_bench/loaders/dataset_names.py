"""Which data set a text means, as `--dataset` takes it.

hotpotqa                        a bundled or installed set
triviaqa:rc.wikipedia           another configuration of it
chain?hops=3                    options of a generated set
gsm8k=test.jsonl                its questions from a file of one's own, read and scored as that set
questions.jsonl, ./my_set       a file or a folder
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.config.named import Named, find_named, known_names
from rewoo_bench.errors import DataError, unknown
from rewoo_bench.loaders.files import SUFFIXES, plain_name


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
    if found := _with_file(text, known):
        return found
    plain, mark, behind = text.partition("?")
    options = behind if mark else None
    name, _, config = plain.rpartition(":")
    for candidate, chosen in ((plain, None), (name, config)):
        if named := find_named("datasets", candidate):
            return NamedDataset(named, chosen, options)
    if "/" in plain or _is_data_file(plain):
        raise DataError(f"no such data file or folder: {text!r}; bundled data sets: {', '.join(known)}")
    raise DataError(f"{unknown('data set', plain, known)}; or the path of a file or folder")


def _with_file(text: str, known: list[str]) -> NamedDataset | None:
    """The data set and the file of `name=file`; None where the text isn't of that form."""
    name, mark, file = text.partition("=")
    if not mark or "?" in name:
        return None
    named = find_named("datasets", name)
    if named is None:
        if "/" not in name and (_is_data_file(file) or Path(file).exists()):
            raise DataError(f"{unknown('data set', name, known)}; expected NAME=FILE")
        return None
    if not Path(file).is_file():
        raise DataError(f"no such data file: {file!r}; expected the questions of {name!r}, as NAME=FILE")
    return NamedDataset(named, file=Path(file))


def _is_data_file(name: str) -> bool:
    return plain_name(Path(name)).endswith(SUFFIXES)
