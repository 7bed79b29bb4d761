"""Claims put to the test: the bundled file, what is refused, which runs serve which claim, and how it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from claim_runs import ENDINGS, GOLDEN, claims_file, found, one_claim, run_folder, small
from comparison_rows import system

from rewoo_bench.analysis.claims import check, gather, read_claims
from rewoo_bench.analysis.claims.check import ClaimsFormat, needed, render_claims
from rewoo_bench.analysis.claims.measures import MeasureName
from rewoo_bench.cli.main import main
from rewoo_bench.errors import SpecError, UsageError

ABOVE = "above = 1"
CHAIN = "chain"


def bundled() -> dict[str, Any]:
    return {claim.id: claim for claim in read_claims()}


def verdicts(text: str, folder: Path, *runs: Path) -> list[str]:
    return [finding.verdict for finding in found(text, folder, *runs)]


def test_every_bundled_claim_has_a_source_and_what_to_run() -> None:
    assert len(bundled()) >= 40
    for claim in read_claims():
        for source in claim.cited:
            assert any(name in source for name in ("arXiv", "card", "guide", "documentation")), claim.id
        assert claim.claimed, claim.id
        assert "run --arch" in needed(claim)


def test_every_measure_serves_a_bundled_claim() -> None:
    assert {claim.measure.name for claim in read_claims()} == set(get_args(MeasureName))


def test_claims_about_cost_take_an_oracle_and_no_others_do() -> None:
    serving = {claim.id for claim in read_claims() if claim.measure.serves_oracle()}
    assert {"hotpotqa-tokens-react-rewoo", "gap-widens", "two-calls"} <= serving
    assert not [name for name in serving if any(word in name for word in ("em-", "f1-", "yao"))]
    assert "failure-react-tokens" not in serving  # what an agent does after a failure is its model's behaviour


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (one_claim(ABOVE, nubmer=3), "unknown key 'nubmer', did you mean 'number'"),
        (one_claim("abov = 1"), "unknown key 'rule.abov', did you mean 'above'"),
        (one_claim("above = 1, relative = 0.2"), "claim 'it': rule: expected above or below or both"),
        (one_claim("relative = 0.2"), "expected the key 'number'"),
        (one_claim(ABOVE, 'name = "ration", column = "f1", of = "a"'), "'ration'"),
        (one_claim(ABOVE, 'name = "mean", column = "total_token", of = "a"'), "did you mean 'total_tokens'"),
        (one_claim(ABOVE, 'name = "ratio", column = "f1", of = "a"'), "'ratio' needs the key 'to'"),
        (one_claim(ABOVE, on='dat = ["chain"]'), "unknown key 'on.dat', did you mean 'data'"),
        (one_claim(ABOVE, on='data = ["hotpot"]'), "'hotpot'"),
        (one_claim(ABOVE) + "\n" + one_claim(ABOVE), "2 claims have the id 'it'"),
        ('[[claim]]\nid = "it"\nsays = "so"\nsource = "there"', "the keys 'measure', 'rule' are missing"),
    ],
)
def test_a_file_of_claims_that_is_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        read_claims(claims_file(tmp_path, text))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_oracle_serves_costs_with_a_mark_and_is_refused_for_accuracy(tmp_path: Path) -> None:
    oracle = "oracle?extra_steps=2"
    rows = system(matches="1" * 20, model=oracle), system("react", "1" * 20, 2600, model=oracle)
    run = run_folder(tmp_path / "0001", *rows)
    (cost,) = found(one_claim(ABOVE), tmp_path, run)
    assert cost.decided is not None
    assert cost.decided.group.oracle
    assert "reproduced*: " in render_claims([cost], "terminal")
    for column in ("exact_match", "f1", "incorrect"):
        (refused,) = found(one_claim(ABOVE, f'name = "mean", column = "{column}", of = "rewoo"'), tmp_path, run)
        assert refused.verdict == "no data"
        assert refused.reason.endswith("with a real model, an oracle won't do")


def ran(folder: Path, questions: int, tokens: int, model: str = "openai/big") -> Path:
    """A run in which ReAct takes so many tokens, and ReWOO 1,000."""
    matches = "1" * questions
    return run_folder(folder, system(matches=matches, model=model), system("react", matches, tokens, model=model))


def test_the_run_with_the_most_questions_decides_and_the_others_stand_beside_it(tmp_path: Path) -> None:
    runs = [ran(tmp_path / "few", 20, 500), ran(tmp_path / "many", 24, 2600, "openai/other")]
    (finding,) = found(one_claim(ABOVE), tmp_path, *runs)
    assert finding.decided is not None
    assert (finding.verdict, finding.decided.runs) == ("reproduced", ("many",))
    assert [(figure.runs, figure.verdict) for figure in finding.also] == [(("few",), "contradicted")]


def test_a_large_model_decides_before_an_oracle_and_an_oracle_before_a_small_model(tmp_path: Path) -> None:
    models = {"small": "local/smollm2-135m", "oracle": "oracle", "large": "local/qwen2.5-1.5b"}
    runs = {name: ran(tmp_path / name, 12 - len(name), 2600, model) for name, model in models.items()}
    for given, decides in (("small oracle large", "large"), ("small oracle", "oracle"), ("small large", "large")):
        (finding,) = found(one_claim(ABOVE), tmp_path, *(runs[name] for name in given.split()))
        assert finding.decided is not None
        assert finding.decided.runs == (decides,)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("Qwen2.5-7B-Instruct-1M", 7e9), ("openrouter/qwen3-30b-a3b", 30e9), ("SmolLM2-135M", 135e6), ("gpt-5", None)],
)
def test_a_context_or_the_active_part_in_a_models_name_is_not_its_size(
    tmp_path: Path, model: str, parameters: float | None
) -> None:
    (group,) = gather(ran(tmp_path / "0001", 2, 2600, model))
    assert group.parameters == parameters


def test_architectures_of_two_runs_are_put_together_where_all_else_is_the_same(tmp_path: Path) -> None:
    many = "1" * 20
    rewoo = run_folder(tmp_path / "0001", system(matches=many))
    react = run_folder(tmp_path / "0002", system("react", many, 2600))
    other = run_folder(tmp_path / "0003", system("react", many, 2600), temperature=1.0)
    (finding,) = found(one_claim(ABOVE), tmp_path, rewoo, react)
    assert finding.verdict == "reproduced"
    assert finding.decided is not None
    assert finding.decided.runs == ("0001", "0002")
    assert verdicts(one_claim(ABOVE), tmp_path, rewoo, other) == ["no data"]
    again = run_folder(tmp_path / "0004", system("react", many, 900))
    assert len(gather(rewoo, react, again)) == 2


@pytest.mark.parametrize(("rule", "otherwise"), [(ABOVE, "reproduced"), ("below = 1", "contradicted")])
def test_an_interval_with_the_mark_of_a_rare_event_decides_nothing(tmp_path: Path, rule: str, otherwise: str) -> None:
    (few,) = found(one_claim(rule), tmp_path, ran(tmp_path / "few", 5, 5000))
    assert few.interval is not None
    assert (few.verdict, few.interval.rare, few.interval.low > 1) == ("undecided", True, True)
    shown = " ".join(render_claims([few], "terminal").split())
    assert f"]?, n = {few.interval.n}" in shown
    assert "too few questions to rule out a rare event (n = 5)" in shown
    assert "? rests on a few questions" in shown
    assert verdicts(one_claim(rule), tmp_path, ran(tmp_path / "many", 20, 5000)) == [otherwise]


def test_a_chosen_model_that_no_run_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run has a model whose name contains 'qwen'; there are: openai/big"):
        check(read_claims(), gather(ran(tmp_path / "run", 2, 2600)), "qwen")


def test_the_data_set_is_known_by_its_format_whatever_the_file_is_called(tmp_path: Path) -> None:
    runs = [
        run_folder(tmp_path / "1", system(), data="triviaqa"),
        run_folder(tmp_path / "2", system(), data="chain?hops=1..3", generator=CHAIN),
        run_folder(tmp_path / "3", system(), data="sample"),
        run_folder(tmp_path / "4", system(), data="mine"),
    ]
    assert [each.data for each in gather(*runs)] == ["triviaqa", "chain", "sample", "other"]
    on_trivia = found(one_claim(ABOVE, 'name = "mean", column = "llm_calls", of = "rewoo"', 'data = ["triviaqa"]'),
                      tmp_path, *runs)  # fmt: skip
    assert [finding.decided.group.data for finding in on_trivia if finding.decided] == ["triviaqa"]


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_it_is_printed_as_before(tmp_path: Path, form: ClaimsFormat) -> None:
    golden = (GOLDEN / f"small.{ENDINGS[form]}").read_text(encoding="utf-8")
    assert render_claims(small(tmp_path), form) + "\n" == golden


def test_the_verdicts_come_first_and_the_details_on_demand(tmp_path: Path) -> None:
    lines = render_claims(small(tmp_path), "terminal", details=False).splitlines()
    assert lines[0].startswith("3 claims: 3 undecided")
    assert [line.split()[:2] for line in lines[5:8]] == [
        ["tokens", "undecided"], ["better", "undecided"], ["failing", "undecided"],
    ]  # fmt: skip
    assert lines[-1].endswith("--details")


def test_json_has_all_and_no_nan(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    lonely = run_folder(tmp_path / "0009", system(matches="1"), system("react", "1", 2600))
    (alone,) = json.loads(render_claims(found(one_claim(ABOVE), tmp_path, lonely), "json"), parse_constant=refuse)[
        "findings"
    ]
    assert (alone["verdict"], alone["high"], alone["n"]) == ("undecided", None, 1)
    told = json.loads(render_claims(small(tmp_path), "json"), parse_constant=refuse)
    assert sum(told["verdicts"].values()) == len(told["findings"])
    assert told["findings"][0]["source"] == ["Somebody and others 2023, Table 1: 5 / 2", "nobody 2024"]
    assert [each["oracle"] for each in told["findings"]] == [False, False, False]
    assert [each["oracle"] for each in told["findings"][0]["also"]] == [False, True]


def command(*arguments: str | Path) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


def test_the_command_says_which_models_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ran(tmp_path / "0001", 6, 2600, "local/smollm2-135m")
    file = ("--claims", claims_file(tmp_path), "--format", "json")
    for chosen, verdict in (((), "not tested at this scale"), (("--claims-model", "135m"), "undecided")):
        assert command("claims", run, *file, *chosen) == 0
        assert json.loads(capsys.readouterr().out)["findings"][0]["verdict"] == verdict


def test_the_command_takes_claims_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_folder(tmp_path / "0001", system(), system("react", "110100", 2600))
    assert command("claims", run, "--claims", claims_file(tmp_path), "--details") == 0
    assert "tokens: ReAct takes 2.5 times the tokens of ReWOO" in capsys.readouterr().out
    assert command("claims", run, "--claims", tmp_path / "none.toml") == 2
    assert "has no none.toml" in capsys.readouterr().err
    assert command("claims", tmp_path / "nowhere") == 2


def test_a_replay_is_not_tested(tmp_path: Path) -> None:
    rows = [*system(matches="1101", model="replay/mine"), *system("react", "1000", model="replay/mine")]
    run = run_folder(tmp_path / "0001", rows)
    assert verdicts(one_claim(ABOVE, on='data = ["hotpotqa"]'), tmp_path, run) == ["no data"]


def test_claims_without_a_run_are_one_line_of_their_data_set(tmp_path: Path) -> None:
    findings = check(read_claims(), gather(ran(tmp_path / "0001", 4, 2600)))
    short = " ".join(render_claims(findings, "terminal").split())
    assert "TRIVIAQA 10 claims without data here: --all says what to run for each" in short
    assert "hotpotqa-tokens-react-rewoo: " in short
    assert "no data: " not in short
    whole = " ".join(render_claims(findings, "terminal", everything=True).split())
    assert whole.count("needs run --arch") == sum(finding.verdict == "no data" for finding in findings)
    assert all(f"{finding.claim.id}: " in whole for finding in findings)
