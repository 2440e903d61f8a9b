"""Arguments that several commands read."""

from __future__ import annotations

import argparse
import math

from ragtrace.errors import ConfigError


def positive(text: str) -> int:
    """Return a whole number above 0.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    number = _whole(text)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return number


def count(text: str) -> int:
    """Return a whole number of 0 or more.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    number = _whole(text)
    if number is None or number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return number


def seconds(text: str) -> float:
    """Return a span of time of 0 or more.

    Raises:
        argparse.ArgumentTypeError: anything else, without end too.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def cutoffs(text: str | None) -> tuple[int, ...] | None:
    """Return the values of ``--k-values``.

    Raises:
        ConfigError: they are not whole numbers separated by commas.
    """
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--k-values {text}: write whole numbers separated by commas, for example 3,5") from None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
