"""Comments on the pull request of a GitHub workflow, or replaces the comment that an earlier job wrote.

    rewoo-bench gate RUN --budgets budgets.toml --markdown gate.md
    GITHUB_TOKEN=… python scripts/pull_request_comment.py gate.md [NAME]

GitHub sets the other variables. `NAME` tells apart the comments of several jobs. action.yml has it as a step.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import httpx

from rewoo_bench.system.output import echo

LONGEST = 65_000
"""Characters of a comment; GitHub takes 65,536."""
PAGE = 100


def comment_text(text: str, name: str, commit: str) -> str:
    """The comment: a line that finds it again, the text, and where it comes from."""
    env = os.environ
    log = f"{env['GITHUB_SERVER_URL']}/{env['GITHUB_REPOSITORY']}/actions/runs/{env['GITHUB_RUN_ID']}"
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition("\n\n")[0] + "\n\n</details>\n\nThe job's summary has the rest."
    source = f"{name}, commit" if name else "Commit"
    return f"{marker(name)}\n{text}\n\n{source} {commit[:7]}, [log]({log})\n"


def marker(name: str) -> str:
    """The first line of the comment, which no page shows."""
    return f"<!-- rewoo-bench gate {name} -->"


def write_comment(client: httpx.Client, pull_request: int, name: str, text: str) -> str:
    """Updates the comment of this name, or creates it. Returns which of the two it did.

    Only a bot's comment is updated: what a person wrote below the same first line stays theirs.
    """
    every, page = f"issues/{pull_request}/comments", 1
    while found := _asked(client, "GET", f"{every}?per_page={PAGE}&page={page}"):
        for comment in found:
            if comment["user"]["type"] == "Bot" and str(comment["body"]).startswith(marker(name)):
                _asked(client, "PATCH", f"issues/comments/{int(comment['id'])}", body=text)
                return "updated"
        page += 1
    _asked(client, "POST", every, body=text)
    return "created"


def _asked(client: httpx.Client, method: str, path: str, **document: str) -> Any:
    answer = client.request(method, path, json=document or None)
    answer.raise_for_status()
    return answer.json()


def main(file: str, name: str = "") -> int:
    env = os.environ
    event = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if "pull_request" not in event:
        echo("no comment: the workflow doesn't run for a pull request")
        return 0
    name = re.sub(r"[^\w ]+", " ", name).strip()  # it stands in Markdown and HTML
    text = comment_text(Path(file).read_text(encoding="utf-8"), name, event["pull_request"]["head"]["sha"])
    headers = {"authorization": f"Bearer {env['GITHUB_TOKEN']}", "accept": "application/vnd.github+json"}
    address = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/"
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=30) as client:
            done = write_comment(client, event["pull_request"]["number"], name, text)
    except httpx.HTTPError as error:
        echo(f"no comment: {error}", err=True)
        return 1
    echo(f"{done} the comment on pull request {event['pull_request']['number']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
