"""What our imports add to a process that has the framework already, as CPU time beside the framework's own.

Each figure is the median over fresh processes, with bytecode written. CPU time is read, since another program on
the machine would lengthen the wall clock. The bound of the issue: at most 50 ms above langchain-core.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS = 11
FRAMEWORKS = {
    "ragtrace": "sys",
    "ragtrace_langchain": (
        "langchain_core.language_models.chat_models, langchain_core.retrievers, langchain_core.prompts.chat"
    ),
    "ragtrace_llamaindex": "llama_index.core.schema, llama_index.core.instrumentation",
}


def cpu_ms(before: str, imported: str) -> float:
    """Return the median CPU time of an import in processes that have imported the rest, in milliseconds."""
    code = f"import {before}, time\na = time.process_time()\nimport {imported}\nprint(time.process_time() - a)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(ROUNDS)]
    return 1_000 * statistics.median(float(it.stdout) for it in runs)


def main() -> None:
    """Print a line for each package."""
    for ours, framework in FRAMEWORKS.items():
        added, own = cpu_ms(framework, ours), cpu_ms("sys", framework)
        ratio = f", {added / own:.0%} of the framework's {own:.0f} ms" if own > 1 else ""
        print(f"import {ours}: {added:.1f} ms{ratio} (median of {ROUNDS} processes)")


if __name__ == "__main__":
    main()
