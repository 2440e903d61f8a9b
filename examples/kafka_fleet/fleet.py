"""A fleet on one machine: three application processes write runs to Kafka, and two workers score them.

Run it: ``python fleet.py --brokers localhost:9092``. Add ``--model gpt-4o-mini [--base-url URL]`` for a real model.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REGIONS = ("eu", "us", "asia")
RAGTRACE = (sys.executable, "-m", "ragtrace")
Process = subprocess.Popen[str]


def start(*command: object, **more: str) -> Process:
    """Start a process; without a collector, no spans and metrics are sent."""
    none = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    environ = {**none, **os.environ, **more}
    return subprocess.Popen([str(part) for part in command], env=environ, text=True, stderr=subprocess.PIPE)


def wait(name: str, process: Process) -> None:
    """Wait for a process, and print the last line that it wrote."""
    _, said = process.communicate(timeout=120)
    print(name, *said.strip().splitlines()[-1:], flush=True)
    if process.returncode:
        sys.exit(f"{name} failed with status {process.returncode}: {said}")


def main() -> None:
    """Run the fleet until every answer is scored, and show the worst one in the first worker's store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", required=True, help="HOST:PORT[,...] of a Kafka")
    parser.add_argument("--topic", default="ragtrace_units")
    parser.add_argument("--judge", default="overlap", help="overlap (offline), or openai:MODEL")
    args, of_the_apps = parser.parse_known_args()
    queue = {"RAGTRACE_QUEUE": f"kafka://{args.brokers}/{args.topic}?partitions=6", "RAGTRACE_CONTENT": "full"}

    def worker(number: int, *options: str) -> Process:
        store = f"worker-{number}.sqlite"  # a file of its own, as each host has
        return start(*RAGTRACE, "worker", "--judge", args.judge, *options, RAGTRACE_STORE=store, **queue)

    workers = [worker(1), worker(2)]  # of one consumer group; they share the topic's partitions
    apps = {region: start(sys.executable, HERE / "app.py", region, *of_the_apps, **queue) for region in REGIONS}
    for region, app in apps.items():
        wait(region, app)
    wait("worker 3", worker(3, "--once"))  # joins the group, and ends when every unit has its score
    for number, process in enumerate(workers, start=1):
        process.terminate()
        wait(f"worker {number}", process)
    subprocess.run([*RAGTRACE, "worst", "worker-1.sqlite", "-n", "1"], check=True)


if __name__ == "__main__":
    main()
