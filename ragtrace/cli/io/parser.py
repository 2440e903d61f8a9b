"""An argument parser whose errors are one line with the nearest valid name."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, NoReturn

from ragtrace.cli.io.say import say
from ragtrace.errors import nearest


class Parser(argparse.ArgumentParser):
    """Says in one line what was wrong and what to do, and exits with 2; no flag may be cut short.

    The parsers of its sub-commands are of this kind too.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **arguments})

    def error(self, message: str) -> NoReturn:
        """Print one line and exit."""
        say(f"ragtrace: {self._clear(message)}", file=sys.stderr)
        sys.exit(2)

    def _clear(self, message: str) -> str:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            name = unknown[1].split("=")[0]
            flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
            hint = nearest(name, flags) if name.startswith("-") else ""
            return f"unknown argument {name!r}{hint}"
        choice = re.match(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            where, word, listed = choice.groups()
            said = f"{where}: unknown" if where.startswith("-") else f"unknown {where.lower()}"
            names = [name.strip(" '") for name in listed.split(",")]
            return f"{said} {word!r}{nearest(word, names)}"
        return f"{message}; see {self.prog} --help"

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
        """Refuse what a sub-command does not know here, where its own flags are known."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest
