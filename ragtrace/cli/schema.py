"""``ragtrace schema``: the JSON Schema of a record line."""

from __future__ import annotations

import json

from ragtrace.cli.io.say import say

HELP = "Print the JSON Schema of one line that `ragtrace score` reads."


def command() -> int:
    """Print the schema."""
    from ragtrace.model.schema import SCHEMA

    say(json.dumps(SCHEMA, indent=2))
    return 0
