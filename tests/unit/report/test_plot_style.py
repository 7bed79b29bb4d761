"""What figures share: one look an architecture, labels apart, a front, and the paper's curves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.analysis.stats.paired import Interval
from rewoo_bench.config.names import bundled_names
from rewoo_bench.report.plots.ratios import front
from rewoo_bench.report.plots.style import MANY, drawn, sampled, series_styles, spread

BUNDLED = bundled_names("architectures")
STYLES = series_styles(BUNDLED)


@pytest.mark.parametrize("others", [["mine"], [f"rewoo?max_steps={n}" for n in (4, 5)], ["yours", "react?style=chat"]])
def test_the_bundled_architectures_and_two_others_have_colours_and_markers_of_their_own(others: list[str]) -> None:
    found = series_styles([*BUNDLED, *others])
    assert len({own.colour for own in found.values()}) == len({own.marker for own in found.values()}) == len(found)
    assert len(found) == len(BUNDLED) + len(others)
    alone = series_styles(BUNDLED)
    assert all(found[name] == alone[name] for name in BUNDLED)


def test_twelve_variants_of_one_architecture_and_thirty_two_beside_the_bundled_ones_differ() -> None:
    variants = series_styles([f"rewoo?max_steps={n}" for n in range(12)])
    assert len({own.colour for own in variants.values()}) == len({own.marker for own in variants.values()}) == 12
    many = series_styles([*BUNDLED, *(f"rewoo?max_steps={n}" for n in range(32))])
    assert len({(own.colour, own.marker) for own in many.values()}) == len(BUNDLED) + 32


def test_a_look_has_the_name_of_the_tables() -> None:
    names = ["mine", "mine?max_steps=5", "rewoo?max_steps=5&schedule=levels", "react?tools=Search+Lookup"]
    assert [series_styles(names)[name].name for name in names] == names
    assert series_styles(names) == series_styles(reversed(names))
    assert series_styles(names)[names[2]].wrapped(20) == "rewoo?max_steps=5&\nschedule=levels"
    longest = series_styles(["word " * 40]).popitem()[1].wrapped(20).split("\n")
    assert len(longest) == 5
    assert max(map(len, longest)) <= 20
    assert longest[-1].endswith("…")


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.05, 0.1, 0.15])), max_size=6))
def test_labels_are_apart_and_within_the_axes(labels: list[tuple[float, float]]) -> None:
    heights, sizes = sorted(height for height, _ in labels), [size for _, size in labels]
    placed = spread(heights, sizes)
    assert all(b[0] - a[0] >= (a[1] + b[1]) / 2 - 1e-9 for a, b in pairwise(zip(placed, sizes, strict=True)))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in placed)


def test_of_many_points_the_same_ones_are_drawn_every_time() -> None:
    assert drawn(5).tolist() == [0, 1, 2, 3, 4]
    assert drawn(50_000).tolist() == drawn(50_000).tolist()
    assert len(set(drawn(50_000).tolist())) == MANY
    assert "2,000 points" in sampled(50_000)
    assert sampled(MANY) == ""


def test_the_front_is_what_nothing_beats_in_both() -> None:
    def at(**values: float) -> dict[str, Interval]:
        return {name: Interval(value, value, value, 9) for name, value in values.items()}

    cost = at(direct=200, cot=400, rewoo=1500, react=4000, worse=1500)
    assert front(cost, at(direct=0.3, cot=0.3, rewoo=0.5, react=0.4, worse=0.4)) == ["direct", "rewoo"]
