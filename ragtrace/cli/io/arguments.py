"""Arguments and options that several commands have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ragtrace.errors import ConfigError

METRICS_HELP = "names, separated by commas, as `ragtrace metrics` lists them; or all"
Judge = Annotated[str | None, typer.Option(help="overlap (offline, the default) or openai:MODEL")]
BaseUrl = Annotated[str | None, typer.Option(help="an OpenAI-compatible server for the judge")]
StoreOption = Annotated[
    str | None, typer.Option("--store", metavar="PATH", help="the store's file; default RAGTRACE_STORE")
]
Workflow = Annotated[str | None, typer.Option(help="this workflow alone")]
Jobs = Annotated[int, typer.Option(min=1, help="records scored at once")]
Limit = Annotated[int | None, typer.Option(min=1, help="read no further than so many good lines")]
Pairs = Annotated[
    str | None,
    typer.Option(metavar="onnx:FOLDER", help="a local model that scores pairs, for the metric hallucination"),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write the report there, as JSON")]


def seconds(text: str) -> float:
    """Return a finite time of 0 s or more.

    Raises:
        typer.BadParameter: any other text.
    """
    number = _finite(text)
    if number is None or number < 0.0:
        raise typer.BadParameter(f"{text!r} is not a number of seconds")
    return number


def pace(text: str) -> float:
    """Return a finite rate above 0.

    Raises:
        typer.BadParameter: any other text.
    """
    number = _finite(text)
    if number is None or number <= 0.0:
        raise typer.BadParameter(f"{text!r} is not a number above 0")
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
