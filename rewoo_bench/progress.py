"""Progress of a run on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from rewoo_bench.evaluator import Result

_SECONDS_A_LINE = 10.0


class Progress:
    """Counts results and shows running exact match, tokens and failures."""

    def __init__(
        self,
        total: int,
        *,
        done: int = 0,
        shown: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._stream = stream or sys.stderr
        self._clock = clock
        self._shown = shown
        self._done = done  # by earlier sessions of the run
        self._scored = self._correct = self._failed = self._tokens = 0
        self._last = self._start = clock()
        self._bar = None
        if shown and self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, unit="q", file=self._stream, dynamic_ncols=True, smoothing=0.1)

    def add(self, result: Result) -> None:
        """Shows one more result."""
        self._done += 1
        self._tokens += sum(call.usage.total_tokens for call in result.calls)
        if result.score is None:
            self._failed += 1
        else:
            self._scored += 1
            self._correct += result.score.exact_match
        if self._bar is not None:
            self._bar.set_postfix_str(self._state(), refresh=False)
            self._bar.update()
        elif self._shown and (self._done == self._total or self._clock() - self._last >= _SECONDS_A_LINE):
            self._last = self._clock()
            seconds = self._last - self._start
            print(f"{self._done}/{self._total} questions, {seconds:.0f} s, {self._state()}", file=self._stream)

    def note(self, text: str) -> None:
        """Says something once."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        elif self._shown:
            print(text, file=self._stream)

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()

    def _state(self) -> str:
        match = f"EM {self._correct / self._scored:.2f}" if self._scored else "EM -"
        return f"{match}, {self._tokens:,} tokens, {self._failed} failed"
