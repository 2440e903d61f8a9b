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


def port(text: str) -> int:
    """Return the number of a port; 0 is any free one.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    number = _whole(text)
    if number is None or not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 (any free port) to 65535")
    return number


def seconds(text: str) -> float:
    """Return a span of time of 0 or more.

    Raises:
        argparse.ArgumentTypeError: anything else, without end too.
    """
    number = _finite(text)
    if number is None or number < 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def pace(text: str) -> float:
    """Return how many a second, above 0.

    Raises:
        argparse.ArgumentTypeError: anything else, without end too.
    """
    number = _finite(text)
    if number is None or number <= 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
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


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
