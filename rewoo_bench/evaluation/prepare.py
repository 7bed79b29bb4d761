"""A run's inputs and open models, and the evaluator that is made of them.

async with prepared(options, python_inputs) as run:
    evaluator = make_evaluator(options, run, recorder)
"""

from __future__ import annotations

import string
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.agents.runner import open_gateway
from rewoo_bench.calls.caps import RunLimits
from rewoo_bench.calls.meter import Limits
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.config.names import LOCAL, REPLAY, is_oracle
from rewoo_bench.config.price_sheets import named_tariff, read_price, sheet_and_model
from rewoo_bench.errors import UnknownPrice, UsageError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import check_new
from rewoo_bench.evaluation.inputs import PythonInputs, RunInputs, model_settings, read_run_inputs
from rewoo_bench.events import at_place
from rewoo_bench.models.hosted.providers import provider_of
from rewoo_bench.models.open import OpenModel, is_hosted, is_own_model, open_model
from rewoo_bench.models.oracle.model import Oracle
from rewoo_bench.runs.columns import RunSource, columns_of_run
from rewoo_bench.runs.folder import JOURNAL_FILE
from rewoo_bench.runs.journal.response_cache import ResponseCache
from rewoo_bench.runs.journal.store import JournalReader, read_journal
from rewoo_bench.runs.options import RoleModel, RunOptions
from rewoo_bench.runs.rows import answers_of_oracle
from rewoo_bench.system.processes import cores
from rewoo_bench.tools.mcp_server import McpServers
from rewoo_bench.types import Connects, Example, GoldAware, Message, Model, Request

if TYPE_CHECKING:
    from rewoo_bench.agents.gateway import Gateway


INSTRUCTIONS = (
    "Decide whether the prediction answers the question as one of the gold answers does. "
    "Other wording, spelling or precision is fine where the meaning is the same. Reply with one word: yes or no."
)
GRAMMAR = 'root ::= "yes" | "no"'


class ModelJudge:
    """Asks the model of the role `judge`, once a question: the ReWOO paper's headline accuracy is GPT-4's."""

    async def judge(self, example: Example, prediction: str, model: Model) -> bool | None:
        """True or False, or None where the reply was neither. Raises `ModelError`."""
        gold = "; ".join(example.answers)
        messages = [
            Message("system", INSTRUCTIONS),
            Message("user", f"Question: {example.question}\nGold answers: {gold}\nPrediction: {prediction}\nSame?"),
        ]
        with at_place("judge"):
            completion = await model.complete(Request(messages, role="judge", max_tokens=8, grammar=GRAMMAR))
        first = next(iter(completion.text.casefold().split()), "")
        return {"yes": True, "no": False}.get(first.strip(string.punctuation))


def costs_nothing(model: str) -> bool:
    """Whether a model costs no money: the oracle and a replay."""
    return is_oracle(model) or model.startswith(REPLAY)


def dollar_caps(options: RunOptions) -> tuple[float | None, float | None]:
    """The caps of the run and of a question in dollars, each None where nothing that it counts costs money."""
    paid = {role for role, model in options.role_models.items() if not costs_nothing(model.name)}
    of_question = paid - {"judge"}  # whose calls aren't the question's
    return options.run_cost if paid else None, options.question_cost if of_question else None


def check_price(options: RunOptions, model: str, prices: Mapping[str, float] | None) -> None:
    """Raises `UsageError` where a limit in dollars is set and the price of a model isn't known."""
    if prices is not None or costs_nothing(model):
        return
    for flag, limit in (("--run-cost", options.run_cost), ("--question-cost", options.question_cost)):
        if limit is not None:
            where = " at --api-base" if options.api_base else ""
            role = next((role for role, wanted in options.role_models.items() if wanted.name == model), "")
            price = f"--price {role and role + ':'}input=0.15,output=0.6"  # without a role it is for --model alone
            why = f"the price of {model!r}{where} isn't known; give it ({price}), or limit tokens"
            raise UnknownPrice(flag, limit, f"{why} (--run-tokens, --question-tokens)")


def given_prices(options: RunOptions) -> dict[str, dict[str, float]]:
    """By role (`""` is every other one): dollars per million tokens by kind, as run.json has them.

    A value without a role is for `--model`, and a sheet for every model whose name it has. Raises `UsageError`.
    """
    roles = options.role_models
    found: dict[str, dict[str, float]] = {}
    for flag, values in (("--prices", options.prices), ("--price", options.price)):
        for value in values:
            role, colon, text = value.partition(":")
            if not colon or role not in ("planner", "solver", "judge", "embedding"):
                named, text = [each for each in roles if flag == "--prices" and not sheet_and_model(value)[1]], value
            elif role in roles:
                named = [role]
            else:
                what = f"the {role} has no model of its own; give --{role}-model, or leave {role}: out"
                raise UsageError(f"{flag} {value}: {what}")
            for each in named or [""]:
                _check_paid(flag, text, roles[each].name)
                if flag == "--price":
                    found[each] = read_price(text)
                    continue
                tariff = named_tariff(text, roles[each].name)
                kinds = {"input": tariff.input, "cached_input": tariff.cache_read, "output": tariff.output}
                kinds |= {} if tariff.cache_write is None else {"cache_write": tariff.cache_write}
                found[each] = {kind: round(10**6 * price, 9) for kind, price in kinds.items()}
    for role, model in roles.items():
        if role not in found and "" in found and model.name == options.model:
            found[role] = found[""]  # the same model at another temperature
    return found


def _check_paid(flag: str, value: str, model: str) -> None:
    """Raises `UsageError` where a model has no price: one that costs nothing, or counts its own dollars."""
    if costs_nothing(model) or is_own_model(model):
        why = "costs nothing" if costs_nothing(model) else "counts its own dollars (CallCost.cost_usd)"
        after = f"rewoo-bench compare RUN --prices {value if flag == '--prices' else 'NAME'}"
        raise UsageError(f"{flag} {value}: {model!r} {why}; leave it out, and price the finished run with {after}")


@dataclass(frozen=True)
class PreparedRun(RunInputs):
    """The inputs of a run, with its models open."""

    models: dict[RoleModel, OpenModel]
    replay: JournalReader | None
    cache: ResponseCache | None
    is_model_given: bool = False
    """Whether the model is an object of the caller's, which makes its own retries."""
    gateway: Gateway | None = None
    """The server that external agents ask, where there are any."""


@asynccontextmanager
async def prepared(options: RunOptions, python_inputs: PythonInputs) -> AsyncIterator[PreparedRun]:
    """Checks everything that can be wrong, cheapest first, before a model is fetched or asked."""
    if options.out is not None and options.resume is None:
        check_new(options.out)  # once more when the folder is taken
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(McpServers(options.mcp_timeout))
        inputs = await read_run_inputs(options, python_inputs, servers)
        replay = cache = None
        if options.model.startswith(REPLAY):
            recorded = Path(options.model.removeprefix(REPLAY)) / JOURNAL_FILE
            replay = await stack.enter_async_context(read_journal(recorded))
        if options.answer_cache:
            cache = stack.enter_context(closing(ResponseCache(options.answer_cache)))
        opened: dict[RoleModel, OpenModel] = {}
        prices = given_prices(options) if options.price or options.prices else {}
        for part, role in options.role_models.items():
            if role not in opened:
                opened[role] = await _open(role, options, python_inputs, prices.get(part), stack)
                check_price(options, role.name, opened[role].prices)
        await stack.enter_async_context(inputs.toolbox)
        roles = options.role_models
        embeddings = opened[roles.get("embedding", roles[""])] if options.embedding_model else None
        programs = None if options.concurrency else cores()
        gateway = await open_gateway(inputs.architectures, opened[roles[""]], embeddings, programs, stack)
        for each in (architecture for one in inputs.architectures for architecture in (one, *one.parents)):
            if isinstance(each.runner, Connects):
                await each.runner.connect(stack)
        facts: dict[str, Any] = {"is_model_given": python_inputs.model is not None, "gateway": gateway}
        yield PreparedRun(**vars(inputs), models=opened, replay=replay, cache=cache, **facts)


def _owner_of_address(options: RunOptions, python_inputs: PythonInputs) -> str | None:
    """The model that `--api-base` is the address of: the first hosted one."""
    names = [role.name for role in options.role_models.values()]
    given = {options.model} if python_inputs.model is not None else set[str]()
    return next((name for name in names if name not in given and is_hosted(name)), None)


async def _open(
    role: RoleModel,
    options: RunOptions,
    python_inputs: PythonInputs,
    prices: Mapping[str, float] | None,
    stack: AsyncExitStack,
) -> OpenModel:
    if python_inputs.model is not None and role.name == options.model:
        return python_inputs.open_model()
    n_caches = python_inputs.n_caches or len(options.architectures)
    settings = replace(model_settings(options), n_caches=n_caches)
    if role.name.startswith(LOCAL):
        check_price(options, role.name, prices)  # before anything is fetched
    own = replace(settings, temperature=role.temperature, prices=prices)
    owner = _owner_of_address(options, python_inputs) if own.api_base else None
    if owner and role.name != owner and is_hosted(role.name) and provider_of(role.name) != provider_of(owner):
        own = replace(own, api_base=None)  # another provider's key stays away from it
    opened = await stack.enter_async_context(open_model(role.name, own))
    if isinstance(opened.model, Oracle) and options.tool_failure_rate and options.tool_failure_mode != "empty":
        return replace(opened, model=replace(opened.model, tools_fail=True))
    return opened


def make_evaluator(
    options: RunOptions,
    run: PreparedRun,
    recorder: Recorder | None,
) -> Evaluator:
    """The evaluator of a run, with its models behind retries."""
    limiters = {name: AdaptiveLimiter(places) for name, places in connections(options, run).items()}
    models: dict[str, Model] = {}
    for role, wanted in options.role_models.items():
        opened = run.models[wanted]
        if isinstance(opened.model, GoldAware) or (run.is_model_given and wanted.name == options.model):
            models[role] = opened.model  # no provider of ours, so no retries
            continue
        models[role] = RetryingModel(
            opened.model,
            name=wanted.name,
            cache_key_part=opened.cache_key_part,
            prices=opened.prices,
            price=opened.price,
            max_retries=options.max_retries,
            limiter=limiters.get(wanted.name),
        )
    run_cost, question_cost = dollar_caps(options)
    return Evaluator(
        models=models,
        scoring=run.dataset.scorer,
        toolbox=run.toolbox,
        limits=Limits(options.question_tokens, options.question_time, question_cost),
        run_limits=RunLimits(options.run_tokens, run_cost, options.fail_on_error),
        judge=ModelJudge() if options.judge_model else None,
        recorder=recorder,
        grace_s=options.grace,
        concurrency=concurrency(options, run),
    )


def connections(options: RunOptions, run: PreparedRun) -> dict[str, int]:
    """Maximum number of simultaneous calls to each model that has a provider."""
    return {
        wanted.name: options.max_connections or opened.concurrency
        for wanted, opened in run.models.items()
        if not costs_nothing(wanted.name)
    }


def concurrency(options: RunOptions, run: PreparedRun) -> int:
    """Number of questions at the same time."""
    return options.concurrency or run.models[options.role_models[""]].concurrency


def run_columns(options: RunOptions, run: PreparedRun, run_id: str) -> Mapping[str, Any]:
    """The columns of questions.parquet that are the same in every row of a run."""
    roles = [model for role, model in options.role_models.items() if role != "judge"]
    # Whether a model that sees the gold answers any role, now or in a replayed run; None where nothing says it.
    answers = [answers_of_oracle(name) for name in dict.fromkeys(model.name for model in roles)]
    is_oracle: bool | None = True if any(answers) else None if None in answers else False
    if any(isinstance(run.models[model].model, GoldAware) for model in roles):
        is_oracle = True
    seed = run.models[options.role_models[""]].seed
    return columns_of_run(RunSource(run_id, run.dataset.name, options, is_oracle, seed))


def questions_at_once(options: RunOptions, run: PreparedRun) -> int:
    """Number of questions at the same time in the whole run, on all workers of a cluster."""
    workers = (options.workers or 1) if options.engine == "ray" else 1
    return options.concurrency or workers * concurrency(options, run)
