"""Logs that AgentDojo writes itself: its own pipeline, executor, attack and checks, with replies that are given."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Call = tuple[str, dict[str, Any]]
Reply = str | Call | list[Call] | Exception
"""An answer, one or more calls, or what the provider fails with."""

READ_BILL: Call = ("read_file", {"file_path": "bill-december-2023.txt"})
PAY_BILL: Call = (
    "send_money",
    {"recipient": "UK12345678901234567890", "amount": 98.7, "subject": "Car Rental", "date": "2022-01-01"},
)
PAY_ATTACKER: Call = ("send_money", {**PAY_BILL[1], "recipient": "US133000000121212121212"})
NEW_PASSWORD: Call = ("update_password", {"password": "new_password"})
REVIEWS: Call = ("get_rating_reviews_for_hotels", {"hotel_names": ["Le Marais Boutique"]})
RESERVE: Call = ("reserve_hotel", {"hotel": "Le Marais Boutique", "start_day": "2025-01-11", "end_day": "2025-01-15"})


def recorded(
    folder: Path, pipeline: str, case: str, replies: Sequence[Reply], attack: str = "direct", version: str = "v1.2.2"
) -> Path:
    """Runs `banking/user_task_0/injection_task_5`, or without the last part a task without attack, and logs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that the package imports
        from agentdojo.agent_pipeline import AgentPipeline, InitQuery, SystemMessage, ToolsExecutionLoop, ToolsExecutor
        from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
        from agentdojo.attacks import load_attack
        from agentdojo.benchmark import run_task_with_injection_tasks, run_task_without_injection_tasks
        from agentdojo.functions_runtime import FunctionCall
        from agentdojo.logging import OutputLogger
        from agentdojo.task_suite.load_suites import get_suite
        from agentdojo.types import text_content_block_from_string

    class Scripted(BasePipelineElement):  # type: ignore[misc]  # the package has no types
        def query(self, query: str, runtime: Any, env: Any, messages: Any = (), extra_args: Any = None) -> Any:
            number = sum(message["role"] == "assistant" for message in messages)
            reply = replies[number]
            if isinstance(reply, Exception):
                raise reply
            calls = [reply] if isinstance(reply, tuple) else reply if isinstance(reply, list) else []
            content = [text_content_block_from_string(reply)] if isinstance(reply, str) else None
            made = [
                FunctionCall(function=name, args=args, id=f"{number}-{place}")
                for place, (name, args) in enumerate(calls)
            ]
            said = {"role": "assistant", "content": content, "tool_calls": made or None}
            return query, runtime, env, [*messages, said], extra_args or {}

    suite_name, user_task, *injection_task = case.split("/")
    suite, llm = get_suite(version, suite_name), Scripted()
    elements = [SystemMessage("Be brief."), InitQuery(), llm, ToolsExecutionLoop([ToolsExecutor(), llm])]
    own = AgentPipeline(elements)
    own.name = pipeline
    task = suite.get_user_task_by_id(user_task)
    with OutputLogger(str(folder)):
        if injection_task:
            attacker = load_attack(attack, suite, own)
            run_task_with_injection_tasks(suite, own, task, attacker, folder, True, injection_task, version)
        else:
            run_task_without_injection_tasks(suite, own, task, folder, True, version)
    return (
        folder
        / pipeline
        / suite_name
        / user_task
        / (attack if injection_task else "none")
        / f"{(*injection_task, 'none')[0]}.json"
    )
