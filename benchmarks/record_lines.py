"""What it costs to read a line of a record file: 50 passages of 800 characters, with ids and without.

``python -m benchmarks.record_lines --against COMMIT`` reads the same lines with an earlier commit, in turns.
Figures are CPU time, medians with quartiles, and the ratio is taken within each turn. A passage without an id is
named by a hash of its text. What 50 hashes cost by themselves is printed too: no reader of such a line is faster.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.overhead.environments import ROOT, Unavailable, checked_out, python_path
from benchmarks.overhead.rounds import quartiles
from benchmarks.overhead.texts import ANSWER, passages, question

ROUNDS, READS = 40, 50


def line(*, has_ids: bool) -> bytes:
    contexts = [{"id": one, "text": text, "score": score} for one, text, score in passages()]
    if not has_ids:
        contexts = [{name: value for name, value in one.items() if name != "id"} for one in contexts]
    return json.dumps({"query": question(1), "answer": ANSWER, "contexts": contexts}).encode()


def read_in_turns() -> None:
    """Read all kinds of lines for each line of stdin, with the ragtrace that is on the path."""
    from ragtrace.model import codec

    parsed: Callable[[bytes], object] = getattr(codec, "json_value", json.loads)  # as the commit's own readers do
    texts = [text.encode() for _, text, _ in passages()]
    lines = {"with ids": line(has_ids=True), "without ids": line(has_ids=False)}
    for _ in sys.stdin:
        taken = {
            name: cpu_us(lambda raw=raw: codec.record_from_json(parsed(raw), fallback_id="1"))
            for name, raw in lines.items()
        }
        taken["50 hashes"] = cpu_us(lambda: [hashlib.sha256(text).hexdigest() for text in texts])
        print(json.dumps(taken), flush=True)


def cpu_us(call: Callable[[], object]) -> float:
    began = time.process_time_ns()
    for _ in range(READS):
        call()
    return (time.process_time_ns() - began) / READS / 1e3


def started(source: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.record_lines", "--reader"]
    environment = {**os.environ, "PYTHONPATH": python_path(source)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=source, env=environment, text=True
    )


def asked(reader: subprocess.Popen[str]) -> dict[str, float]:
    assert reader.stdin is not None
    assert reader.stdout is not None
    print(file=reader.stdin, flush=True)
    found: dict[str, float] = json.loads(reader.stdout.readline())
    return found


def shown(values: list[float], digits: int = 0) -> str:
    low, middle, high = quartiles(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_lines")
    parser.add_argument("--against", metavar="COMMIT", help="read the same lines with an earlier commit, in turns")
    parser.add_argument("--reader", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        read_in_turns()
        return 0
    try:
        sources = {"now": ROOT, **({"before": checked_out(options.against)} if options.against else {})}
    except Unavailable as error:
        print(f"--against: {error}", file=sys.stderr)
        return 2
    readers = {name: started(source) for name, source in sources.items()}
    rounds = [{name: asked(reader) for name, reader in readers.items()} for _ in range(ROUNDS + 2)][2:]
    for reader in readers.values():
        reader.communicate()
    for kind in rounds[0]["now"]:
        us = {name: [one[name][kind] for one in rounds] for name in readers}
        said = ", ".join(f"{name} {shown(values)} us" for name, values in us.items())
        ratio = [before / now for before, now in zip(us.get("before", ()), us["now"], strict=False)]
        print(f"{kind}: {said}{f', {shown(ratio, 2)} times as fast' if ratio else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
