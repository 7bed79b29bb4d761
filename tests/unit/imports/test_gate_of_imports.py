"""A run that was imported just now passes the gate's checks of its own tables, whatever its traces lack."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from real_data import TAU_BENCH, RealData

from rewoo_bench.gate.check import check_run, open_baseline
from rewoo_bench.imports.write import ImportChoices, Imported, import_run

_TEXTS = (  # of more and fewer tokens for a character
    "Where do you want to fly, and when? ",
    "eJzT0yMAAGTvBe8=",
    "どこへ行きたいですか。",
    '{"id": "HAT271", "seats": [12, 13]}',
    " ",
)


def told(random: Random) -> str:
    """A text that is short or long, and of one alphabet or several."""
    return "".join(random.choice(_TEXTS) * random.choice((1, 3, 40, 300)) for _ in range(random.randint(1, 3)))


def trajectory(random: Random, task: int, system: str) -> dict[str, Any]:
    """A trajectory in ATIF. Prompts, tokens, times and the models' names are there or missing, call by call."""
    lacks = {name: random.choice((0.0, 0.0, 0.4, 1.0)) for name in ("prompt", "usage", "time", "model", "agent")}
    begun = 1_700_000_000 + random.randint(0, 2_000)
    steps: list[dict[str, Any]] = [{"source": "system", "message": system}] if random.random() < 0.8 else []
    steps.append({"source": "user", "message": told(random)})
    for _ in range(random.randint(1, 6)):
        begun += random.choice((0, 1, 400))
        times = {"start_timestamp": begun, "end_timestamp": begun + random.choice((0, 2, 30))}
        tokens = random.choice((0, 1, 50, 2_000, 100_000))
        metrics = {"prompt_tokens": tokens, "cached_tokens": tokens // 2, "completion_tokens": random.randint(0, 9)}
        ours = {
            "without_texts": random.random() < lacks["prompt"] or None,
            "agent": random.choice(("searcher", None)) if random.random() < lacks["agent"] else None,
            "error": "refused" if random.random() < 0.1 else None,
        }
        step: dict[str, Any] = {"source": "agent", "message": random.choice(("", told(random)))}
        step["extra"] = {"rewoo_bench": {name: value for name, value in ours.items() if value}}
        step["extra"] |= {} if random.random() < lacks["time"] else {"invocation": times}
        step |= {} if random.random() < lacks["usage"] else {"metrics": metrics}
        step |= {} if random.random() < lacks["model"] else {"model_name": random.choice(("gpt-4o", "gpt-5-mini"))}
        if random.random() < 0.6:
            step["tool_calls"] = [{"tool_call_id": "c", "function_name": "find", "arguments": {"q": told(random)}}]
            step["observation"] = {"results": [{"source_call_id": "c", "content": told(random)}]}
        steps.append(step)
        steps += [{"source": "user", "message": told(random)}] if random.random() < 0.4 else []
    facts = {"task": f"task {task // 2}", "trial": task % 2, "solved": random.random() < 0.5}
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "bot"}, "steps": steps, "extra": {"rewoo_bench": facts}}


def imported(file: Path, records: list[Any], **choices: Any) -> Imported:
    file.write_text(json.dumps(records) if file.suffix == ".json" else "\n".join(map(json.dumps, records)))
    done = anyio.run(partial(import_run, [file], file.parent / "run", ImportChoices(**choices)))
    assert done.faults == []
    return done


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(12))
def test_a_run_of_generated_conversations_can_be_judged(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    system = told(random)
    records = [trajectory(random, task, system) for task in range(10)]
    done = imported(tmp_path / "traces.jsonl", records)
    assert done.rows == 10
    assert open_baseline(done.folder).questions["bot"]
    assert check_run(done.folder, baseline=done.folder).code == 0


def test_tau_bench_can_be_judged(real_data: RealData, tmp_path: Path) -> None:
    path = real_data(TAU_BENCH)
    done = imported(tmp_path / "tau.json", json.loads(path.read_text())[:20], model="gpt-4o")
    assert check_run(done.folder, baseline=done.folder).code == 0
