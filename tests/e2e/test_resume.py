"""Going on with a run: what is kept, what is refused, what is paid."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pandas as pd
import pytest
from command_runs import SCRIPT, new, quiet
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.config.names import bundled_folder
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.publish import publish

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_finished_run_has_nothing_left_to_pay(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert new(server, "--out", "here") == 0
    assert "nothing is left to do" not in capfd.readouterr().err
    before, asked = load("here"), len(server.books)
    assert quiet("--resume", "here") == 0
    assert "nothing is left to do: all 8 answers are finished; the tables are written again" in capfd.readouterr().err
    pd.testing.assert_frame_equal(load("here"), before)
    assert len(server.books) == asked


def test_what_the_infrastructure_failed_is_tried_again_and_what_was_wrong_is_not() -> None:
    down = True

    def reply(request: dict[str, Any]) -> ServerReply | ServerFault:
        return (
            ServerFault(status=400, message="down") if down and len(server.books) >= 5 else ServerReply("Answer: Neva")
        )

    with ModelServer(reply) as server:
        assert new(server, "--out", "here", "--concurrency", 1) == 3
        failed = load("here")
        down, asked = False, len(server.books)
        assert quiet("--resume", "here") == 0
    assert failed["exact_match"].isna().sum() == 3
    rows = load("here")
    assert rows["exact_match"].notna().all()
    assert len(server.books) == asked + 3
    assert rows["example_id"].tolist() == failed["example_id"].tolist()


def test_a_run_can_be_extended_to_more_questions(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    new(server, "--out", "here")
    before, asked = load("here"), len(server.books)
    assert quiet("--resume", "here", "-n", 6) == 0
    rows = load("here")
    assert len(server.books) == asked + 4
    pd.testing.assert_frame_equal(rows.head(8), before)
    new(server, "-n", 6, "--out", "anew")
    assert rows["example_id"].tolist() == load("anew")["example_id"].tolist()
    assert quiet("--resume", "here", "-n", 5) == 2
    assert "--resume: this run has 6 questions, and -n 5 would be fewer" in capfd.readouterr().err


def test_a_run_over_all_questions_of_a_data_set_stays_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "direct", "--model", "oracle", "--out", "here") == 0
    assert quiet("--resume", "here", "-n", 7) == 2
    assert "--resume: this run has all questions of its data set; leave -n out" in capfd.readouterr().err
    assert len(load("here")) == 100


def test_a_run_is_not_extended_with_other_questions(
    tmp_path: Path, server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    def write(name: str, ids: range) -> Path:
        rows = ({"id": str(i), "question": f"Question {i}?", "answers": ["Neva"]} for i in ids)
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
        return tmp_path / name

    data = write("mine.jsonl", range(10))
    new(server, "--dataset", data, "--out", "here")
    write("mine.jsonl", range(100, 110))
    assert quiet("--resume", "here", "-n", 6) == 2
    assert "the questions don't begin with those of this run" in capfd.readouterr().err


def test_a_changed_prompt_is_refused_by_name(
    tmp_path: Path, server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bundled_folder("architectures") / "direct", tmp_path / "mine")
    hosted = ("--model", "openai/test", "--api-base", server.api_base)
    assert quiet("--arch", "./mine", "-n", 2, *hosted, "--out", "here") == 0
    (tmp_path / "mine" / "answer.txt").write_text("Answer at once.")
    assert quiet("--resume", "here") == 2
    assert "--resume: architectures.direct.prompts_sha256 was" in capfd.readouterr().err


def test_an_address_with_a_password_has_to_be_given_again(
    server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    address = server.api_base.replace("://", "://me:s3cret@")
    hosted = ("--model", "openai/test", "--api-base", address)
    assert quiet("--arch", "direct", "-n", 1, *hosted, "--out", "here") in (0, 3)
    assert b"s3cret" not in b"".join(path.read_bytes() for path in Path("here").iterdir())
    assert quiet("--resume", "here") == 2
    assert "--resume: give --api-base again" in capfd.readouterr().err
    assert quiet("--resume", "here", "--api-base", address) in (0, 3)


def test_a_field_that_holds_a_key_is_given_again_and_never_sent_without_it(
    server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    fields = ("--extra-body", '{"api_key": "abcd-0123456789"}')
    assert new(server, *fields, "--run-tokens", 1, "--concurrency", 1, "--out", "here") == 3
    for again in (("--resume", "here"), ("--from", "here/run.json", "--out", "there")):
        assert quiet(*again) == 2
        assert "give --extra-body again; its credentials aren't kept in the run" in capfd.readouterr().err
    assert quiet("--resume", "here", "--extra-body", '{"user": "me"}') == 2
    assert "--extra-body was" in capfd.readouterr().err
    assert quiet("--resume", "here", *fields, "--run-tokens", "none") == 0
    assert {book.request["api_key"] for book in server.books} == {"abcd-0123456789"}


@pytest.mark.parametrize(
    "fields", ['{"headers": {"X-Api-Key": "abcd-1234"}, "top_k": 5}', '{"password": "hunter7pass77"}']
)
def test_a_field_with_the_name_of_a_credential_is_in_no_file(fields: str, server: ModelServer) -> None:
    assert new(server, f"--extra-body={fields}", "--out", "here") == 0
    secret = fields.split('"')[-4] if "headers" in fields else fields.split('"')[-2]
    sent = [json.dumps({name: book.request[name] for name in json.loads(fields)}) for book in server.books]
    assert set(sent) == {fields}
    publish(Path("here"), Path("there"))
    for folder in ("here", "there"):
        assert secret.encode() not in b"".join(path.read_bytes() for path in Path(folder).iterdir())


def test_a_second_interrupt_ends_at_once_and_loses_nothing_that_was_finished() -> None:
    def reply(request: dict[str, Any]) -> ServerReply | ServerFault:
        return ServerReply("Answer: Neva") if len(slow.books) < 3 or waiting == 0 else ServerFault("hang")

    waiting = 1
    with ModelServer(reply) as slow:
        hosted = ("--model", "openai/test", "--api-base", slow.api_base, "--concurrency", 1, "--grace", 600)
        command = [sys.executable, str(SCRIPT), "--arch", "direct", "-n", "6", "--out", "here", *map(str, hosted)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            assert process.stderr is not None
            while len(slow.books) < 4:
                assert process.poll() is None
                sleep(0.01)
            process.send_signal(signal.SIGINT)
            lines = iter(process.stderr.readline, "")
            assert any("once more to stop at once" in line for line in lines)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
        assert process.returncode == 3
        waiting = 0
        assert quiet("--resume", "here") == 0
    assert len(load("here")) == 6
    assert sum(entry.usage is not None for entry in slow.books) == 6


@pytest.mark.nightly
def test_a_full_disk_is_one_line_and_the_run_goes_on_later() -> None:
    with ModelServer(lambda request: f"Answer: Neva {Random(str(request)).randbytes(3000).hex()}") as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", "direct", "-n", 1, *hosted, "--out", "warm") == 0  # has the index made
        command = [sys.executable, str(SCRIPT), "--arch", "direct", *hosted, "--out", "here", "--no-progress"]
        command += ["--concurrency", "4"]
        # No file may grow beyond 800 blocks, which is what a full disk looks like from here.
        limited = ["sh", "-c", 'ulimit -f 800; exec "$@"', "sh", *command]
        ended = subprocess.run(limited, capture_output=True, text=True, timeout=120, check=False)
        assert (ended.returncode, "Traceback" in ended.stderr) == (3, False), ended.stderr
        assert "here/journal.sqlite': " in ended.stderr
        assert len(load("here")) < 100  # the tables have what there was room for; the log has the rest
        asked = len(server.books)
        assert quiet("--resume", "here") == 0
    assert len(load("here")) == 100
    assert 20 < asked < 100
    assert len(server.books) <= 1 + 100 + 4  # those in flight are asked again
