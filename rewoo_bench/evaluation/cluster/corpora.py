"""The passages of a run on each node: the driver's file where the node sees it, else one copy in the node's cache."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile

from anyio import to_thread

from rewoo_bench.evaluation.cluster.messages import ShippedCorpus
from rewoo_bench.loaders.files import file_sha256
from rewoo_bench.output_file import removed_unless_written
from rewoo_bench.paths import cache_dir


def shipped(path: Path) -> ShippedCorpus:
    """The file in Ray's object store, which brings it to a node once."""
    import ray

    return ShippedCorpus(path, file_sha256(path), [ray.put(path.read_bytes())])


async def local_corpus(corpus: ShippedCorpus) -> Path:
    """The passages as a file of this node."""
    if corpus.path.is_file() and await to_thread.run_sync(file_sha256, corpus.path) == corpus.sha256:
        return corpus.path
    copy = cache_dir() / "corpora" / corpus.sha256[:16] / corpus.path.name
    if not copy.exists():
        (content,) = corpus.content
        await to_thread.run_sync(_write, copy, await content)
    return copy


def _write(copy: Path, content: bytes) -> None:
    """Two workers of a node may both write: each replaces the whole file by the same bytes."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=copy.parent, delete=False) as part, removed_unless_written(Path(part.name)):
        part.write(content)
        part.close()
        Path(part.name).replace(copy)
