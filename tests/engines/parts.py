"""The environment that has Ray, Spark, Dask and an S3 API, and the command in it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from tests.environments import python_of

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = ("ray", "spark", "dask")


def engines_python() -> Path:
    return python_of("engines", "Ray, Spark and Dask")


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAGTRACE_", "OTEL_", "OPENAI_", "AWS_"))}
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}
    return {**kept, **quiet, **more}


def begin(*args: object, **env: str) -> subprocess.Popen[str]:
    """Begin a command in that environment, in a process group of its own."""
    return subprocess.Popen(
        [str(engines_python()), *map(str, args)],
        env=environment(**env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def ran(*args: object, status: int = 0, **env: str) -> tuple[str, str]:
    """Run a command there to its end; return what it prints."""
    process = begin(*args, **env)
    out, err = process.communicate(timeout=280)
    assert process.returncode == status, f"{out}\n{err}"[-3_000:]
    return " ".join(out.split()), err


def rows(number: int) -> list[dict[str, object]]:
    return [
        {
            "id": f"r{i}",
            "query": f"Where is lab {i}?",
            "answer": f"In hall {i % 7}.",
            "contexts": [f"Hall {i % 5}."],
        }
        for i in range(number)
    ]


def write_lines(path: Path, number: int) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(number)), encoding="utf-8")


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(("_", "."))}
