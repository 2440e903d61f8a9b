"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ragtrace.cli.io.stored import MOMENT
from ragtrace.errors import ConfigError

METRICS_HELP = "Metrics, separated by commas, or all. `ragtrace metrics` lists them."
Metrics = Annotated[str | None, typer.Option(metavar="NAMES", help=METRICS_HELP)]
Source = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|STORE",
        help="File or folder that `ragtrace score` wrote, or a store. Default: RAGTRACE_STORE.",
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Judge: overlap (offline, the default) or openai:MODEL. Several, separated by commas, are a panel.",
    ),
]
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of the judge.")]
Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Embedder: overlap (offline, the default), local, local:FOLDER (both offline), or openai:MODEL.",
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(metavar="onnx:FOLDER", help="Local model that scores pairs, for the metric hallucination."),
]
KValues = Annotated[
    str | None,
    typer.Option(
        metavar="K,K",
        help="Cut-offs of @K metrics, separated by commas. The first is the main one. Default: number of contexts.",
    ),
]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help="Records that are scored at once.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Read at most N good lines.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with --out. Lines that it holds are not scored again.")
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report there as JSON.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw the report there, as .png or .svg. Extra: plots.")
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="PATH", help="File of the store. Default: RAGTRACE_STORE.")
]
Spool = Annotated[
    str | None, typer.Option("--spool", metavar="PATH", help="File of the spool. Default: RAGTRACE_SPOOL.")
]
Workflow = Annotated[str | None, typer.Option(metavar="NAME", help="Take this workflow alone.")]
Since = Annotated[str | None, typer.Option(metavar="WHEN", help=f"Take no earlier scores: {MOMENT}.")]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Take scores before this moment alone.")]


def scorer_service_name() -> str | None:
    """Return ``ragtrace`` as ``service.name`` of a scorer's own process, None where the environment names one."""
    variables = ("RAGTRACE_SERVICE_NAME", "OTEL_SERVICE_NAME")
    is_named = any(map(os.environ.get, variables)) or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return None if is_named else "ragtrace"


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
