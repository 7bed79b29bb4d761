"""The garbage collector leaves alone what lives as long as the process, and nothing else."""

from __future__ import annotations

import gc
import weakref

import pytest

from rewoo_bench.evaluation.evaluator import frozen_heap


class Ring:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _thawed() -> None:
    assert gc.get_freeze_count() == 0


def test_what_was_there_is_left_alone_and_what_comes_is_collected() -> None:
    with frozen_heap():
        assert gc.get_freeze_count() > 10_000
        ring = weakref.ref(Ring())
        gc.collect()
        assert ring() is None
    assert gc.get_freeze_count() == 0


def test_an_error_thaws_it() -> None:
    with pytest.raises(ZeroDivisionError), frozen_heap():
        raise ZeroDivisionError
    assert gc.get_freeze_count() == 0


def test_who_froze_it_before_keeps_it() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > count / 2  # a few may have gone with their last user; unfrozen there were none
    gc.unfreeze()
