"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ragtrace.cli.io.stored import MOMENT
from ragtrace.errors import ConfigError
from ragtrace.settings import TABLE, bounds

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|STORE",
        help="File or folder that `ragtrace score` wrote, or a store. Default: RAGTRACE_STORE.",
    ),
]


def option(name: str, metavar: str, *flags: str) -> Any:
    """Return the option of a setting: it is described and bounded as the setting is."""
    setting = TABLE[name]
    low, high = bounds(setting.field)
    default = setting.field.default
    last = "" if default is None or isinstance(default, tuple) else f", else {default}"
    doc = f"{setting.doc} Default: {setting.variable}{last}."
    return typer.Option(*flags, metavar=metavar, help=doc, min=low, max=high)


Metrics = Annotated[str | None, option("metrics", "NAMES")]
Judge = Annotated[str | None, option("judge", "NAMES")]
BaseUrl = Annotated[str | None, option("judge_base_url", "URL")]
Embedder = Annotated[str | None, option("embedder", "NAME")]
Pairs = Annotated[str | None, option("pairs", "onnx:FOLDER")]
KValues = Annotated[str | None, option("metric_options_k_values", "K,K")]
SampleRate = Annotated[float | None, option("sample_rate", "P")]
MetricsPort = Annotated[int | None, option("metrics_port", "P")]
Store = Annotated[str | None, option("store", "PATH", "--store")]
Spool = Annotated[str | None, option("spool", "PATH", "--spool")]
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
Workflow = Annotated[str | None, typer.Option(metavar="NAME", help="Take this workflow alone.")]
Since = Annotated[str | None, typer.Option(metavar="WHEN", help=f"Take no earlier scores: {MOMENT}.")]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Take scores before this moment alone.")]


def name_service() -> None:
    """Name this scorer's own process ``ragtrace``, unless the environment names it."""
    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ["OTEL_SERVICE_NAME"] = os.environ.get("OTEL_SERVICE_NAME") or "ragtrace"


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
