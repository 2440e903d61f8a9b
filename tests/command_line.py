"""A command line as `ragtrace` parses it, or as it runs in this process."""

from __future__ import annotations

import io
import os
import sys
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

from ragtrace.cli import build_app, main


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the parameters of a command; an error of usage is raised."""
    command: Any = build_app(words[0])
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    return dict(command.make_context(words[0], rest).params)


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without settings of ragtrace, OpenTelemetry and OpenAI."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAGTRACE_", "OTEL_", "OPENAI_"))}
    return {**kept, **more}


def ran(*args: object, stdin: bytes = b"", **env: str) -> CompletedProcess[bytes]:
    """Run a command in this process, with streams and an environment of its own."""
    given, out, err = (io.BytesIO(text) for text in (stdin, b"", b""))
    with (
        patch.object(sys, "stdin", io.TextIOWrapper(given, encoding="utf-8")),
        patch.object(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8")),
        patch.object(sys, "stderr", io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace")),
        patch.dict(os.environ, environment(**env), clear=True),
    ):
        status = main([str(arg) for arg in args])
        sys.stdout.flush()
        sys.stderr.flush()
        return CompletedProcess(args, status, out.getvalue(), err.getvalue())
