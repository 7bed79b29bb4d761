"""Steps of several trajectories in one table: the same look-up is in one row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.report.alignment import align_steps, first_divergence, lookups

Step = dict[str, object]


def step(tool: str | None, argument: str = "", observation: str = "", *, failed: bool = False) -> Step:
    return {"tool": tool, "argument": argument, "observation": observation, "failed": failed}


def test_the_same_look_up_is_in_one_row_whatever_its_number() -> None:
    rewoo = [step("Search", "Neva"), step("LLM", "which city?"), step("Search", "Ladoga")]
    react = [step("Search", "  the Ladoga"), step("Search", "ladoga."), step("Search", "NEVA")]
    first, second = align_steps([rewoo, react])
    assert second[1] == first[2]
    assert second[2] == first[0]
    assert second[0] not in first


@pytest.mark.parametrize(
    ("tool", "one", "other", "is_same"),
    [
        ("Calculator", "(3 + 5) * 2", "3 + (5 * 2)", False),
        ("Calculator", "3-5", " 3 - 5", True),
        ("reckon", "3.5", "3 * 5", False),
        ("Search", "C++ language", "c language", False),
        ("Search", "What freezes at -5 degrees", "What freezes at 5 degrees", False),
        ("Search", "Jean-Paul Sartre", "jean paul_sartre.", True),
        ("Search", "the C# language?", "The C#  Language", True),
        ("Search", "1984", "1984.", True),
    ],
)
def test_signs_of_calculations_and_of_names_tell_look_ups_apart(tool: str, one: str, other: str, is_same: bool) -> None:
    first, second = align_steps([[step(tool, one)], [step(tool, other)]])
    assert (first == second) is is_same


VOLGA = "Volga: The Volga is the longest river in Europe."


def test_two_arguments_that_lead_to_one_page_are_in_one_row() -> None:
    don = "Don: a river"
    rewoo = [step("Search", "Volga River", f"{VOLGA}\nSimilar: Don"), step("Search", "Don", don)]
    react = [step("Search", "Volga", VOLGA), step("Lookup", "Volga", VOLGA), step("Search", "Don (river)", don)]
    assert align_steps([rewoo, react]) == [[0, 3], [0, 1, 2]]  # "Don: a river" is too short to tell


def test_a_failure_or_an_empty_result_is_no_evidence() -> None:
    for text, failed in (("No results.", False), ("ERROR: the server at 127.0.0.1 could not be reached at all", True)):
        first, second = align_steps(
            [[step("Search", "a", text, failed=failed)], [step("Search", "b", text, failed=failed)]]
        )
        assert first != second


def test_the_same_call_twice_and_turns_without_a_tool_have_rows_of_their_own() -> None:
    assert align_steps([[step("Search", "Neva"), step("Search", "Neva")]]) == [[0, 1]]
    assert align_steps([[step(None)], [step(None)]]) == [[1], [0]]


class Counted(str):
    """A tool's name that counts how often it is compared or looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Counted.looked_up += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        Counted.looked_up += 1
        return super().__eq__(other)


def test_twice_the_steps_take_twice_the_look_ups() -> None:
    counts = []
    for size in (300, 600):
        Counted.looked_up = 0
        align_steps([[step(Counted("Search"), f"{name} {i}") for i in range(size)] for name in "abc"])
        counts.append(Counted.looked_up)
    assert counts[1] < 2.2 * counts[0]


def test_what_one_alone_did_follows_the_step_before_it() -> None:
    first, second = align_steps(
        [[step("Search", "a"), step("Search", "b")], [step("Search", "a"), step("Search", "c"), step("Search", "b")]]
    )
    assert (first, second) == ([0, 2], [0, 1, 2])


steps = st.builds(
    step,
    st.sampled_from(["Search", "LLM", None]),
    st.sampled_from(["a", "A ", "b", "c!"]),
    st.sampled_from(["", VOLGA, VOLGA + "\nmore", VOLGA + " It is long."]),
)


@given(st.lists(st.lists(steps, max_size=6), max_size=4))
def test_every_step_has_a_row_and_none_two(trajectories: list[list[Step]]) -> None:
    aligned = align_steps(trajectories)
    assert list(map(len, aligned)) == list(map(len, trajectories))
    assert all(len(set(rows)) == len(rows) for rows in aligned)
    used = {row for rows in aligned for row in rows}
    assert used == set(range(len(used)))


@pytest.mark.parametrize(
    ("paths", "parts"),
    [
        ([], None),
        ([[0, 1], [0, 1]], None),
        ([[0, 1], [0, 2]], 2),
        ([[0], [0, 1]], 2),
        ([[0, 1], [1, 0]], 1),
        ([[0, 1, 2], [0, 1, 2], [0, 1, 3]], 3),
        ([[0, 1], [0, 1], []], None),  # who looked nothing up is on no path
        ([[0, 1], [], [0, 2]], 2),
    ],
)
def test_trajectories_part_at_the_first_look_up_that_not_all_share(paths: list[list[int]], parts: int | None) -> None:
    assert first_divergence(paths) == parts
    assert first_divergence(paths[::-1]) == parts


def test_what_only_asks_a_model_or_ends_is_no_look_up() -> None:
    plan = [
        step("Search", "Kyiv"),
        step("LLM", "Which river? Context: …"),
        step("Search", "Dnieper"),
        step("Finish", "x"),
    ]
    loop = [step("Search", "kyiv"), step(None), step("Search", "Dnieper"), step("Finish", "Black Sea")]
    rows = align_steps([plan, loop])
    assert first_divergence([lookups(steps, own) for steps, own in zip((plan, loop), rows, strict=True)]) is None
