"""Progress of a run on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rewoo_bench.evaluation.folder import Result
from rewoo_bench.system.output import echo
from rewoo_bench.text.escaping import terminal
from rewoo_bench.text.redaction import redact
from rewoo_bench.text.words import counted, duration

_SECONDS_A_LINE = 10.0


class Progress:
    """Counts results and shows the score of each architecture, tokens, dollars and failures, in this session."""

    def __init__(
        self,
        total: int,
        *,
        done: int = 0,
        shown: bool = True,
        score: str = "EM",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        engine: Callable[[], str] | None = None,
        calls: Callable[[], int] = lambda: 0,
    ) -> None:
        self._total = total
        self._calls, self._calls_before = calls, calls()
        self._stream = stream or sys.stderr
        self._clock = clock
        self._engine = engine
        self._shown = shown
        self._score = score
        self._before = self._done = done  # by earlier sessions of the run
        self._failed = self._tokens = 0
        self._cost: float | None = 0.0  # None once a price wasn't known
        self._correct: dict[str, list[int]] = {}  # architecture -> number right, number scored
        self._start = clock()
        self._first: float | None = None  # when the first answer came, which waited for models to load
        self._last = 0.0
        self._bar = None
        if shown and self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, initial=done, unit=" answers", file=self._stream, dynamic_ncols=True, smoothing=0.1
            )

    def add(self, result: Result) -> None:
        """Shows one more result."""
        self._done += 1
        self._tokens += sum(call.usage.total_tokens for call in result.calls)
        if any(call.kind == "model" for call in result.calls):
            paid = result.cost_usd
            self._cost = None if paid is None or self._cost is None else self._cost + paid
        correct = self._correct.setdefault(result.task.architecture.name, [0, 0])
        self._failed += result.has_failed or result.trajectory.stop_reason == "agent_failed"
        if result.score is not None:
            correct[0] += result.score.exact_match
            correct[1] += 1
        if self._bar is not None:
            self._bar.set_postfix_str(self._state(), refresh=False)
            self._bar.update()
        elif self._shown:
            self._print_line()

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Every ten seconds of the body without an answer, shows the number of calls so far."""
        later = asyncio.get_running_loop().call_later
        timers: list[asyncio.TimerHandle] = []

        def tick() -> None:
            self._print_calls()
            timers[:] = [later(_SECONDS_A_LINE, tick)]

        timers.append(later(_SECONDS_A_LINE, tick))
        try:
            yield
        finally:
            timers[0].cancel()

    def _print_calls(self) -> None:
        now = self._clock()
        if self._bar is not None:
            self._bar.refresh()
        elif self._shown and now - self._last >= _SECONDS_A_LINE:
            self._last = now
            so_far = f"{counted(self._calls() - self._calls_before, 'call')} so far"
            print(f"{self._done}/{self._total} answers, {now - self._start:.0f} s, {so_far}", file=self._stream)

    def note(self, text: str) -> None:
        """Prints a line where progress is shown."""
        if self._shown:
            self.say(text)

    def say(self, text: str) -> None:
        """Prints a line, also where no progress is shown."""
        write = print if self._bar is None else self._bar.write
        write(terminal(text), file=self._stream)

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()

    def _print_line(self) -> None:
        """A line for the first answer, for the last, and every ten seconds between."""
        now = self._clock()
        is_first = self._first is None
        first = self._first = now if self._first is None else self._first
        if not is_first and self._done < self._total and now - self._last < _SECONDS_A_LINE:
            return
        self._last = now
        time_taken = f"{now - self._start:.0f} s"
        since_first = self._done - self._before - 1
        if since_first and self._done < self._total:
            time_taken += f", {duration((self._total - self._done) * (now - first) / since_first)} to go"
        print(f"{self._done}/{self._total} answers, {time_taken}, {self._state()}", file=self._stream)

    def _state(self) -> str:
        alone = len(self._correct) == 1
        shares = [
            ("" if alone else f"{name} ") + (f"{correct / scored:.2f}" if scored else "-")
            for name, (correct, scored) in self._correct.items()
        ]
        scored = sum(scored for _, scored in self._correct.values())
        new = f" of {counted(scored, 'new answer')}:" if self._before else ""
        engine = f", {self._engine()}" if self._engine else ""
        cost = f", ${self._cost:,.4f}" if self._cost else ""
        return f"{self._score}{new} {', '.join(shares)}, {self._tokens:,} tokens{cost}, {self._failed} failed{engine}"


# Warnings during a run: log records of the package, shown with the progress.
#
# with notices_to(progress.say):
#     ...     # logging.getLogger("rewoo_bench.models.hosted.client").warning("…") is one line on standard error


class _Handler(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(redact(record.getMessage()))


@contextmanager
def notices_to(say: Callable[[str], None]) -> Iterator[None]:
    """Passes warnings of the package's loggers to `say`, a line each."""
    logger, handler = logging.getLogger("rewoo_bench"), _Handler(say)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def say(notice: str) -> None:
    """Prints a line on standard error, before there is a progress bar."""
    echo(f"rewoo-bench: {notice}", err=True)
