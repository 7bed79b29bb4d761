"""Reads the rows of a data set on the Hugging Face hub.

A stream reads only the files of one split and keeps nothing. Otherwise every split of the
configuration is downloaded once and stays in the cache; HF_HUB_OFFLINE=1 reads it from there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from rewoo_bench.config.specs import HubSource
from rewoo_bench.errors import DataError, unknown
from rewoo_bench.loaders.row_fields import RawRow

REACH_TIMEOUT_S = 10.0
_FILES = "a downloaded file of this data set (--dataset path/to/file.json) or --dataset sample"


@dataclass(frozen=True, slots=True)
class HubRows:
    """Rows of one split, and the commit of the hub repository that they come from."""

    rows: Iterable[RawRow]
    revision: str | None = None


class LoadRows(Protocol):
    """The seam between the hub and the loaders: tests pass in rows."""

    def __call__(self, source: HubSource, config: str, split: str, *, streaming: bool) -> HubRows: ...


def load_rows(source: HubSource, config: str, split: str, *, streaming: bool) -> HubRows:
    """The rows of `split` of `config`. Raises `DataError`, for a fault while reading too.

    Without a network this ends at once, or after two timeouts of `REACH_TIMEOUT_S` where a
    firewall swallows the packets.
    """
    import datasets
    import httpx  # huggingface_hub's client, which lets its errors through
    import huggingface_hub

    where, is_offline = f"{source.path} ({config})", datasets.config.HF_HUB_OFFLINE
    of_hub = (OSError, ValueError, RuntimeError, httpx.HTTPError, datasets.exceptions.DatasetsError)

    @contextmanager
    def faults() -> Iterator[None]:
        try:
            yield
        except of_hub as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            instead = f"without a network use {_FILES}; HF_HUB_OFFLINE=1 reads a copy in the cache"
            if is_offline:
                instead = f"HF_HUB_OFFLINE is set and the cache has no copy; unset it to download one, or use {_FILES}"
            raise DataError(f"can't read {where} from the Hugging Face hub: {reason}; {instead}") from None

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
            rows = builder.as_streaming_dataset(split=split)
        else:
            builder.download_and_prepare()
            rows = builder.as_dataset(split=split)
    return HubRows(guarded(rows), builder.hash)
