"""``ragtrace``: finds the command, runs it, and turns errors into one line and an exit status."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace._version import __version__
from ragtrace.cli.io.parser import Parser
from ragtrace.cli.io.say import escape_log, say
from ragtrace.errors import ConfigError, InputError, MissingExtra, nearest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

COMMANDS: dict[str, str] = {
    "score": "ragtrace.cli.score",
    "worst": "ragtrace.cli.worst",
    "show": "ragtrace.cli.show",
    "compare": "ragtrace.cli.compare.command",
    "calibrate": "ragtrace.cli.calibrate.command",
    "demo": "ragtrace.cli.demo",
    "worker": "ragtrace.cli.worker",
    "doctor": "ragtrace.cli.doctor.command",
    "export": "ragtrace.cli.export",
    "feedback": "ragtrace.cli.feedback",
    "rescore": "ragtrace.cli.rescore",
    "forget": "ragtrace.cli.forget",
    "baseline": "ragtrace.cli.baseline",
    "dashboards": "ragtrace.cli.dashboards",
    "metrics": "ragtrace.cli.metrics",
    "schema": "ragtrace.cli.schema",
    "settings": "ragtrace.cli.settings",
    "version": "ragtrace.cli.version",
}


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the command that was asked for is imported, all of them for ``--help``."""
    parser = Parser(prog="ragtrace", description="Traces RAG applications and scores them.")
    parser.add_argument("--version", action="version", version=f"ragtrace {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    wanted = [command] if command in COMMANDS else list(COMMANDS)
    for name in wanted:
        importlib.import_module(COMMANDS[str(name)]).add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _open_missing_streams()
    logging.getLogger("ragtrace").addFilter(escape_log)
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: an odd id or path ends no command
    args = list(sys.argv[1:] if argv is None else argv)
    command = next((arg for arg in args if not arg.startswith("-")), None)
    if command is not None and command not in COMMANDS and not args[0].startswith("-"):
        return _complain(f"unknown command {command!r}{nearest(command, COMMANDS)}")
    try:
        parser = build_parser(command)
        parsed = parser.parse_args(args)
        if parsed.command is None:
            parser.print_help()
            return 2
        status: int = importlib.import_module(COMMANDS[parsed.command]).run(parsed)
        sys.stdout.flush()  # here, where a reader that has gone is still caught
    except (ConfigError, InputError, MissingExtra) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read us (head, less) has gone: close quietly, as a filter does.
        _leave_stdout()
        return 141
    except OSError as error:  # a name that the system does not take, a disk that is full behind standard output
        _leave_stdout()
        return _complain(": ".join(str(said) for said in (error.filename, error.strerror or error) if said))
    return status


def _open_missing_streams() -> None:
    """Take a standard stream that was closed before we began for an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for good


def _leave_stdout() -> None:
    """Write what standard output still holds; where that cannot be done, the interpreter need not try again."""
    from ragtrace.cli.io.jsonl_writer import abandon_stdout

    try:
        sys.stdout.flush()
    except OSError:
        abandon_stdout()


def _complain(line: str) -> int:
    try:
        say(f"ragtrace: {line}", file=sys.stderr, flush=True)
    except OSError:  # nobody can be told; the interpreter's last flush would change the status
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return 2


if __name__ == "__main__":
    sys.exit(main())
