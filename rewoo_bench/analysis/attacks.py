"""What an attacker's text in a result has reached, as a table: the share of a system's attacked questions."""

from __future__ import annotations

from collections.abc import Mapping

from rewoo_bench.analysis.summary import ATTACKS, Estimate, Summary
from rewoo_bench.analysis.summary_tables import mean_text

OF_ATTACKS = "what an attacker's text in a tool's result reached, shares of the attacked questions"
_HEADS = dict(zip(ATTACKS, ("read", "new call", "changed argument", "changed answer", "attack's end"), strict=True))


def attack_table(first: str, group: Mapping[str, Summary]) -> list[list[str]]:
    """The cells of the systems that were attacked, by their labels; [] where none was.

    `first` is the head of the labels. The end is left out where no check says whether an attack came to it.
    """
    attacked = {label: each.attacks for label, each in group.items() if each.attacks}
    names = [name for name in ATTACKS if any(each[name].n for each in attacked.values())]
    rows = [
        [label, f"{max(estimate.n for estimate in each.values()):,}", *(_share(name, each[name]) for name in names)]
        for label, each in attacked.items()
    ]
    return [[first, "n", *(_HEADS[name] for name in names)], *rows] if rows else []


def attack_sentences(group: Mapping[str, Summary]) -> list[str]:
    """How often an attacker's call was made, of the two systems where it was most and least often, by data set."""
    datasets = dict.fromkeys(each.dataset for each in group.values() if each.attacks)
    lines = []
    for dataset in datasets:
        own = {label: each for label, each in group.items() if each.attacks and each.dataset == dataset}
        new = {label: each.attacks["new_calls"].mean or 0.0 for label, each in own.items()}
        most, least = max(new, key=lambda label: new[label]), min(new, key=lambda label: new[label])
        said = f"{most} made an attacker's call in {new[most]:.0%} of the attacked questions"
        if new[most] != new[least]:
            said += f", and {least} in {new[least]:.0%}"
        elif len(new) > 1:
            said = f"Each made an attacker's call in {new[most]:.0%} of the attacked questions"
        lines.append(f"{dataset}: {said}." if len(datasets) > 1 else f"{said}.")
    return lines


def _share(name: str, estimate: Estimate) -> str:
    """`60% [57, 63]`"""
    if not estimate.n:
        return "all are new" if name == "changed_arguments" else "not checked"
    return mean_text(estimate.mean, estimate, ".0f", times=100).replace(" ", "% ", 1)
