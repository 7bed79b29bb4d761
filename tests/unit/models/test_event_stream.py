"""Server-sent events in pieces: the same events however they are cut, in a time that grows with their size alone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from itertools import pairwise

import anyio
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.models.hosted.http_endpoint import documents_of, events_of, is_done

EVENTS = [b'event: a\ndata: {"n": 1}\n\n', b'data: {"n": 2}\r\n\r\n', b": ping\n\n", b"data: [DONE]\n\n"]


def read(pieces: list[bytes]) -> list[bytes]:
    async def sent() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def events() -> list[bytes]:
        return [event async for event in events_of(sent())]

    return anyio.run(events)


@given(st.lists(st.sampled_from(EVENTS), max_size=6), st.sets(st.integers(0, 150)))
def test_a_stream_has_the_same_events_however_it_is_cut(events: list[bytes], cuts: set[int]) -> None:
    data = b"".join(events) + b"data: unfinished"
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    assert read(pieces) == [*events, b"data: unfinished"]


def test_an_event_of_many_pieces_takes_a_time_that_grows_with_its_size() -> None:
    """Eight times the size took 64 times as long, and an event of 8 MB held up every other question for seconds."""

    def seconds(megabytes: int) -> float:
        pieces = [b"x" * 16_384] * (megabytes * 64) + [b"\n\n"]
        start = time.process_time()
        (event,) = read(pieces)
        assert len(event) == megabytes * (1 << 20) + 2
        return time.process_time() - start

    short, long = (min(seconds(size) for _ in range(5)) for size in (2, 16))
    assert long < 30 * short


def test_an_events_documents_are_its_json_objects() -> None:
    assert [list(documents_of(event)) for event in EVENTS] == [[{"n": 1}], [{"n": 2}], [], []]
    assert list(documents_of(b"data: " + b"[" * 100_000 + b"\n\n")) == []
    assert [is_done(event) for event in EVENTS] == [False, False, False, True]
