"""The package indexes are those that pip or uv would ask."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.local.index_settings import PYPI, IndexSettings, configuration_files, read_settings


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_without_any_setting_it_is_the_public_index() -> None:
    assert read_settings({}, []) == IndexSettings(indexes=(PYPI,))


def test_a_later_file_overrules_an_earlier_one_option_by_option(tmp_path: Path) -> None:
    machine = file(
        tmp_path,
        "a.conf",
        "[global]\nindex-url = https://a/simple/\nextra-index-url =\n  https://b/simple\n  https://c/simple\n"
        "cert = /ca.pem\ntrusted-host = b\n",
    )
    user = file(tmp_path, "b.conf", "[global]\nindex_url = https://d/simple\n[download]\nfind-links = /wheels\n")
    assert read_settings({}, [machine, user, tmp_path / "none.conf"]) == IndexSettings(
        indexes=("https://d/simple", "https://b/simple", "https://c/simple"),
        find_links=("/wheels",),
        trusted_hosts=frozenset({"b"}),
        cert="/ca.pem",
    )


@pytest.mark.parametrize(
    ("env", "indexes"),
    [
        ({"PIP_INDEX_URL": "https://e/simple"}, ("https://e/simple",)),
        ({"PIP_EXTRA_INDEX_URL": "https://e/simple https://f/simple"}, ("file", "https://e/simple", "https://f/simple")),
        ({"UV_DEFAULT_INDEX": "corp=https://e/simple"}, ("https://e/simple",)),
        ({"UV_INDEX_URL": "https://e/simple", "UV_INDEX": "x=https://f/s y=https://g/s?a=b"},
         ("https://e/simple", "https://f/s", "https://g/s?a=b")),
        ({"UV_DEFAULT_INDEX": "https://e/simple", "PIP_INDEX_URL": "https://f/simple"}, ("https://f/simple",)),
        ({"PIP_NO_INDEX": "1"}, ()),
    ],
)  # fmt: skip
def test_the_environment_overrules_the_files(tmp_path: Path, env: dict[str, str], indexes: tuple[str, ...]) -> None:
    written = file(tmp_path, "pip.conf", "[global]\nindex-url = file\n")
    assert read_settings(env, [written]).indexes == indexes


@pytest.mark.skipif(sys.platform != "linux", reason="where pip looks on Linux")
def test_the_files_are_those_of_pip(tmp_path: Path) -> None:
    named = file(tmp_path, "mine.conf", "")
    env = {"XDG_CONFIG_HOME": "/u", "XDG_CONFIG_DIRS": "/x:/y"}
    machine = ["/x/pip/pip.conf", "/y/pip/pip.conf", "/etc/pip.conf"]
    user = [str(Path.home() / ".pip/pip.conf"), "/u/pip/pip.conf"]
    environment = f"{sys.prefix}/pip.conf"
    assert [str(path) for path in configuration_files(env)] == [*machine, *user, environment]
    with_named = configuration_files({**env, "PIP_CONFIG_FILE": str(named)})
    assert [str(path) for path in with_named] == [*machine, environment, str(named)]
    assert configuration_files({"PIP_CONFIG_FILE": os.devnull}) == []


def test_a_file_that_is_no_configuration_is_one_line(tmp_path: Path) -> None:
    broken = file(tmp_path, "pip.conf", "index-url = https://a/simple\n")
    with pytest.raises(ModelNotFound, match=r"can't read pip's configuration '.*pip\.conf': File contains no section"):
        read_settings({}, [broken])
