"""Runs a command of ``ragtrace``, and turns errors into a line and a status."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from ragtrace._version import __version__
from ragtrace.cli.io.say import escape_log, say
from ragtrace.errors import ConfigError, InputError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer.core import TyperGroup

# Headings of `ragtrace --help`. A command is `command` of the module of its name, or a function of `listings`.
GROUPS: dict[str, tuple[str, ...]] = {
    "Score files": ("score", "ui", "report", "worst", "show", "investigate", "compare", "calibrate"),
    "Run": ("demo", "serve", "worker", "mcp", "doctor", "replay"),
    "Work with a store": ("export", "feedback", "rescore", "forget", "baseline", "anchors"),
    "Look up": ("metrics", "settings", "schema", "version", "dashboards"),
}
COMMANDS = {name: heading for heading, names in GROUPS.items() for name in names}
_MODULES = {
    **{name: f"{name}.command" for name in ("calibrate", "compare", "doctor", "score")},
    **{name: f"store.{name}" for name in GROUPS["Work with a store"]},
    **dict.fromkeys(("metrics", "settings", "schema", "version"), "listings"),
}
# What to write instead of a command, an option or a value that is gone, by the beginning of typer's message.
_GONE = {
    "No such command 'plan'": (
        "begin with RAGTRACE_FIRST_JUDGE=overlap RAGTRACE_JUDGE_RATES=0=0.40,0.8=0.15,none=0.40"
    ),
    "No such option: --unfused": "leave it out; RAGTRACE_METRIC_OPTIONS_GRADE_BATCH=1 grades one passage a call",
    "No such option: --gate-pairs": "leave it out; RAGTRACE_METRIC_OPTIONS_GRADE_BATCH=1 grades one passage a call",
    "No such option: --no-length-check": "leave it out: no line is judged again",
    "Invalid value for '--format': 'parquet'": "write jsonl, and Parquet from it: docs/how-to/store.md",
}
EPILOG = """\
Examples:

- `ragtrace demo` shows a real chain, scored live
- `ragtrace score answers.jsonl --out scored.jsonl`, then `ragtrace worst scored.jsonl`
- `ragtrace COMMAND --help` describes one command
"""


def build_app(chosen: str | None) -> TyperGroup:
    """Build the application with one command, or all for ``--help``."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode="markdown",
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        module = importlib.import_module(f"ragtrace.cli.{_MODULES.get(name, name)}")
        command = getattr(module, "command", None) or getattr(module, name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=COMMANDS[name])
        else:
            epilog = getattr(module, "EPILOG", None)
            app.command(name, epilog=epilog, rich_help_panel=COMMANDS[name])(command)
    group: TyperGroup = get_command(app)  # type: ignore[assignment] # it has a callback
    return group


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 - typer calls it
    if is_asked:
        say(f"ragtrace {__version__}")
        raise typer.Exit


def _options(
    *,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Trace RAG applications and score their answers."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _open_missing_streams()
    logging.getLogger("ragtrace").addFilter(escape_log)
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: an odd id or path ends no command
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(args)
        sys.stdout.flush()  # here, where a reader that has gone is still caught
    except typer.TyperException as error:
        return _complain(_usage(error))
    except (ConfigError, InputError, MissingExtra) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        say("ragtrace: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has gone: close quietly, as a filter does.
        _leave_stdout()
        return 141
    except OSError as error:  # a name that the system does not take, a disk that is full behind standard output
        _leave_stdout()
        return _complain(": ".join(str(said) for said in (error.filename, error.strerror or error) if said))
    return status


def _run(args: list[str]) -> int:
    default = "version" if args[:1] == ["--version"] else None  # which needs no other command
    group = build_app(next((arg for arg in args if not arg.startswith("-")), default))
    try:
        with group.make_context("ragtrace", [*args] or ["--help"]) as context:  # a copy: typer empties it
            status: int = group.invoke(context)
    except typer.Exit as exit_:
        return exit_.exit_code if args else 2
    return status


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    line = error.format_message().replace("Value error, ", "").rstrip(".")
    for beginning, instead in _GONE.items():
        if line.startswith(beginning):
            return f"{beginning}; {instead}"
    return f"{line}; see {context.command_path} --help" if context is not None else line


def _open_missing_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for good


def _leave_stdout() -> None:
    """Flush standard output; after a failure the interpreter tries no more."""
    from ragtrace.cli.io.jsonl_writer import abandon_stdout

    try:
        sys.stdout.flush()
    except OSError:
        abandon_stdout()


def _complain(line: str) -> int:
    try:
        say(f"ragtrace: {line}", file=sys.stderr, flush=True)
    except OSError:  # standard error is full; the interpreter's last flush would change the status
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return 2
