"""How much longer a command takes beside other processes that spin: `python scripts/measure_busy.py`.

Runs the README's first command idle and beside busy processes, in turn, and prints the ratio of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [sys.executable, str(Path(__file__).with_name("run_bench.py")), "--arch", "rewoo,react", "--no-progress"]


def seconds(questions: int, folder: Path) -> float:
    """Wall time of one run."""
    start = time.monotonic()
    subprocess.run([*COMMAND, "-n", str(questions), "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=5, help="questions of a run")
    parser.add_argument("--processes", type=int, default=4, help="processes that spin")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind")
    args = parser.parse_args()
    idle, busy = [], []
    with tempfile.TemporaryDirectory() as folder:
        seconds(1, Path(folder, "first"))  # fetches the model
        for turn in range(args.rounds):
            idle.append(seconds(args.questions, Path(folder, f"idle-{turn}")))
            spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.processes)]
            try:
                busy.append(seconds(args.questions, Path(folder, f"busy-{turn}")))
            finally:
                for process in spinning:
                    process.kill()
                    process.wait()
            print(f"idle {idle[-1]:.1f} s, beside {args.processes} spinning processes {busy[-1]:.1f} s", flush=True)
    print(f"{statistics.median(busy) / statistics.median(idle):.2f} times as long (medians, n = {args.rounds})")


if __name__ == "__main__":
    main()
