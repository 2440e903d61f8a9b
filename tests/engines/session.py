"""Runs the command and then an example in one process, so that an engine is imported, and a JVM begun, once."""

from __future__ import annotations

import runpy
import sys

from ragtrace.cli import main

if __name__ == "__main__":  # Dask's workers import this file
    example, *arguments = sys.argv[1:]
    print("status", main(arguments), flush=True)  # noqa: T201
    sys.argv = [example]
    runpy.run_path(example, run_name="__main__")
