"""An agent's own token count stands in its trace beside the meter's."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from command_runs import quiet
from model_server import ModelServer

COUNT = 'print(json.dumps({{"own_count": {{"input": {}}}}}), file=sys.stderr)'
PROGRAM = f"import json, sys\n{COUNT.format(7)}\nprint('Neva')\n"
WORKER = """
import json, sys
for number, line in enumerate(sys.stdin):
    key = json.loads(line)["id"]
    print(json.dumps({"id": key, "own_count": {"input": number}}), file=sys.stderr, flush=True)
    print(json.dumps({"id": key, "answer": "Neva"}), flush=True)
"""


def own_counts(*arguments: object, out: Path) -> list[object]:
    with ModelServer(lambda _: "Neva") as server:
        quiet("-n", 5, "--model", "openai/test", "--api-base", server.api_base, "--out", out, *arguments)
    traces = map(json.loads, (out / "traces.jsonl").read_text(encoding="utf-8").splitlines())
    return [trace["notes"].get("own_count") for trace in traces]


def test_a_programs_count_is_in_the_trace_of_its_question(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM)
    agent = shlex.join([sys.executable, str(tmp_path / "agent.py")])
    assert own_counts("--agent", agent, out=tmp_path / "run") == [{"input": 7}] * 5


def test_a_workers_counts_are_those_of_their_questions(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(WORKER)
    settings = f"[agent]\ncommand = {json.dumps([sys.executable, 'agent.py'])}\nprotocol = 'worker'\n"
    (tmp_path / "architecture.toml").write_text(settings)
    counts = own_counts("--arch", tmp_path, "--concurrency", 5, out=tmp_path / "run")
    assert sorted(str(count) for count in counts) == [str({"input": number}) for number in range(5)]
