"""A real model file, written anew with its weights in another type."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.local.catalogue import fetch, find_entry
from rewoo_bench.models.local.file_hashes import hash_file
from rewoo_bench.models.local.gguf import read_header
from rewoo_bench.models.local.requantise import requantised
from rewoo_bench.models.local.server import LocalServer, ServerSettings

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The file as it was fetched, and as Q8_0."""
    source = tmp_path_factory.mktemp("models") / "small.gguf"
    source.symlink_to(fetch(find_entry("smollm2-135m")))
    return source, requantised(source, "Q8_0", progress=False)


def test_a_file_keeps_its_facts(both: tuple[Path, Path]) -> None:
    source, target = both
    assert target == source.with_name("small-Q8_0.gguf")
    assert read_header(target) == read_header(source)
    facts = [
        {name: field.contents() for name, field in GGUFReader(path).fields.items() if not name.startswith("GGUF.")}
        for path in both
    ]
    assert facts[0] == facts[1]
    assert len(facts[0]) > 20


def test_its_weights_are_the_same_numbers_within_eight_bits(both: tuple[Path, Path]) -> None:
    before, after = (GGUFReader(path).tensors for path in both)
    assert [weights.name for weights in after] == [weights.name for weights in before]
    kinds = {weights.tensor_type for weights in after}
    assert kinds == {GGMLQuantizationType.F32, GGMLQuantizationType.Q8_0}
    assert GGMLQuantizationType.Q4_1 in {weights.tensor_type for weights in before}
    small = [pair for pair in zip(before, after, strict=True) if pair[0].n_elements < 1_000_000]
    for old, new in small[:40]:
        was, now = (dequantize(weights.data, weights.tensor_type).reshape(-1, 32) for weights in (old, new))
        largest = np.abs(was).max(axis=1, keepdims=True)
        assert (np.abs(was - now) <= largest / 220 + 1e-6).all()  # half a step of 127, and a rounded scale


def test_it_is_written_once_however_many_ask(both: tuple[Path, Path]) -> None:
    source, target = both
    written = target.stat().st_mtime_ns
    target.unlink()
    threads = [threading.Thread(target=requantised, args=[source, "Q8_0"]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = target.stat().st_mtime_ns
    assert again > written
    assert requantised(source, "Q8_0").stat().st_mtime_ns == again
    assert sorted(path.suffix for path in source.parent.iterdir()) == [".gguf", ".gguf", ".lock", ".stamp"]


def test_a_file_that_was_changed_is_written_anew(both: tuple[Path, Path]) -> None:
    source, target = both
    before = hash_file(target)
    with target.open("r+b") as file:
        file.write(b"gguf")
    os.utime(target, (1, 1))
    assert hash_file(requantised(source, "Q8_0", progress=False)) == before


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    source = tmp_path / "damaged.gguf"
    source.write_bytes(b"GGUF\x03\x00\x00\x00")
    with pytest.raises(ModelNotFound, match=r"can't write 'damaged.gguf' as Q8_0 in '.*': \w+Error") as failure:
        requantised(source, "Q8_0", progress=False)
    assert "\n" not in str(failure.value)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["damaged.gguf"]


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="a folder that not even root may write to")
def test_a_folder_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(ModelNotFound, match=r"in '/sys/kernel': .*; REWOO_BENCH_CACHE names another folder$"):
        requantised(Path("/sys/kernel/small.gguf"), "Q8_0", progress=False)


def test_it_is_served(both: tuple[Path, Path]) -> None:
    server = LocalServer(both[1], ServerSettings(context=512))
    try:
        assert server.settings.context == 512
    finally:
        server.close()
