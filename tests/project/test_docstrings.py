"""Ruff asks for docstrings where users import from (`per-file-ignores` in pyproject.toml), and nowhere else."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import ragtrace
import ragtrace_langchain
import ragtrace_llamaindex
from ragtrace.judges import Judge
from ragtrace.metrics import Metric
from ragtrace.queues import Queue
from ragtrace.sinks import Sink

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ragtrace, ragtrace_langchain, ragtrace_llamaindex)
IMPORTED = [getattr(package, name) for package in PACKAGES for name in package.__all__ if name != "__version__"]
FILES = {
    str(Path(inspect.getfile(inspect.unwrap(value))).relative_to(ROOT))
    for value in (*PACKAGES, *IMPORTED, Judge, Metric, Queue, Sink)
}
REST = {"ragtrace/cli/main.py", "ragtrace/scoring/worker.py"}


def test_a_docstring_is_asked_of_the_files_that_users_import_from(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in FILES | REST:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("class Name:\n    pass\n")
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json", "."]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    asked = {it["filename"] for it in json.loads(found.stdout) if it["code"] == "D101"}
    assert {str(Path(it).relative_to(tmp_path)) for it in asked} == FILES
