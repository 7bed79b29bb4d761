"""Takes the README's picture: a question of a run's page, in a real browser.

python scripts/report_picture.py RUN QUESTION --out results/report-question.png

Needs playwright and chromium. The README has question sample-047 of a run of rewoo and react on Qwen2.5-Coder-1.5B.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rewoo_bench.report.write import write_page


def main(arguments: Sequence[str] | None = None) -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("question")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder, sync_playwright() as browsers:
        page = Path(folder) / "report.html"
        write_page([options.run], page, figures=False)
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": 1200, "height": 840})
        window.goto(f"{page.as_uri()}#q={quote(options.question)}")
        window.wait_for_selector(".trajectories")
        window.screenshot(path=options.out)
        browser.close()
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
