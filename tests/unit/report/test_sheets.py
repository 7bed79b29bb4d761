"""Price sheets: the bundled ones, and one clear line for a wrong one."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest
from priced_runs import SHEET, ask, sheet, text, write

import rewoo_bench
from rewoo_bench.cli.list_names import sheet_list
from rewoo_bench.config.price_sheets import (
    SHORT_PRICES,
    bundled_sheets,
    named_tariff,
    price_of,
    read_sheet,
)
from rewoo_bench.config.price_table import without_date
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.option_types import SHORT_NAMES

MODEL = "[models.m]\ninput = 1\noutput = 4\n"
CACHE = '[cache.c]\nkind = "automatic"\nsource = "made up"\nas_of = 2026-11-24\n'
TOOLS = '[tools]\nsource = "made up"\nas_of = 2026-11-24\n'
LITELLM = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
}
PROVIDERS = {"google": "gemini/", "deepseek": "deepseek/", "mistral": "mistral/"}


def message(path: Path) -> str:
    with pytest.raises(UsageError) as raised:
        named_tariff(str(path))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_every_shipped_sheet_has_a_unit_a_source_and_a_date() -> None:
    listed = sheet_list()
    assert {"openai", "anthropic", "google", "deepseek"} <= set(bundled_sheets())
    for name, path in bundled_sheets().items():
        prices = read_sheet(path)
        assert prices.source
        assert all(rule.source for rule in prices.cache.values())
        assert prices.tools is None or prices.tools.source
        assert f"{name}: {prices.source}, {prices.as_of}" in listed
        assert all(listed.count(f"\n{name}:{model} ") == 1 for model in prices.models)  # one row in 80 columns


@pytest.mark.parametrize("name", [name for name, path in bundled_sheets().items() if "litellm" in path.read_text()])
def test_shipped_prices_are_those_of_the_source_that_they_name(name: str) -> None:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm import model_cost

    prices = read_sheet(bundled_sheets()[name])
    if f"litellm {version('litellm')}," not in prices.source:
        pytest.skip(f"the sheet has the prices of {prices.source}")
    for model, own in prices.models.items():
        theirs = model_cost[PROVIDERS.get(name, "") + model]
        for field, key in LITELLM.items():
            per_million = None if theirs.get(key) is None else round(theirs[key] * 1e6, 9)
            assert getattr(own, field) == per_million, f"{model}: {field}"


def test_no_snapshot_with_another_price_is_taken_for_its_model() -> None:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm import model_cost

    checked = 0
    for name, theirs in model_cost.items():
        if without_date(name) == name or "/" in name or (price := price_of(name)) is None:
            continue
        tariff = named_tariff(price)
        asked = [theirs["input_cost_per_token"], theirs.get("output_cost_per_token", 0)]
        assert [tariff.input, tariff.output] == pytest.approx(asked), name
        checked += 1
    assert checked > 5


def test_a_fact_that_is_not_known_is_left_out_and_the_output_says_so(tmp_path: Path) -> None:
    run = write(tmp_path / "run", {("react", "q1"): [ask(0, 1, 10, 1, text("P", 10))]})
    prices = sheet(tmp_path, CACHE + MODEL + 'cache_read = 0.1\ncache = "c"\n')
    shown = str(rewoo_bench.compare(run, prices=[str(prices), "none"]))
    assert "; the shortest cached prefix isn't known: none is assumed" in shown
    assert "; the size of a cached block isn't known: 1 token is assumed" in shown
    assert "; the lifetime of a cached prefix isn't known: it never ends here" in shown


@pytest.mark.parametrize(
    ("body", "head", "part"),
    [
        (MODEL + "inputt = 2\n", SHEET, "inputt"),
        (MODEL.replace("input = 1", "input = -1"), SHEET, "input"),
        (MODEL, SHEET.replace("million", "billion"), "unit: Input should be 'USD per million tokens'"),
        (MODEL + 'cache = "c"\n', SHEET, "cache = 'c' needs cache_read"),
        (MODEL + 'cache_read = 0.1\ncache = "d"\n' + CACHE, SHEET, "unknown cache 'd'"),
        (MODEL + TOOLS + "share = -0.5\n", SHEET, "tools.share"),
        ("", SHEET, "models"),
        ("[models", SHEET, "not valid TOML"),
    ],
)
def test_a_wrong_sheet_is_one_clear_line(tmp_path: Path, body: str, head: str, part: str) -> None:
    path = sheet(tmp_path, body, head)
    said = message(path)
    assert said.startswith(str(path))
    assert part in said


def test_a_short_name_stands_for_one_model_of_a_sheet_with_its_rule() -> None:
    assert ", ".join(SHORT_PRICES) == SHORT_NAMES
    assert named_tariff("openai").brief == "gpt-5-mini's prices of 2026-11-24 under OpenAI's rule"
    assert named_tariff("none").brief == "gpt-5-mini's prices of 2026-11-24 without a cache"
    assert str(named_tariff("vllm").rule) == "prefixes of any length, in blocks of 16"
    hour, minutes = named_tariff("anthropic-1h"), named_tariff("anthropic-5m")
    assert (hour.cache_write, minutes.cache_write) == pytest.approx((2 * hour.input, 1.25 * minutes.input))
    with pytest.raises(UsageError, match=r"unknown price 'opnai', did you mean 'openai'\?.*anthropic-1h"):
        named_tariff("opnai")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("openai", "openai:gpt-5-mini"),
        ("anthropic", "anthropic:claude-sonnet-4-5"),
        ("google", "google:gemini-2.5-flash"),
        ("gemini:gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("llama.cpp:computed", "llama_cpp:computed"),
        ("mistral", "mistral:mistral-small-2603"),
        ("{own}", "sheet:m"),
        ("{own}:m", "sheet:m"),
    ],
)
def test_a_price_is_a_short_name_a_sheet_or_one_of_its_models(tmp_path: Path, text: str, at: str) -> None:
    found = named_tariff(text.format(own=sheet(tmp_path, MODEL)))
    assert f"{found.sheet}:{found.model}" == at


def test_a_sheet_alone_has_no_price_of_a_model_that_it_lacks() -> None:
    assert named_tariff("anthropic-5m", "anthropic/claude-opus-5").model == "claude-opus-5"
    with pytest.raises(UsageError, match=r"unknown model of the sheet 'local/x'; available.*; write anthropic:MODEL"):
        named_tariff("anthropic-5m", "local/x")
