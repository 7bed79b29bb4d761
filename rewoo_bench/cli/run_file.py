"""`rewoo-bench run --from FILE`: a run's flags from run.toml, or from the run.json of an earlier run.

    arch = ["rewoo", "react"]       # names of the flags, with underscores or dashes
    dataset = "sample"
    max-steps = 6

Flags of the command replace those of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.runs.options import OLD_NAMES, OPTIONS, with_new_names

RUN_FILE = "rewoo_bench.run_file"
"""In a context's `meta`: the run.json that the flags come from, and its content."""
_NOT_IN_A_FILE = ("from", "resume", "trust", "help")


def read_run_file(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Makes the file's values the command's defaults. Raises `UsageError`."""
    if file is None or context.resilient_parsing:
        return file
    flags = _flags(context.command)
    defaults: dict[str, Any] = {}
    for key, value in _values(file).items():
        option = flags.get(key.replace("_", "-"))
        if option is None and key.replace("-", "_") in OLD_NAMES:
            raise UsageError(f"--from {file}: {key} is now {OLD_NAMES[key.replace('-', '_')]}")
        if option is None:
            raise UsageError(f"--from {file}: {unknown('flag', key, flags)}")
        if value is not None:
            defaults[str(option.name)] = _value(option, key, value, file)
    context.default_map = {**(context.default_map or {}), **defaults}
    return file


def _flags(command: click.Command) -> dict[str, click.Option]:
    """Every flag without its dashes, such as `max-steps` and `n`."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    names = {name.lstrip("-"): option for option in options for name in (*option.opts, *option.secondary_opts)}
    return {name: option for name, option in names.items() if name not in _NOT_IN_A_FILE}


def _values(file: Path) -> Mapping[str, Any]:
    """Flags and values of a file. Raises `UsageError`."""
    import tomllib

    try:
        text = file.read_text(encoding="utf-8")
        values = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"--from: can't read {str(file)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of both formats, and of text that isn't UTF-8
        raise UsageError(f"--from {file}: not valid {'JSON' if file.suffix == '.json' else 'TOML'}: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"--from {file}: expected an object with the options of a run")
    if file.suffix != ".json":
        return values
    click.get_current_context().meta[RUN_FILE] = (file, values)
    return _recorded(values, file)


def _recorded(manifest: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The options of an earlier run by the names of their flags. Raises `UsageError`."""
    from rewoo_bench.redaction import HIDDEN

    options = manifest.get("options")
    if not isinstance(options, dict) or not options.get("architectures"):
        raise UsageError(f"--from {file}: expected the run.json of a run, with its options")
    options = with_new_names(options)
    if f"{HIDDEN}@" in str(options.get("api_base")):
        options = {**options, "api_base": None}  # its password isn't kept; the model says what is missing
    if options.get("ids"):
        options = {**options, "failed_in": None, "wrong_in": None}  # their questions are in `ids`
    # No run keeps where its spans, its cache and its cluster were; somebody who writes them in leads this run astray.
    kept = {name: value for name, value in options.items() if name in OPTIONS and OPTIONS[name].role.saved}
    return {OPTIONS[name].flag.lstrip("-"): value for name, value in kept.items()}


def _value(option: click.Option, key: str, value: Any, file: Path) -> Any:
    """A value in the form of the command's."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"--from {file}: {key} = {value!r}: expected true or false")
        turned_on = option.flag_value is not False  # only --no-… flags have a value of their own
        return turned_on if value else not turned_on
    if option.name == "extra_body" and isinstance(value, dict):
        return json.dumps(value)
    if option.multiple:
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, dict | bool) or (isinstance(value, list) and option.name != "ids"):
        raise UsageError(f"--from {file}: {key} = {value!r}: expected one value")
    if isinstance(value, float) and isinstance(option.type, click.types.IntParamType):
        raise UsageError(f"--from {file}: {key} = {value!r}: expected a whole number")
    return value
