"""The oracle's plans reach pages that earlier values don't name, and it says which questions it leaves out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from multihop_rows import wiki_row

import rewoo_bench
from rewoo_bench.cli.main import main
from rewoo_bench.models.oracle.gold_plan import LookupPath
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.types import Document, Example, Hop

pytestmark = pytest.mark.anyio

EK = Document("Ann Ek", "Ann Ek was a poet from Lund.")
PAGES = (
    Document("Tide Songs", "Tide Songs is a book by Ann Ek."),
    EK,
    Document("Painters Guild", "Ek had a sister, Eva Ek, who was a painter."),
    Document("Bo Moe (sailor)", "Bo Moe was a sailor."),
)
FIRST = Hop("Tide Songs", "Ann Ek", "author")


def asked(hop: Hop, first: Hop = FIRST, pages: tuple[Document, ...] = PAGES) -> Example:
    return Example("q1", "Who?", ("x",), pages, chain=(first, hop))


@pytest.mark.parametrize(
    ("hop", "query"),
    [
        (Hop("Ann Ek", "Lund", "home", (0,)), "{0}"),
        (Hop("Painters Guild", "Eva Ek", "sister and painter", (0,)), "{0} sister and painter"),
        (Hop("Painters Guild", "Eva Ek", "home town", (0,)), "{0} Painters Guild"),
        (Hop("Painters Guild", "Eva Ek", "", (0,)), "{0} Painters Guild"),
    ],
)
def test_a_plan_asks_by_the_value_with_as_few_words_as_find_the_page(hop: Hop, query: str) -> None:
    assert LookupPath(asked(hop)).page_query(1) == query


def test_a_page_that_no_such_query_finds_is_asked_for_by_its_title_alone() -> None:
    pages = (*PAGES, Document("Ann Ek and the guild", "Ann Ek, Ann Ek: painters guild, painters guild."))
    hop = Hop("Painters Guild", "Eva Ek", "home", (0,))
    assert LookupPath(asked(hop, pages=pages)).page_query(1) == "Painters Guild"


@pytest.mark.parametrize(
    "architecture",
    ["rewoo", "rewoo-json", "rewoo-code", "rewoo-react", "react", "react-code", "react-native", "plan-execute"],
)
async def test_every_architecture_reaches_a_page_that_no_value_names(architecture: str) -> None:
    example = replace(asked(Hop("Painters Guild", "Eva Ek", "sister and painter", (0,))), answers=("Eva Ek",))
    (result,) = await rewoo_bench.evaluate([example], [architecture], model="oracle")
    assert result.trajectory.answer == "Eva Ek"


def run_oracle(rows: list[dict[str, object]], folder: Path, *flags: str) -> int:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows))
    out = str(folder / "run")
    command = ["run", "--arch", "rewoo,react", "--model", "oracle", "--dataset", str(path), "--out", out, *flags]
    with pytest.raises(SystemExit) as done:
        main(command)
    return int(done.value.code or 0)


def test_questions_without_documents_are_left_out_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = {key: value for key, value in wiki_row(3).items() if key != "context"}
    assert run_oracle([wiki_row(1), wiki_row(2), bare, wiki_row(4, evidences=[], answer="Atlantis")], tmp_path) == 0
    said = capsys.readouterr().err
    assert "rows: left out since they have neither a gold chain nor a page with the answer, and the oracle " in said
    assert "rows: left out since they have a gold chain, but no documents to find its pages in: 1" in said
    facts = read_manifest(tmp_path / "run").dataset
    counts = facts.model_dump()
    assert (facts.examples, facts.with_chain, counts["without_chain"], counts["without_pages"]) == (2, 2, 1, 1)
    assert set(rewoo_bench.load(tmp_path / "run")["exact_match"]) == {1}


def test_a_chain_that_the_oracle_makes_up_is_said_also_without_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_oracle([wiki_row(1), wiki_row(2, evidences=[])], tmp_path, "--no-progress") == 0
    said = capsys.readouterr().err
    assert "rows: 1 of 2 questions have no gold chain ('chain' in the file): the oracle finds the answer in one" in said


def test_a_run_over_more_questions_goes_on_though_its_number_of_chains_grows(tmp_path: Path) -> None:
    bare = {key: value for key, value in wiki_row(9).items() if key != "context"}
    rows = [*(wiki_row(number) for number in range(4)), bare]
    assert run_oracle(rows, tmp_path, "-n", "2", "--no-progress") == 0
    with pytest.raises(SystemExit) as done:
        main(["run", "--resume", str(tmp_path / "run"), "-n", "4", "--no-progress"])
    assert done.value.code == 0
    facts = read_manifest(tmp_path / "run").dataset
    assert (facts.examples, facts.with_chain, len(rewoo_bench.load(tmp_path / "run"))) == (4, 4, 8)
