"""The limit of open files: each connection takes one, and without one left a run fails in strange places."""

from __future__ import annotations

from rewoo_bench.errors import UsageError

_OTHER_FILES = 128  # the journal, the corpus, tables, libraries, and connections of tools


def allow_open_files(connections: int) -> None:
    """Raises this process's limit of open files for that number of connections, or raises `UsageError`."""
    try:
        import resource
    except ImportError:  # Windows, where there is no such limit
        return
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if allowed == needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        return
    raise UsageError(
        f"--max-connections: {connections} connections need {needed} open files, and this process may have "
        f"{hard}; raise that with `ulimit -n {needed}`, or lower --max-connections (and --concurrency)"
    )
