"""The response cache of `--answer-cache`: a request that another run has paid for isn't paid again.

    cache = ResponseCache(folder)
    cache.get(key)      # the cached answer, or None

Two trials of a question have two answers: with a temperature above 0 they differ. Several runs may use
a folder at once. Of two equal requests at the same time both are sent and paid. An answer that can't be written is
paid for again by the next run, with a warning in this one.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.records import as_bytes

CACHE = "answers.sqlite"
_log = logging.getLogger(__name__)


class ResponseCache:
    """The cached answers in a folder. Raises `DataError` where its file can't be used."""

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
        except sqlite3.Error as error:
            raise DataError(f"--answer-cache: {str(self.path)!r} can't be used: {error}") from None

    def get(self, key: bytes) -> dict[str, Any] | None:
        """The cached answer; None where there is none."""
        rows = self._run("SELECT answer FROM answers WHERE key = ?", key)
        return dict(json.loads(rows[0][0])) if rows else None

    def put(self, key: bytes, answer: Mapping[str, Any]) -> None:
        """Stores an answer, if the cache can be written."""
        text = as_bytes(answer).decode()  # as the journal has it, whatever a user's own model returned
        self._run("INSERT OR IGNORE INTO answers VALUES (?, ?)", key, text)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _run(self, statement: str, *values: object) -> list[Any]:
        """The rows that a statement finds; none where the cache can't be used."""
        try:
            with self._lock, self._database:
                return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            _log.warning("--answer-cache: %r can't be used: %s", str(self.path), error)
            return []


def cache_key(model_part: str, request: bytes, trial: int, nth: int) -> bytes:
    """The key of an answer: the model and its settings, the request, the trial, and the count of repetitions."""
    return sha256(json.dumps([model_part, request.hex(), trial, nth]).encode()).digest()
