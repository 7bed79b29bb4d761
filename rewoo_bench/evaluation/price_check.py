"""The prices that a run was given (`--price`, `--prices`), and whether a limit in dollars can be kept.

given_prices(options)["planner"]        # {"input": 0.15, "cached_input": 0.075, "output": 0.6}, per million tokens
"""

from __future__ import annotations

from collections.abc import Mapping

from rewoo_bench.config.price_sheets import named_tariff, read_price, sheet_and_model
from rewoo_bench.errors import UsageError
from rewoo_bench.model_names import REPLAY, is_oracle
from rewoo_bench.models.own import is_own_model
from rewoo_bench.runs.options import RunOptions


def costs_nothing(model: str) -> bool:
    """Whether a model costs no money: the oracle and a replay."""
    return is_oracle(model) or model.startswith(REPLAY)


def check_price(options: RunOptions, model: str, prices: Mapping[str, float] | None) -> None:
    """Raises `UsageError` where a limit in dollars is set and the price of a model isn't known."""
    if prices is not None or costs_nothing(model):
        return
    for flag, limit in (("--run-cost", options.run_cost), ("--question-cost", options.question_cost)):
        if limit is not None:
            where = " at --api-base" if options.api_base else ""
            raise UsageError(
                f"{flag} {limit:g}: the price of {model!r}{where} isn't known; "
                "give it (--price input=0.15,output=0.6), or limit tokens (--run-tokens, --question-tokens)"
            )


def given_prices(options: RunOptions) -> dict[str, dict[str, float]]:
    """By role (`""` is every other one): dollars per million tokens by kind, as run.json has them.

    A value without a role is for `--model`, and a sheet for every model whose name it has. Raises `UsageError`.
    """
    roles = options.role_models
    found: dict[str, dict[str, float]] = {}
    for flag, values in (("--prices", options.prices), ("--price", options.price)):
        for value in values:
            role, text = _of_role(flag, value, options)
            others = [each for each in roles if flag == "--prices" and not sheet_and_model(text)[1]]
            named = others if role is None else [role]
            for each in named or [""]:
                found[each] = read_price(text) if flag == "--price" else _of_sheet(text, roles[each].name)
    for role, model in roles.items():
        if role not in found and "" in found and model.name == options.model:
            found[role] = found[""]  # the same model at another temperature
        if role in found and (costs_nothing(model.name) or is_own_model(model.name)):
            flag = "--price" if options.price else "--prices"
            why = "costs nothing" if costs_nothing(model.name) else "counts its own dollars (CallCost.cost_usd)"
            raise UsageError(f"{flag}: {model.name!r} {why}; rewoo-bench reprice prices a finished run")
    return found


def _of_role(flag: str, value: str, options: RunOptions) -> tuple[str | None, str]:
    """The role that a value begins with, and the rest. Raises `UsageError` for a role without a model of its own."""
    role, colon, text = value.partition(":")
    if not colon or role not in ("planner", "solver", "judge", "embedding"):
        return None, value
    if role not in options.role_models:
        what = f"the {role} has no model of its own; give --{role}-model, or leave {role}: out"
        raise UsageError(f"{flag} {value}: {what}")
    return role, text


def _of_sheet(text: str, model: str) -> dict[str, float]:
    tariff = named_tariff(text, model)
    kinds = {"input": tariff.input, "cached_input": tariff.cache_read, "output": tariff.output}
    kinds |= {} if tariff.cache_write is None else {"cache_write": tariff.cache_write}
    return {kind: round(10**6 * price, 9) for kind, price in kinds.items()}
