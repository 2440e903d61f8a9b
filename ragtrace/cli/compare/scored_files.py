"""Reads scored files for a comparison."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.io.jsonl_reader import MOST_SHOWN, open_lines, parsed, read_each
from ragtrace.cli.io.say import say
from ragtrace.errors import InputError
from ragtrace.scoring.offline.comparison import Arm
from ragtrace.scoring.offline.scored_row import ScoredRow, scored_row

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_arms(files: Sequence[str]) -> list[Arm]:
    """Return the files' good lines; broken ones are told on standard error and counted.

    Raises:
        ConfigError: a file cannot be opened.
        InputError: no line of a file is good; it names the first one.
    """
    return [_arm(file, name) for file, name in zip(files, short_names(files), strict=True)]


def short_names(files: Sequence[str]) -> list[str]:
    """Return the files' names without folders, as far as they stay different from one another.

    Example:
        >>> short_names(["runs/a.jsonl", "b.jsonl"]), short_names(["old/a.jsonl", "new/a.jsonl"])
        (['a.jsonl', 'b.jsonl'], ['old/a.jsonl', 'new/a.jsonl'])
    """
    names = [Path(file).name or file for file in files]
    return names if len(set(names)) == len(set(files)) else list(files)


def _arm(file: str, name: str) -> Arm:
    broken: list[str] = []
    with open_lines(file) as stream:
        rows: list[ScoredRow] = list(
            read_each(stream, file, broken.append, lambda raw, n: scored_row(parsed(raw), n))
        )
    if not rows:
        raise InputError(
            broken[0] if broken else f"{file}:1: the file is empty; give one that `ragtrace score` wrote"
        )
    for line in broken[:MOST_SHOWN]:
        say(line, file=sys.stderr)
    if len(broken) > MOST_SHOWN:
        say(f"{file}: {len(broken) - MOST_SHOWN} more broken lines", file=sys.stderr)
    return Arm(name, rows, len(broken))
