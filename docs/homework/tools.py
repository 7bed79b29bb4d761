import re

from rewoo_bench import changes_state


class Shop:  # a new one for each question, trial and architecture
    def __init__(self, row: dict) -> None:
        self.row = row  # the question's line of questions.csv
        self.stock = {"mug": 3, "lamp": 12}

    def price_of(self, product: str) -> int:
        """Says what a product costs, in euros."""
        return {"mug": 8, "lamp": 30}[product]

    def stock_of(self, product: str) -> int:
        """Says how many of a product are in stock."""
        return self.stock[product]

    @changes_state
    def order(self, product: str, count: int) -> int:
        """Orders more of a product and says how many are in stock then."""
        self.stock[product] += count
        return self.stock[product]

    def solved(self, answer: str) -> bool:  # by its last number and the mugs that are there
        is_right = re.findall(r"\d+", answer)[-1:] == self.row["answers"]
        return is_right and self.stock["mug"] == int(self.row["mugs_after"])
