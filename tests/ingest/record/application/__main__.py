"""Asks the help centre its questions under one instrumentation: ``python application FRAMEWORK INSTRUMENTATION``.

It runs in the environment of that instrumentation and imports nothing of this repository but `ragtrace`, where that is
the instrumentation.
"""

from __future__ import annotations

import importlib
import sys

import instruments
import shop


def main(framework: str, instrumentation: str) -> None:
    flush = instruments.install(instrumentation)
    application = importlib.import_module(f"{framework}_app")
    for question in shop.QUESTIONS:
        sys.stdout.write(application.ask(question.text) + "\n")
        flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
