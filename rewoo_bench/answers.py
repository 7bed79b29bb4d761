"""Answers of models, kept across runs: what was asked of a model before isn't paid for again.

    cache = AnswerCache(folder, identity="openai/gpt-4o-mini …")
    cache.get(key)      # the recorded answer, or None

Two trials of a question are two questions here: with a temperature above 0 they differ. Several
runs may use a folder at once.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError

CACHE = "answers.sqlite"


class AnswerCache:
    """A folder's answers. Raises `DataError` where it can't be used."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CACHE
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, check_same_thread=False, timeout=60)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS answers(key BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID"
            )
        except (OSError, sqlite3.DatabaseError) as error:
            raise DataError(f"--cache: {str(self.path)!r} can't be used: {error}") from None

    def get(self, key: bytes) -> dict[str, Any] | None:
        with self._lock:
            found = self._database.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return json.loads(found[0]) if found else None

    def put(self, key: bytes, answer: Mapping[str, Any]) -> None:
        with self._lock, self._database:
            self._database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, json.dumps(answer)))

    def close(self) -> None:
        self._database.close()


def cache_key(identity: str, request: bytes, trial: int, nth: int) -> bytes:
    """What an answer is found by: the model and its settings, the request, and which asking of it this is."""
    return sha256(json.dumps([identity, request.hex(), trial, nth]).encode()).digest()
