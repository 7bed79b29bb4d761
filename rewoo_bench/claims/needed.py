"""What to run for the test of a claim.

needed(test)            # "run --arch react,rewoo --dataset hotpotqa; or --dataset triviaqa"
needed_by_all(tests)    # ["run --arch react,rewoo,direct,cot --dataset gsm8k --judge-model JUDGE"]
"""

from __future__ import annotations

from collections.abc import Sequence

from rewoo_bench.claims.claim_file import ClaimTest
from rewoo_bench.claims.data_sets import dataset_flag
from rewoo_bench.text.counts import counted

_JUDGE = " --judge-model JUDGE"
# What a column needs, apart from a run of the architectures.
_FOR_COLUMN = {
    "cost_usd": "of a model with a price",
    "latency_s": "one question at once where the model is a local one",
}


def needed(test: ClaimTest) -> str:
    """What to run for a test: a command to copy, then further requirements behind semicolons.

    `run --arch react,rewoo --dataset hotpotqa; or --dataset triviaqa`
    """
    measure = test.measure
    first, *others = _datasets(test)
    command = f"run --arch {','.join(measure.architectures())} --dataset {first}{_flags(test)}"
    word = "and" if measure.data_sets() else "or"
    parts = [command, *(f"{word} --dataset {name}" for name in others)]
    parts += [f"only its questions of type {test.on.question_type!r} count"] if test.on.question_type else []
    parts += [_FOR_COLUMN[name] for name in sorted(measure.columns() & set(_FOR_COLUMN))]
    parts += [f"{name} with {counted(count, 'exemplar')}" for name, count in test.on.exemplars.items()]
    parts += [measure.also_needs, "" if measure.serves_oracle() else "with a real model, an oracle won't do"]
    return "; ".join(filter(None, parts))


def needed_by_all(tests: Sequence[ClaimTest]) -> list[str]:
    """Commands that serve as many of these tests as can be together: those of the same questions, all architectures."""
    by_questions: dict[str, list[ClaimTest]] = {}
    for test in tests:
        key = f" --dataset {_datasets(test)[0]}{_flags(test).removesuffix(_JUDGE)}"
        by_questions.setdefault(key, []).append(test)
    commands = []
    for questions, own in by_questions.items():
        names = dict.fromkeys(name for test in own for name in test.measure.architectures())
        judge = _JUDGE if any(_flags(test).endswith(_JUDGE) for test in own) else ""
        each = [f"; and --dataset {name}" for name in map(dataset_flag, own[0].measure.data_sets()[1:])]
        commands.append(f"run --arch {','.join(names)}{questions}{judge}{''.join(each)}")
    return commands


def _flags(test: ClaimTest) -> str:
    """The flags after `--dataset`, the judge's last."""
    on, judge = test.on, _JUDGE if "judged_correct" in test.measure.columns() else ""
    if not on.failure_rate:
        return judge
    return f" --tool-failure-rate {on.failure_rate:g} --tool-failure-mode {on.failure_mode}{judge}"


def _datasets(test: ClaimTest) -> list[str]:
    """The data sets, as `--dataset` takes them, with the flags that they need."""
    on, chain_questions = test.on, test.measure.chain_questions
    if on.unforeseen:
        return [f"'chain?hops=5&branching=4' -n {chain_questions}"]
    if "chain" in on.data or on.least_steps or on.most_steps or on.unforeseen is not None:
        least, most = on.least_steps or 1, on.most_steps or 8
        return [f"'chain?hops={least}..{most}' --max-steps {max(8, 2 * most - 1)} -n {chain_questions}"]
    return list(map(dataset_flag, test.measure.data_sets() or on.data)) or ["sample"]
