"""What our imports add to a process that has the framework already: CPU time and modules.

Each figure is the median over fresh processes, with bytecode written. CPU time is read, since another program on
the machine would lengthen the wall clock. ``python -m benchmarks.imports --against COMMIT`` takes turns with an
earlier commit. The bound of the issue: at most 50 ms above langchain-core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.overhead.environments import ROOT, Unavailable, checked_out, python_path
from benchmarks.overhead.rounds import quartiles

ROUNDS = 11
FRAMEWORKS = {
    "ragtrace": "sys",
    "ragtrace.capture": "sys",
    "ragtrace_langchain": (
        "langchain_core.language_models.chat_models, langchain_core.retrievers, langchain_core.prompts.chat"
    ),
    "ragtrace_llamaindex": "llama_index.core.schema, llama_index.core.instrumentation",
}
CODE = """import {0}, sys, time
had, began = len(sys.modules), time.process_time()
import {1}
print(time.process_time() - began, len(sys.modules) - had)"""


def imported(before: str, name: str, source: Path) -> tuple[float, int]:
    """Return CPU time in milliseconds and modules of an import in a process that has imported the rest."""
    environment = {**os.environ, "PYTHONPATH": python_path(source)}
    command = [sys.executable, "-c", CODE.format(before, name)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=source, env=environment)
    took, modules = run.stdout.split()
    return 1_000 * float(took), int(modules)


def main() -> int:
    """Print a line for each package."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports")
    parser.add_argument("--against", metavar="COMMIT", help="import an earlier commit too, in turns")
    options = parser.parse_args()
    try:
        sources = {"now": ROOT, **({"before": checked_out(options.against)} if options.against else {})}
    except Unavailable as error:
        print(f"--against: {error}", file=sys.stderr)
        return 2
    for name, framework in FRAMEWORKS.items():
        rounds = [{side: imported(framework, name, source) for side, source in sources.items()}]  # writes bytecode
        rounds += [
            {side: imported(framework, name, source) for side, source in sources.items()} for _ in range(ROUNDS)
        ]
        said = []
        for side in sources:
            low, middle, high = quartiles([one[side][0] for one in rounds[1:]])
            said.append(f"{side} {middle:.1f} ({low:.1f} to {high:.1f}) ms, {rounds[1][side][1]} modules")
        print(f"import {name}: {'; '.join(said)} (median of {ROUNDS} processes, and quartiles)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
