"""Worlds of a file: which files are refused, what is fresh in each world, and what one that misbehaves comes to."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.errors import RunStopped, SpecError
from rewoo_bench.types import Example
from rewoo_bench.worlds.world import World, WorldFault, WorldFile, opened_in_time

pytestmark = pytest.mark.anyio

SHOP = """
class Shop:
    def __init__(self, row): self.row = row
    def stock(self) -> int: return 3
"""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., WorldFile]:
    """The worlds of a source, in `shop.py`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def of(source: str, named: str = "shop.py") -> WorldFile:
        Path("shop.py").write_text(source)
        return WorldFile.read(named)

    return of


def task(**row: Any) -> Example:
    return Example("q", "Do it.", (), row=row)


async def act(world: World, name: str, **arguments: Any) -> str:
    tool = world.tools[name]
    return await tool(tool.arguments.model_validate(arguments))


NO_CLASS = "it has no class with public methods"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", f"{NO_CLASS}; each of these would be a tool"),
        ("def stock() -> int: return 3\n", f"{NO_CLASS}; each of these would be a tool; --tools takes functions"),
        ("class Shop:\n    def _stock(self) -> int: return 3\n", NO_CLASS),
        (f"{SHOP}\nclass Bank(Shop): pass\n", "it has the classes Shop and Bank; name one, as in shop.py:Shop"),
        ("class Shop:\n    def stock(self) -> int: return 3\n", "Shop.__init__ has to take (self, row)"),
        (SHOP.replace("self, row", "self"), "Shop.__init__ has to take (self, row)"),
        (f"{SHOP}    def solved(self): return True\n", "Shop.solved has to take (self, answer)"),
        (f"{SHOP}    def order(self, sku): return sku\n", "order: the parameter 'sku' has no type hint"),
        (f"{SHOP}    def order(self, *skus: str): return 1\n", "order: '*skus: str' is no input that a model can name"),
        ("class Shop(\n", "'(' was never closed (shop.py, line 1)"),
        ("1 / 0\n", "can't be run: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", "can't be run: SystemExit: 0"),
        (
            "import no_such_module_at_all\n",
            "can't be run: ModuleNotFoundError: No module named 'no_such_module_at_all'",
        ),
    ],
)
def test_a_file_that_makes_no_world_is_refused_in_one_line(
    read: Callable[..., WorldFile], source: str, reason: str
) -> None:
    with pytest.raises(SpecError) as refused:
        read(source)
    assert str(refused.value).startswith(f"--world shop.py: {reason}")
    assert "\n" not in str(refused.value)
    assert not [name for name in sys.modules if name.startswith("shop@")]


def test_a_class_that_is_named_has_to_be_there(read: Callable[..., WorldFile]) -> None:
    two = f"{SHOP}\nclass Bank(Shop): pass\nLimit = 3\n"
    assert read(two, "shop.py:Bank").class_name == "Bank"
    for missing in ("Limit", "Bnak", ""):
        with pytest.raises(
            SpecError, match=r"^--world shop\.py:.*: (there is no class|no such file|it has the classes)"
        ):
            read(two, f"shop.py:{missing}")


FORGETFUL = """
from __future__ import annotations
seen = []
class Shop:
    kept = []
    def __init__(self, row): self.row = row
    def note(self, what: str, more: list[str] = []) -> list[int]:
        seen.append(what); self.kept.append(what); more.append(what); self.row["log"].append(what)
        return [len(seen), len(self.kept), len(self.row["log"])]
"""


async def test_worlds_at_the_same_time_and_after_another_see_nothing_of_each_other(
    read: Callable[..., WorldFile],
) -> None:
    worlds, example = read(FORGETFUL), task(log=[])
    async with worlds.opened(example) as first, worlds.opened(example) as second:
        assert [await act(first, "note", what="a") for _ in range(2)] == ["[1, 1, 1]", "[2, 2, 2]"]
        assert await act(second, "note", what="b") == "[1, 1, 1]"
    async with worlds.opened(example) as third:
        assert await act(third, "note", what="c") == "[1, 1, 1]"
    assert example.row == {"log": []}


TYPED = """
from __future__ import annotations
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Optional
from pydantic import BaseModel, Field

class Colour(Enum):
    RED = "red"

@dataclass
class Item:
    sku: str
    colour: Colour = Colour.RED

class Order(BaseModel):
    items: list[Item]

class Shop:
    def __init__(self, row): pass
    def paint(self, colour: Colour = Colour.RED) -> bool: return colour is Colour.RED
    def item(self, item: Annotated[Item, Field(description="what")]) -> bool:
        return isinstance(item, Item) and item.colour is Colour.RED
    def order(self, order: Optional[Order] = None) -> bool:
        return isinstance(order, Order) and isinstance(order.items[0], Item)
    def plain(self, sku: str) -> str: return sku
"""
ITEM = {"sku": "mug"}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_worlds_own_types_are_the_types_of_its_own_module(
    read: Callable[..., WorldFile], is_async: bool
) -> None:
    worlds = read(re.sub(r"    def (?!__init__)", "    async def ", TYPED) if is_async else TYPED)
    for _ in range(2):
        async with worlds.opened(task()) as world:
            assert await act(world, "paint") == "true"
            assert await act(world, "item", item=ITEM) == "true"
            assert await act(world, "order", order={"items": [ITEM]}) == "true"
    assert read(TYPED).schemas["order"].sha256 == worlds.schemas["order"].sha256  # of another module


SQLITE = """
import sqlite3
class Shop:
    def __init__(self, row):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table stock (count integer)")
    def add(self, count: int) -> None: self.db.execute("insert into stock values (?)", [count])
    def total(self) -> int: return self.db.execute("select sum(count) from stock").fetchone()[0]
    def solved(self, answer): return self.total() == 3
"""


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_database_made_with_the_world_is_used_where_it_was_made(
    read: Callable[..., WorldFile], is_async: bool
) -> None:
    source = SQLITE
    if is_async:
        source = source.replace("def add", "async def add").replace("def total", "async def total")
        source = source.replace("return self.total()", "return self.db.execute('select 3').fetchone()[0]")
    async with read(source).opened(task()) as world:
        await asyncio.gather(*(act(world, "add", count=each) for each in (1, 2)))
        assert await act(world, "total") == "3"
        assert await world.solved("", 5) is True


# Worlds that fail.


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no stock')", "Shop({…}) raised ValueError: no stock"),
        ("import sys; sys.exit(0)", "Shop({…}) raised RuntimeError: it ends the program with 0"),
        ("raise TimeoutError('of the database')", "Shop({…}) raised TimeoutError: of the database"),
        ("return 3", "Shop({…}) raised TypeError: __init__() should return None, not 'int'"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_world_that_can_not_be_made_is_a_fault(
    read: Callable[..., WorldFile], body: str, reason: str, is_async: bool
) -> None:
    source = f"class Shop:\n    def __init__(self, row): {body}\n    def stock(self) -> int: return 3\n"
    worlds = read(source.replace("def stock", "async def stock") if is_async else source)
    with pytest.raises(WorldFault) as fault:
        async with opened_in_time(worlds, task(stock=3), 5):
            pass
    assert str(fault.value).startswith(reason)
    assert not [name for name in sys.modules if name.startswith("shop@")]


async def test_a_world_that_takes_too_long_to_make_is_a_fault(read: Callable[..., WorldFile]) -> None:
    worlds = read(SHOP.replace("self.row = row", "import time; time.sleep(1)"))
    with pytest.raises(WorldFault, match=r"^it took longer than 0\.1 s to make$"):
        async with opened_in_time(worlds, task(), 0.1):
            pass


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no stock')", "solved raised ValueError: no stock"),
        ("import sys; sys.exit(0)", "solved raised RuntimeError: it ends the program with 0"),
        ("return None", "solved returned None, expected True or False"),
        ("return 'x' * 1000", "solved returned 'xxx"),
        ("import time; time.sleep(2)", "solved took longer than 0.1 s"),
        ("import asyncio; await asyncio.sleep(2)", "solved took longer than 0.1 s"),
        ("await _never_defined()", "solved raised NameError"),
    ],
)
async def test_a_check_without_a_verdict_is_a_fault(read: Callable[..., WorldFile], body: str, reason: str) -> None:
    kind = "async def" if "await" in body else "def"
    async with read(f"{SHOP}    {kind} solved(self, answer): {body}\n").opened(task()) as world:
        with pytest.raises(WorldFault) as fault:
            await world.solved("3", 0.1 if "sleep" in body else 5)
    assert str(fault.value).startswith(reason)
    assert len(str(fault.value)) < 150


async def test_an_interrupt_of_a_worlds_own_code_ends_the_run(read: Callable[..., WorldFile]) -> None:
    raises = "raise KeyboardInterrupt"
    with pytest.raises(RunStopped, match=r"Shop\({}\) raised KeyboardInterrupt"):
        async with read(SHOP.replace("self.row = row", raises)).opened(task()):
            pass
    async with read(f"{SHOP}    def solved(self, answer): {raises}\n").opened(task()) as world:
        with pytest.raises(RunStopped, match="solved raised KeyboardInterrupt"):
            await world.solved("", 5)
