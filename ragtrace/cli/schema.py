"""``ragtrace schema``: the JSON Schema of a record line."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ragtrace.cli.io.say import say


def add_parser(commands: Any) -> None:
    """Add the command."""
    commands.add_parser("schema", help="print the JSON Schema of one line that `ragtrace score` reads")


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    from ragtrace.model.schema import SCHEMA

    del args
    say(json.dumps(SCHEMA, indent=2))
    return 0
