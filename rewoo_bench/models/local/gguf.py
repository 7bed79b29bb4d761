"""The header of a GGUF file, read without loading the model.

For a bad file, llama.cpp reports only that it can't start, so this reports the fault, and the facts of a
good file (`GGUFHeader("qwen2", 1_543_714_304, 32768, True)`).
The reader of the `gguf` package keeps every string of the vocabulary: for the default model it takes
2.4 s and 190 MB, this 0.02 s and 13 MB.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from rewoo_bench.errors import ModelNotFound

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST = 1 << 28  # a string or a list longer than this has a damaged length

# Bytes and weights of a block, by ggml type. A type that isn't here counts as no bytes: the check for a cut-off
# file is then weaker, but never wrong.
_BLOCKS = {
    0: (4, 1), 1: (2, 1), 2: (18, 32), 3: (20, 32), 6: (22, 32), 7: (24, 32), 8: (34, 32),
    10: (84, 256), 11: (110, 256), 12: (144, 256), 13: (176, 256), 14: (210, 256), 30: (2, 1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """The header of a file. `context` is the trained length in tokens, 0 where unknown."""

    architecture: str
    parameters: int
    context: int
    chat_template: bool


def read_header(path: Path) -> GGUFHeader:
    """The header of a model file.

    Raises `ModelNotFound` for a file that is missing, of another format, or cut off.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelNotFound(f"not a GGUF model file: {str(path)!r}")
            metadata, parameters, end = _read_body(file)
    except OSError as error:
        raise ModelNotFound(f"can't read the model file {str(path)!r}: {error.strerror or error}") from None
    except (EOFError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise ModelNotFound(f"the model file {str(path)!r} is damaged: its header can't be read") from error
    size = path.stat().st_size
    if size < end:
        raise ModelNotFound(f"the model file {str(path)!r} is cut off: it has {size} bytes of at least {end}")
    architecture = str(metadata.get("general.architecture", ""))
    return GGUFHeader(
        architecture,
        parameters,
        int(metadata.get(f"{architecture}.context_length", 0)),
        "tokenizer.chat_template" in metadata,
    )


def _read_body(file: BinaryIO) -> tuple[dict[str, Any], int, int]:
    """Metadata, number of weights, and the offset at which the last tensor ends."""
    _, tensors, pairs = struct.unpack("<IQQ", _take(file, 20))
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = _string(file)
        metadata[key] = _value(file, _number(file, "I"))
    parameters, end = 0, 0
    for _ in range(tensors):
        _string(file)
        shape = struct.unpack(f"<{(n := _number(file, 'I'))}Q", _take(file, 8 * n))
        kind, offset = _number(file, "I"), _number(file, "Q")
        size, weights = _BLOCKS.get(kind, (0, 1))
        parameters += prod(shape)
        end = max(end, offset + prod(shape) // weights * size)
    alignment = int(metadata.get("general.alignment", 32))
    return metadata, parameters, -(-file.tell() // alignment) * alignment + end


def _value(file: BinaryIO, kind: int) -> Any:
    """A value. A list is skipped and None is returned, since vocabularies are long."""
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _number(file, _SCALARS[kind])
    item, length = _number(file, "I"), _number(file, "Q")
    if item == _STRING:
        _skip_strings(file, length)
    else:
        _take(file, struct.calcsize("<" + _SCALARS[item]) * length)
    return None


def _skip_strings(file: BinaryIO, count: int) -> None:
    """Skip a vocabulary without copying it: it has up to half a million strings."""
    length = struct.Struct("<Q")
    for _ in range(count):
        size = length.unpack(file.read(8))[0]
        if size > _LONGEST:
            raise EOFError
        file.seek(size, 1)


def _number(file: BinaryIO, code: str) -> Any:
    return struct.unpack("<" + code, _take(file, struct.calcsize("<" + code)))[0]


def _string(file: BinaryIO) -> str:
    return _take(file, _number(file, "Q")).decode("utf-8", "replace")


def _take(file: BinaryIO, count: int) -> bytes:
    data = file.read(count) if count <= _LONGEST else b""
    if len(data) != count:
        raise EOFError
    return data
