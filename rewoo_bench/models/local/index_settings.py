"""The package indexes in the settings of pip or uv on this machine.

    read_settings()     # IndexSettings(indexes=("https://pypi.org/simple",), find_links=(), …)

Environment variables take precedence over pip's configuration files, as in pip. Neither pip nor uv has to be
installed. Sources: https://pip.pypa.io/en/stable/topics/configuration/,
https://docs.astral.sh/uv/reference/environment/
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from configparser import Error, RawConfigParser
from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.errors import ModelNotFound

PYPI = "https://pypi.org/simple"

_SECTIONS = ("global", "install", "download")  # a later one takes precedence
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """`indexes` are URLs of simple indexes, `find_links` folders or URLs of pages with links to wheels.

    The certificates of `trusted_hosts` (`host` or `host:port`) aren't checked, `cert` is a file of certificates
    instead of the machine's, and `proxy` the URL of a proxy.
    """

    indexes: tuple[str, ...] = (PYPI,)
    find_links: tuple[str, ...] = ()
    trusted_hosts: frozenset[str] = frozenset()
    cert: str | None = None
    proxy: str | None = None


def read_settings(env: Mapping[str, str] = os.environ, files: Iterable[Path] | None = None) -> IndexSettings:
    """The settings in force. Raises `ModelNotFound` for a configuration file that can't be read."""
    pip = _from_files(configuration_files(env) if files is None else files)
    default = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL") or pip.get("index-url") or PYPI
    pip |= {name[4:].lower().replace("_", "-"): value for name, value in env.items() if name.startswith("PIP_")}
    indexes = [env.get("PIP_INDEX_URL") or default, *pip.get("extra-index-url", "").split()]
    indexes += f"{env.get('UV_INDEX', '')} {env.get('UV_EXTRA_INDEX_URL', '')}".split()
    if pip.get("no-index", "").lower() in _TRUE:
        indexes = []
    return IndexSettings(
        indexes=tuple(dict.fromkeys(_url(index) for index in indexes)),
        find_links=(*pip.get("find-links", "").split(), *env.get("UV_FIND_LINKS", "").replace(",", " ").split()),
        trusted_hosts=frozenset(pip.get("trusted-host", "").split()),
        cert=pip.get("cert") or None,
        proxy=pip.get("proxy") or None,
    )


def configuration_files(env: Mapping[str, str]) -> list[Path]:
    """pip's configuration files, in rising precedence: global, user, environment, named."""
    named = env.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    machine, user = _places(env, Path.home())
    if named and Path(named).exists():
        user = []
    name = "pip.ini" if os.name == "nt" else "pip.conf"
    files = [folder / name for folder in (*machine, *user, Path(sys.prefix))]
    return [*files, Path(named)] if named else files


def _places(env: Mapping[str, str], home: Path) -> tuple[list[Path], list[Path]]:
    """Folders of the machine's configuration file, and of the user's."""
    if os.name == "nt":
        user = Path(env.get("APPDATA", home / "AppData" / "Roaming")) / "pip"
        return [Path(env.get("PROGRAMDATA", "C:/ProgramData")) / "pip"], [home / "pip", user]
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip"
    if sys.platform == "darwin":
        support = Path("Library/Application Support/pip")
        user = home / support if (home / support).is_dir() else home / ".config" / "pip"
        return [Path("/") / support], [home / ".pip", user]
    shared = (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return [*(Path(folder) / "pip" for folder in shared), Path("/etc")], [home / ".pip", user]


def _from_files(files: Iterable[Path]) -> dict[str, str]:
    """Options by name; a later file takes precedence."""
    options: dict[str, str] = {}
    for file in files:
        parser = RawConfigParser()
        try:
            parser.read(file, "utf-8")
        except (OSError, UnicodeDecodeError, Error) as error:
            raise ModelNotFound(f"can't read pip's configuration {str(file)!r}: {str(error).splitlines()[0]}") from None
        for section in filter(parser.has_section, _SECTIONS):
            options |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    return options


def _url(index: str) -> str:
    """An index's URL without uv's name for it (`corporate=https://…`)."""
    name, equals, url = index.partition("=")
    return (url if equals and "/" not in name else index).rstrip("/")
