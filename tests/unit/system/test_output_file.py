"""A file that a command writes is whole or as it was; nothing is written through a link of somebody else's."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from rewoo_bench.system.files import replaced


def test_nothing_is_written_through_a_link_with_the_name_of_a_part(tmp_path: Path) -> None:
    victim, out = tmp_path / "victim", tmp_path / "report.html"
    victim.write_text("mine")
    (tmp_path / "report.html.part").symlink_to(victim)
    with replaced(out) as file:
        (part,) = (path for path in tmp_path.iterdir() if path.name.startswith("."))
        file.write(b"new")
    assert (out.read_text(), victim.read_text()) == ("new", "mine")
    assert len(part.name) > 16
    assert not part.exists()


@pytest.mark.parametrize("follows", [True, False])
def test_a_link_with_the_files_own_name_is_followed_where_the_user_named_it(tmp_path: Path, follows: bool) -> None:
    behind, out = tmp_path / "behind", tmp_path / "out"
    behind.write_text("old")
    out.symlink_to(behind)
    with replaced(out, follows=follows) as file:
        file.write(b"new")
    assert (out.read_text(), behind.read_text()) == ("new", "new" if follows else "old")
    assert out.is_symlink() == follows


def test_permissions_stay_and_a_new_file_has_those_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name in ("new", "old"):
            with replaced(tmp_path / name) as file:
                file.write(b"x")
        (tmp_path / "old").chmod(0o600)
        with replaced(tmp_path / "old") as file:
            file.write(b"y")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "old")] == [0o640, 0o600]


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    with suppress(ZeroDivisionError), replaced(out) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.read_text() == "old"
