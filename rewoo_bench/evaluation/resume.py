"""The manifest of a run that begins, and how a later session resumes the run from it.

The options are read from the manifest, and a change that would change the run's results is refused.

options = resumed(Path("results/local/my-run"), given={"run_tokens": 2_000_000, "questions": 200})
"""

from __future__ import annotations

import hmac
import json
import os
import platform
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any

from rewoo_bench.config.named import known_names
from rewoo_bench.config.names import LOCAL, RECORDED, REPLAY, WIRE_NAME, file_names, is_oracle
from rewoo_bench.errors import OptionChanged, UsageError
from rewoo_bench.evaluation.folder import check_journal
from rewoo_bench.evaluation.inputs import PYTHON
from rewoo_bench.evaluation.prepare import PreparedRun, questions_at_once
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.models.local.catalogue import catalogue
from rewoo_bench.runs.manifest import (
    LOOSE,
    MANIFEST,
    Manifest,
    changed_values,
    has_its_options,
    manifest_of,
    read_manifest,
)
from rewoo_bench.runs.options import OPTIONS, RunOptions, is_path
from rewoo_bench.text.escaping import plain_line
from rewoo_bench.text.redaction import redact_settings, sent_in, was_redacted
from rewoo_bench.text.tokens import TOKENIZER

# A run that this user begins on this machine is sealed: `seal` in its run.json is an HMAC over the run's id and the
# options that name a program, code, an address, a model or a file, or that decide what it may spend. A folder that
# somebody else made, or whose options were edited afterwards, has no valid seal, and `check_trusted` refuses what was
# not given again.


_MODELS = ("model", "planner_model", "solver_model", "judge_model", "embedding_model")
_FILES = ("corpus", "failed_in", "wrong_in", "prices")
_SPENDING = (
    *("price", "questions", "ids", "trials", "reply_tokens", "reasoning_effort", "drop_params", "provider_cache"),
    *("max_retries", "max_steps"),
)
_SEALED = (
    *("architectures", "dataset", "tools", "mcp", "llama_server", "api_base", *_MODELS, *_FILES, "extra_body"),
    *_SPENDING,
)
_DEFAULTS = {each.name: each.default for each in fields(RunOptions)}
_KEY_BYTES = 32
_MOST_CHARACTERS = 60  # of a value in an error message


def seal(run_id: str, options: Mapping[str, Any]) -> str | None:
    """The seal of a run's options as its manifest has them; None where the user's key can't be kept."""
    return _signed(run_id, redact_settings(options, sent_in(options.get("api_base"))))  # as they are written


def seal_of_sent(run_id: str, sent: Mapping[str, Any]) -> str | None:
    """The seal of what a session learnt of its endpoints."""
    return _mac({"run_id": run_id, "sent": redact_settings(sent)})


def check_trusted(manifest: Mapping[str, Any], given: Mapping[str, Any], flag: str, *, trust: bool) -> None:
    """Raises `UsageError` for what a run.json would run, read, contact or spend, unless this user began its run here.

    `given` are the options that the command names itself; `flag` is the one that the run.json comes from. With `trust`
    nothing is refused.
    """
    options = manifest.get("options")
    options = options if isinstance(options, Mapping) else {}
    again = set(given)
    again |= {"failed_in", "wrong_in"} if options.get("ids") else set()  # `ids` has their questions
    again |= {"ids"} if "questions" in given else set()  # and no more of them are asked
    models = [str({**options, **given}.get(name) or "") for name in _MODELS]
    if all(is_oracle(model) or model.startswith((LOCAL, REPLAY)) for model in models if model):
        again |= set(_SPENDING)  # nothing is paid for
    dangers = [danger for name in _SEALED if name not in again for danger in _dangers(name, options.get(name))]
    if trust or not dangers:
        return
    found = manifest.get("seal")
    if isinstance(found, str) and _is_seal(found, _signed(str(manifest.get("run_id")), options)):
        return
    raise UsageError(
        f"{flag}: this run wasn't begun by you on this machine, and it would {'; '.join(dangers)}. "
        "Give these flags again, or --trust"
    )


def check_whole(options: Mapping[str, Any], given: Collection[str], flag: str) -> None:
    """Raises `UsageError` for an option of a run.json whose credentials aren't kept, unless it is `given` again."""
    for name, value in options.items():
        if name in OPTIONS and name not in given and was_redacted(str(value)):
            raise UsageError(f"{flag}: give {OPTIONS[name].flag} again; its credentials aren't kept in the run")


def _dangers(name: str, value: Any) -> Iterator[str]:
    """What an option of a manifest would run, read, contact or spend.

    Of architectures and data sets only plain names are none: options behind a name may name files, folders and code,
    and set limits.
    """
    if name in _SPENDING:
        if value and value != _DEFAULTS[name]:
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"spend by its own {plain_line(shown[:_MOST_CHARACTERS])!r} ({OPTIONS[name].flag})"
        return
    for each in map(str, value if isinstance(value, list) else [value] if value else []):
        shown = repr(plain_line(each))
        match name:
            case "mcp":
                web = each.startswith(("http://", "https://"))
                yield f"{'contact' if web else 'run'} the MCP server {shown} (--mcp)"
            case "llama_server":
                yield f"run {shown} (--llama-server)"
            case "api_base":
                yield f"send prompts and the model's key to {shown} (--api-base)"
            case "architectures" if each.startswith("agent:"):
                yield f"run {plain_line(each.removeprefix('agent:'))!r} (--agent)"
            case "architectures" if each not in known_names("architectures"):
                yield f"run code or commands of {shown} (--arch)"
            case "dataset" if each not in known_names("datasets"):
                yield f"read {shown}, or run its code (--dataset)"
            case "tools" if each.startswith(RECORDED):
                yield f"read {shown} (--tools)"
            case "tools" if ":" in each:
                yield f"import {shown} (--tools)"
            case "extra_body":
                yield f"send {shown} with every request (--extra-body)"
            case _ if name in _FILES:
                yield f"read {shown} ({OPTIONS[name].flag})"
            case _ if name in _MODELS and not is_oracle(each) and each.removeprefix(LOCAL) not in catalogue():
                yield f"{_use_of_a_model(each)} ({OPTIONS[name].flag})"


def _use_of_a_model(name: str) -> str:
    shown = repr(plain_line(name))
    if name.startswith((LOCAL, REPLAY)):
        return f"read {shown}"
    if ":" in name and "/" not in name and not name.startswith("ft:"):
        return f"import the model {shown}"
    if "://" in name:
        return f"send prompts and your key to the address in the model's name {shown}"
    return f"ask the model {shown} with your key"


def _signed(run_id: str, options: Mapping[str, Any]) -> str | None:
    return _mac({"run_id": run_id, **{name: options.get(name) for name in _SEALED}})


def _mac(facts: Mapping[str, Any]) -> str | None:
    if (key := _key()) is None:
        return None
    text = json.dumps(facts, sort_keys=True, default=str)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _is_seal(found: str, expected: str | None) -> bool:
    return expected is not None and hmac.compare_digest(found.encode(), expected.encode())


def _key() -> bytes | None:
    """The user's key, which is made at its first use; None where it can't be kept."""
    from platformdirs import user_state_path  # some milliseconds, and most commands need none

    path = user_state_path("rewoo_bench", appauthor=False) / "key"
    with suppress(OSError):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, part = tempfile.mkstemp(dir=path.parent)  # for its owner alone
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(_KEY_BYTES))
                with suppress(FileExistsError):  # another process was quicker
                    os.link(part, path)
            finally:
                Path(part).unlink()
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None


_MOST_SHOWN = 20  # values of a list in an error message


def resumed(folder: Path, given: Mapping[str, Any], *, trust: bool = False) -> RunOptions:
    """The options of the run in `folder`, with those that are `given` now. Raises `UsageError`.

    `given` has only flags of the command. One that would change the run's results has to be as it was. With `trust`
    a run that somebody else began may run programs and contact addresses that aren't given again.
    """
    manifest = read_manifest(folder)
    if manifest.published is not None:
        raise UsageError("--resume: a published run can't be resumed: it has no journal")
    if manifest.imported is not None:
        raise UsageError(
            "--resume: this run was recorded by another program and imported: there is nothing to go on with"
        )
    recorded = manifest.options
    if not recorded.get("architectures"):
        raise UsageError(f"--resume: {str(folder / MANIFEST)!r} has no options of a run; start a new run with --out")
    if PYTHON in manifest.dataset.source or any(PYTHON in facts for facts in manifest.models.values()):
        raise UsageError(
            "--resume: this run asked Python objects (examples or a model), which no command can make again"
        )
    options = {name: value for name, value in recorded.items() if name in OPTIONS and OPTIONS[name].role.saved}
    values = json.loads(json.dumps(dict(given), default=str))  # as in a manifest
    shown = redact_settings(values, sent_in(values.get("api_base")))  # the same
    if values.get("out") not in (None, str(folder)):
        raise UsageError(f"--resume: the run goes on in its own folder {str(folder)!r}; leave --out out")
    for name, value in values.items():
        if name == "questions":
            before = manifest.dataset.limit
            if before is None and value != manifest.dataset.examples:
                raise UsageError("--resume: this run has all questions of its data set; leave -n out")
            if before is not None and value < before:
                fewer = f"this run has {before:,} questions, and -n {value:,} would be fewer"
                raise UsageError(f"--resume: {fewer}; leave -n out, or give more than {before:,}")
        elif OPTIONS[name].role.addable and not recorded.get(name):
            continue
        elif OPTIONS[name].role.resume and recorded.get(name) not in (value, shown[name]):
            raise OptionChanged(f"{OPTIONS[name].flag} {_shown(recorded.get(name))} in this run")
    check_trusted(manifest.as_json(), given, "--resume", trust=trust)
    if not trust and not has_its_options(folder):
        raise UsageError(
            f"--resume: {str(folder / MANIFEST)!r} has options that were damaged or edited, and they would ask and pay "
            "for calls again; bring back the file, or take it as it stands with --trust"
        )
    check_whole(options, given, "--resume")
    paths = {name: Path(value) for name, value in options.items() if value and is_path(OPTIONS[name])}
    lists = {name: tuple(value) for name, value in options.items() if isinstance(value, list)}
    return RunOptions(**{**options, **lists, **paths, **given, "resume": folder})


def _shown(recorded: Any) -> str:
    if recorded is None or recorded == []:
        return "wasn't set"
    if not isinstance(recorded, list):
        return f"was {recorded!r}"
    shown = ",".join(map(str, recorded[:_MOST_SHOWN]))
    return f"was {shown if len(recorded) <= _MOST_SHOWN else shown + ',…'!r}"


def check_same(before: Manifest, now: Manifest, ids: Sequence[str]) -> None:
    """Raises `UsageError` with the first difference: a prompt, the questions, the model.

    `ids` are the ids of the questions now. More questions than before are allowed: a sample begins with every
    smaller one.
    """
    grown = (before.dataset.limit or 0) < (now.dataset.limit or 0)
    if grown and ids_hash(ids[: before.dataset.examples]) != before.dataset.ids_hash:
        raise UsageError("--resume: --questions is larger now, and the questions don't begin with those of this run")
    written = json.loads(json.dumps(now.as_json(), default=str))
    secrets = sent_in(now.options.get("api_base"))
    old, new = (redact_settings(each, secrets) for each in (before.as_json(), written))  # as `before` was written
    if before.restored_rows is not None:  # it was published, and has the names of files in the place of paths
        old, new = file_names(old), file_names(new)
    more = frozenset({"limit", "examples", "ids_hash"})  # facts that change with more questions
    if "generator" in now.dataset.source:  # generated questions have their content in their ids, and one hash of all
        more |= {"sha256", "rows"}
    for part in ("architectures", "dataset", "corpus", "models"):
        loose = LOOSE | more if grown and part == "dataset" else LOOSE
        difference = next(changed_values(old.get(part), new.get(part), part, loose), None)
        if difference:
            raise UsageError(f"--resume: {difference}; a resumed run has to stay the same")


# The manifest of a run that begins or is resumed.


PACKAGES = ("rewoo-bench", "anyio", "bm25s", "datasets", "litellm", "pyarrow", "pydantic", "PyStemmer", "xllamacpp")


def new_run_id(architectures: Sequence[str], now: datetime | None = None) -> str:
    """`20261122-093000-rewoo+react-1f0a`: sorts by time, and differs from any other machine's."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%d-%H%M%S")
    names = re.sub(r"[^\w.+-]", "-", "+".join(architectures))  # it names a folder, too
    return f"{moment}-{names[:60]}-{token_hex(2)}"


def environment() -> dict[str, Any]:
    """Versions of packages that may change a result, and the platform; no names, paths or variables."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: package_version(name) for name in PACKAGES},
        "git_commit": _commit(Path(__file__).parent),
    }


def command_line() -> list[str]:
    """The command line, with the program's name without its folder."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


@cache  # packages and commit are those that this process has loaded, whatever happens to their files
def package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _commit(folder: Path) -> str | None:
    """The commit of the clone that the code runs from, with `+` for changed files; None outside a clone."""
    try:
        _git(folder, "ls-files", "--error-unmatch", __file__)  # fails in a clone of another project
        return _git(folder, "rev-parse", "HEAD") + ("+" if _git(folder, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=5)
    return done.stdout.strip()


@dataclass(frozen=True)
class StudyRound:
    """A study's round of questions of a run."""

    facts: Mapping[str, Any]
    """What the manifest says of the study, where the run begins with this round."""
    is_new_session: bool
    """Whether this process has asked nothing of the run before."""
    asks_failed: bool
    """Whether questions that the infrastructure failed are asked again."""
    run_cost: float | None = None
    """Most US dollars of the run in this session, where the study leaves less than the run's own limit."""


def begin_manifest(
    options: RunOptions, run: PreparedRun, folder: Path, run_id: str, study: StudyRound | None = None
) -> Manifest:
    """The manifest of a new run, or that of the resumed run, after a check that nothing changed; none is written."""
    corpus, path = None, options.corpus or run.dataset.corpus
    if run.corpus is not None and path is not None:
        corpus = {"file": path.name, "content_hash": run.corpus.content_hash, "passages": len(run.corpus)}
    models = {role or "default": dict(run.models[model].manifest) for role, model in options.role_models.items()}
    if run.gateway is not None:
        models["default"][WIRE_NAME] = run.gateway.model_name
        if run.gateway.embedding_name is not None:
            models.setdefault("embedding", {})[WIRE_NAME] = run.gateway.embedding_name
    facts = {
        "run_id": run_id,
        "status": "running",
        "started_at": now(),
        "command": command_line(),
        "options": options.as_json(),
        "seal": seal(run_id, options.as_json()),
        "concurrency": questions_at_once(options, run),
        "dataset": dict(run.dataset.manifest),
        "corpus": corpus,
        "architectures": [architecture.manifest for architecture in run.architectures],
        "models": models,
        "prices": {model.name: opened.prices for model, opened in run.models.items()},
        "tokenizer": TOKENIZER,
        "environment": environment(),
    }
    if study is not None:
        facts["study"] = dict(study.facts)
    if options.engine != "local":
        ray = package_version("ray")
        facts["engine"] = {"name": options.engine, "version": ray, "workers": options.workers or 1}
    manifest = manifest_of(json.loads(json.dumps(facts, default=str)))
    if options.resume is None:
        return manifest
    before = read_manifest(options.resume)
    check_journal(folder, before.rows or 0, accept_loss=options.accept_loss)
    check_same(before, manifest, [example.id for example in run.dataset.examples])
    for role, model in options.role_models.items():
        learnt = before.sent.get(role or "default")  # by earlier sessions, of its endpoint
        # What this user's sessions didn't learn is learnt again.
        if learnt and _is_seal(before.sent_seal or "", seal_of_sent(before.run_id, before.sent)):
            run.models[model].recall(learnt)
    same = ("run_id", "started_at", "command", "recorded_calls", "restored_rows", "sessions")
    kept = {name: getattr(before, name) for name in same}
    if before.study:
        kept["study"] = before.study
    if study is None or study.is_new_session:
        kept["sessions"] = [*before.sessions, {"command": command_line(), "started_at": now()}]
    kept["seal"] = seal(before.run_id, manifest.options)
    if before.engine:
        kept["engine"] = manifest.engine or before.engine
    return manifest.model_copy(update=kept)


def sent_differences(options: RunOptions, run: PreparedRun) -> dict[str, Any]:
    """By role: how requests differed from the options; only roles where they did."""
    sent = {role or "default": dict(run.models[model].sent()) for role, model in options.role_models.items()}
    return {role: differences for role, differences in sent.items() if differences}


def now() -> str:
    """The time for a manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")
