"""A copy of a model file with its weights in another type, in the same folder.

    requantised(Path("smollm2-135m.gguf"), "Q8_0")      # smollm2-135m-Q8_0.gguf, written once

llama.cpp has fast kernels for some types and not for others: on two cores a 135M model's Q4_1 weights
took 2.3 s a question, the same as Q8_0 1.9 s. The error of eight bits is at most 0.4% of a block's
largest weight. A process of its own writes the file, `python -P requantise.py SOURCE TARGET TYPE`: it takes
400 MB of memory, which end with it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def requantised(source: Path, to: str, *, progress: bool = True) -> Path:
    """The file with its quantised weights as type `to` (a name of ggml's).

    Safe in any number of processes: one writes, the others wait for it. Raises `ModelNotFound` where it can't be
    written, as on a full disk.
    """
    from filelock import FileLock

    from rewoo_bench.models.local.file_hashes import is_unchanged, stamp_of, stamped_sha256

    target = source.with_name(f"{source.stem}-{to}.gguf")
    try:
        if is_unchanged(target, stamp_of(target)):
            return target
        with FileLock(target.with_suffix(".lock")):
            if not is_unchanged(target, stamp_of(target)):
                if progress:
                    print(f"writing {source.stem} as {to} once, which is faster to compute with", file=sys.stderr)
                stamp_of(target).unlink(missing_ok=True)
                _write_whole(source, target, to)
                stamped_sha256(target, stamp_of(target))
    except OSError as error:
        raise _not_written(source, to, error.strerror or str(error)) from None
    return target


def _write_whole(source: Path, target: Path, to: str) -> None:
    """Writes under a temporary name, in a process of its own, and then renames the file."""
    partial = target.with_suffix(".partial")
    command = [sys.executable, "-P", __file__, str(source), str(partial), to]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"code {done.returncode}"]
            raise _not_written(source, to, lines[-1])
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _not_written(source: Path, to: str, reason: str) -> Exception:
    from rewoo_bench.errors import ModelNotFound  # here, since the writing process imports nothing of ours

    where = f"can't write {source.name!r} as {to} in {str(source.parent)!r}"
    return ModelNotFound(f"{where}: {reason}; REWOO_BENCH_CACHE names another folder")


def _write(source: Path, target: Path, to: str) -> None:
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
    from gguf.quants import dequantize, quantize

    wanted = GGMLQuantizationType[to]
    kept = {GGMLQuantizationType.F32, wanted}
    reader = GGUFReader(source)
    writer = GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, fact in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":  # the writer's own
            continue
        listed = fact.types[0] == GGUFValueType.ARRAY
        writer.add_key_value(name, fact.contents(), fact.types[0], sub_type=fact.types[-1] if listed else None)
    for weights in reader.tensors:
        data, kind = weights.data, weights.tensor_type
        if kind not in kept:
            data, kind = quantize(dequantize(data, kind), wanted), wanted
        writer.add_tensor(weights.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    _write(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
