import sqlite3
from typing import Any

from rewoo_bench import changes_state


class Shop:
    def __init__(self, row: dict[str, Any]) -> None:  # the task's row of the file
        self.row = row
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table stock (sku text primary key, count integer)")
        self.db.executemany("insert into stock values (?, ?)", row["stock"].items())

    def products(self) -> list[str]:
        """Lists the products."""
        return list(self._stock())

    def stock_of(self, sku: str) -> int:
        """Says how many of a product there are."""
        return self._stock()[sku]

    @changes_state
    def update_stock(self, sku: str, change: int) -> str:
        """Adds a number to the stock of a product."""
        self.db.execute("update stock set count = count + ? where sku = ?", [change, sku])
        return f"{sku}: {self._stock()[sku]}"

    def solved(self, answer: str) -> bool:  # without it, answers are compared with the file's
        return bool(self._stock() == self.row["stock_after"])

    def _stock(self) -> dict[str, int]:
        return dict(self.db.execute("select sku, count from stock"))
