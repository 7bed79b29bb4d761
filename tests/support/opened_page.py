"""A report opened in a real browser from its file, with the network off."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Opened:
    """A page with the network off; what its console said is in `console`."""

    def __init__(self, browser: Any, path: Path, fragment: str = "", **settings: Any) -> None:
        self.context = browser.new_context(offline=True, **settings)
        self.page = self.context.new_page()
        self.console: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"file://{path}{fragment}")
        self.page.wait_for_selector("body[data-page=ready]")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def question(self) -> Any:
        self.page.wait_for_selector(".trajectories")
        return self.page


def unfold(page: Any) -> None:
    """Opens everything that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
