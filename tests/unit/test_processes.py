"""Other people's programs: what is said where one can't be started."""

from __future__ import annotations

import anyio
import pytest

from rewoo_bench.errors import UsageError
from rewoo_bench.processes import ProcessGroups


@pytest.mark.parametrize(("program", "hint"), [("uvx", "pip install uv"), ("npx", "Node.js"), ("mine", "directory$")])
def test_a_program_that_is_missing_is_told_how_to_get_it_where_that_is_known(program: str, hint: str) -> None:
    async def start() -> None:
        async with ProcessGroups() as groups, groups.start([program], env={"PATH": "/nowhere"}, what="--mcp"):
            pass

    with pytest.raises(UsageError, match=f"--mcp: can't start '{program}': .*{hint}"):
        anyio.run(start)
