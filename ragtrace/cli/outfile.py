"""The file of scored lines: written line by line, so that nothing already scored is ever lost."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


def done_before(path: Path, each: Callable[[dict[str, Any]], None]) -> Counter[str]:
    """Return how often each id stands in a file of an earlier run; a half-written last line is cut off.

    Args:
        path: the file; it may be missing.
        each: is given every scored line, for the summary.

    Raises:
        ConfigError: the file holds something else.
    """
    done: Counter[str] = Counter()
    if not path.exists():
        return done
    good = 0
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            if not raw.endswith(b"\n"):
                break
            done[_identity(path, number, raw, each)] += 1
            good += len(raw)
    if good < path.stat().st_size:
        os.truncate(path, good)
    return done


def _identity(path: Path, number: int, raw: bytes, each: Callable[[dict[str, Any]], None]) -> str:
    try:
        line = json.loads(raw)
        scores, identity = line["scores"], str(line["id"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{path}:{number}: not a line of `ragtrace score`; choose another --out, or move the file away"
        ) from None
    each(scores)
    return identity


def open_out(name: str | None, *, is_resumed: bool) -> IO[str]:
    """Open the output: standard output, or a file that must be new unless the run is resumed.

    Raises:
        ConfigError: the file exists, or cannot be written.
    """
    if name is None or name == "-":
        return sys.stdout
    path = Path(name)
    if path.exists() and not is_resumed:
        raise ConfigError(f"{name} exists; add --resume to go on with it, or choose another --out")
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; choose another --out") from None
