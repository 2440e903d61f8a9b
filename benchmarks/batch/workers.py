"""Rate of two workers of Ray over that of one, with a judge that takes 50 ms.

``python -m benchmarks.batch.workers`` after ``make build/engines/.ready``. The rate is that of the parts, without
the start of the engine. Calls under way are few enough that the judge's latency binds, and not the processors. The
outputs have to be the same bytes as those of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PART_ROWS = 500
ENVIRONMENT = {"OPENAI_API_KEY": "none", "RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}


def write_input(path: Path, rows: int, python: str) -> None:
    """Write records as JSON lines, and as Parquet with row groups of one part each."""
    with path.with_suffix(".jsonl").open("w", encoding="utf-8") as out:
        for i in range(rows):
            record = {
                "id": f"r{i}",
                "query": f"Where is lab {i}?",
                "answer": f"Lab {i} is in hall {i % 97}.",
                "contexts": [f"Lab {i} is in hall {i % 89}.", "The canteen opens at noon."],
            }
            out.write(f"{json.dumps(record)}\n")
    convert = (
        "import pyarrow.json as j, pyarrow.parquet as p, sys;"
        f"p.write_table(j.read_json(sys.argv[1]), sys.argv[2], row_group_size={PART_ROWS})"
    )
    subprocess.run([python, "-c", convert, path.with_suffix(".jsonl"), path], check=True)


def rate(python: str, path: Path, out: Path, port: str, jobs: int, *engine: str) -> float:
    """Score the file and return the rows a second that the command prints."""
    command = [
        python,
        "-m",
        "ragtrace",
        "score",
        path,
        "--out",
        out,
        "--metrics",
        "faithfulness",
        "--jobs",
        str(jobs),
    ]
    judge = ["--judge", "openai:m", "--base-url", f"http://127.0.0.1:{port}/v1"]
    done = subprocess.run(
        [*map(str, command), *judge, *engine],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"(\d+) rows/s", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{done.stdout}\n{done.stderr}")
    return float(found[-1])


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def measure(python: str, rows: int, jobs: int, *, engine: str = "ray", has_local: bool = True) -> dict[str, float]:
    """Return the rates of one and two workers, and of one process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write_input(path, rows, python)
        judge = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.batch.judge", "0.05"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            port = judge.stdout.readline().strip()
            runs = {f"{n} workers": (jobs, "--engine", engine, "--workers", str(n)) for n in (1, 2)}
            runs |= {"one process": (4 * jobs, "--engine", "local")} if has_local else {}
            found = {}
            for name, (at_once, *options) in runs.items():
                found[name] = rate(python, path, Path(folder) / name, port, at_once, *options)
                print(f"{name}: {found[name]:.0f} rows/s", flush=True)
            assert outputs(Path(folder) / "1 workers") == outputs(Path(folder) / "2 workers")
            if has_local:
                assert outputs(Path(folder) / "1 workers") == outputs(Path(folder) / "one process")
        finally:
            judge.communicate("")
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--python", default="build/engines/bin/python")
    arguments.add_argument("--rows", type=int, default=20_000)
    arguments.add_argument("--jobs", type=int, default=3)
    given = arguments.parse_args()
    found = measure(given.python, given.rows, given.jobs)
    ratio = found["2 workers"] / found["1 workers"]
    print(f"two workers over one: {ratio:.2f} over {given.rows} records; all outputs are the same bytes")
    return 0 if ratio >= 1.7 else 1


if __name__ == "__main__":
    sys.exit(main())
