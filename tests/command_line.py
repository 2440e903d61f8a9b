"""A command line as `ragtrace` parses it, without running it."""

from __future__ import annotations

from typing import Any

from ragtrace.cli.main import build_app


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the parameters of a command; an error of usage is raised."""
    command: Any = build_app(words[0])
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    return dict(command.make_context(words[0], rest).params)
