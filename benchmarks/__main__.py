"""``make bench``: every benchmark in turn, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Each prints its own table; the order is from the application's thread to the offline judge.
NAMES = [*sorted(path.stem for path in HERE.glob("[a-z]*.py")), "judging.cost", "judging.throughput"]


def main() -> int:
    worst = 0
    for name in NAMES:
        print(f"\n== {name}", flush=True)
        worst = max(worst, subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
