from collections.abc import Iterator
from random import Random

from pydantic import BaseModel, ConfigDict

from rewoo_bench import Example


class Sums(BaseModel):
    model_config = ConfigDict(extra="forbid")

    most: int = 9

    def examples(self, seed: int) -> Iterator[Example]:
        random = Random(seed)
        for number in range(1, 1000):
            a, b = random.randint(0, self.most), random.randint(0, self.most)
            yield Example(f"sums-{self.most}-s{seed}-{number}", f"What is {a} plus {b}?", (str(a + b),))
