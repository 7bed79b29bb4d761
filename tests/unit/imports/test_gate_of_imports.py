"""A run that was imported just now passes the gate's checks of its own tables, whatever its traces lack."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from langfuse_traces import asks, langfuse_trace, observation
from real_data import TAU_BENCH, RealData

from rewoo_bench.gate.check import check_run, open_baseline
from rewoo_bench.imports.formats import Fields
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


def trajectory(random: Random, number: int, system: str) -> dict[str, Any]:
    """A trace of Langfuse. Prompts, tokens, times and the models' names are there or missing, call by call."""
    lacks = {name: random.choice((0.0, 0.0, 0.4, 1.0)) for name in ("prompt", "usage", "time", "model", "agent")}
    begun = 1_700_000_000 + random.randint(0, 2_000)
    of = {"task": f"task {number // 2}"}
    observations = [
        observation("AGENT", None, id=f"main {number}", name="bot", **of),
        observation("AGENT", None, id=f"other {number}", name="searcher", parentObservationId=f"main {number}"),
    ]
    prompt: list[dict[str, Any]] = [{"role": "system", "content": system}] if random.random() < 0.8 else []
    prompt.append({"role": "user", "content": told(random)})
    for left in reversed(range(random.randint(1, 6))):
        begun += random.choice((0, 1, 400))
        times = (begun, begun + random.choice((0, 2, 30)))
        tokens = random.choice((0, 1, 50, 2_000, 100_000))
        usage = {"promptTokens": tokens, "completionTokens": random.randint(0, 9), "cachedTokens": tokens // 2}
        said = random.choice(("", told(random))) if left else told(random)
        reply: dict[str, Any] = {"role": "assistant", "content": said}
        found = []
        if left and random.random() < 0.6:
            reply = asks("find", json.dumps({"q": told(random)}))
            found = [{"role": "tool", "tool_call_id": "a", "content": told(random)}]
        around = "other" if random.random() < lacks["agent"] / 2 else "main"
        facts: dict[str, Any] = {"output": reply, "parentObservationId": f"{around} {number}"}
        facts |= {} if random.random() < lacks["prompt"] else {"input": prompt}
        facts |= {} if random.random() < lacks["usage"] else {"usageDetails": usage}
        facts |= {} if random.random() < lacks["model"] else {"model": random.choice(("gpt-4o", "gpt-5-mini"))}
        facts |= {"level": "ERROR", "statusMessage": "refused"} if random.random() < 0.1 else {}
        observations.append(observation("GENERATION", None if random.random() < lacks["time"] else times, **facts))
        prompt = [*prompt, reply, *found]
        prompt += [{"role": "user", "content": told(random)}] if random.random() < 0.4 else []
    return langfuse_trace(f"trace {number}", observations, solved=random.random() < 0.5)


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
    records = [trajectory(random, number, system) for number in range(10)]
    done = imported(tmp_path / "traces.jsonl", records, fields=Fields(task="task"))
    assert done.rows == 10
    assert open_baseline(done.folder).questions["bot"]
    assert check_run(done.folder, baseline=done.folder).code == 0


def test_tau_bench_can_be_judged(real_data: RealData, tmp_path: Path) -> None:
    path = real_data(TAU_BENCH)
    done = imported(tmp_path / "tau.json", json.loads(path.read_text())[:20], model="gpt-4o")
    assert check_run(done.folder, baseline=done.folder).code == 0
