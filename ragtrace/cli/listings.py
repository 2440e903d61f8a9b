"""Commands ``ragtrace metrics``, ``settings``, ``schema`` and ``version``."""

from __future__ import annotations

import json
import platform
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace._version import __version__
from ragtrace.cli.io.say import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from ragtrace.judges.offline.judge import OverlapJudge
    from ragtrace.metrics.base import Metric, MetricSpec, Output
    from ragtrace.scoring import Scorer

    Row = tuple[str, str, str, str]

NARROW = 110  # columns below which the table of metrics would fold
METRICS_WIDE = 150  # columns below which calls and sources would fold into towers
SETTINGS_WIDE = 160  # the same of the settings' descriptions
_READABLE = 120
_SETTINGS_READABLE = 100


def version() -> int:
    """Print the versions of ragtrace and of the packages below it."""
    from ragtrace.cli.doctor.packages import SHOWN, installed

    say(f"ragtrace {__version__} (Python {platform.python_version()})")
    for name in (*SHOWN, "numpy", "pydantic"):
        say(f"{name} {installed(name) or 'is not installed'}")
    return 0


def schema() -> int:
    """Print the JSON Schema of one line that `ragtrace score` reads."""
    from ragtrace.model.schema import SCHEMA

    say(json.dumps(SCHEMA, indent=2))
    return 0


def metrics(
    *,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Print which metrics this judge can compute, with threshold and version. No call is made.",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables, for documentation.")] = False,
) -> int:
    """Print every metric: its meaning, needs, range, direction and calls."""
    from rich.table import Table

    from ragtrace.cli.io.console import Shown
    from ragtrace.judges.offline.judge import OverlapJudge
    from ragtrace.metrics.registry import all_metrics

    if judge is not None:
        return _metrics_of(judge, is_markdown=markdown)
    specs = [metric.spec for metric in all_metrics().values()]
    rows = [_row(spec, output, is_first=i == 0) for spec in specs for i, output in enumerate(spec.outputs)]
    head = ("metric", "exported as", "needs", "range", "direction", "threshold", "calls", "source")
    if markdown:
        _markdown(head, rows)
        say()
        _markdown(("metric", "meaning"), [(metric.name, metric.summary) for metric in specs])
        return 0
    console = Shown()
    if console.width < NARROW:
        for line in _blocks(specs, console.width):
            console.print(line)
        _own_thresholds(OverlapJudge, console)
        return 0
    shown = len(head) if console.width >= METRICS_WIDE else len(head) - 2
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(head[:shown]):
        table.add_column(name, no_wrap=i < 2)
    for row in rows:
        table.add_row(*row[:shown])
    console.print(table)
    if shown < len(head):
        console.print("calls and sources: `ragtrace metrics --markdown`, or a terminal of 150 columns")
    console.print()
    for line in _meanings(specs, console.width):
        console.print(line)
    _own_thresholds(OverlapJudge, console)
    return 0


def _metrics_of(judge: str, *, is_markdown: bool) -> int:
    """Print each number under a judge: its threshold, direction and version, and why it can have no value."""
    from rich.table import Table

    from ragtrace.cli.io.console import Shown

    head, rows = ("metric", "exported as", "threshold", "direction", "version", "available"), _judged(judge)
    if is_markdown:
        _markdown(head, rows)
        return 0
    console = Shown()
    if console.width < NARROW:
        for metric, name, threshold, direction, version, available in rows:
            facts = [direction, threshold and f"threshold {threshold}", version and f"version {version}", available]
            if metric:
                console.print(metric)
            for line in wrap(f"{name}: {', '.join(filter(None, facts))}", console.width - 8):
                console.print(f"    {line}")
        return 0
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, no_wrap=name != "available")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    return 0


def _judged(judge: str) -> list[tuple[str, str, str, str, str, str]]:
    from ragtrace.metrics.evaluate import expected
    from ragtrace.metrics.registry import all_metrics

    scorer = _scorer_of(judge)
    rows: list[tuple[str, str, str, str, str, str]] = []
    for metric in all_metrics().values():
        known = expected([metric], scorer.judge, scorer.embedder, scorer.options, scorer.pairs)
        versions = {found.name: found.version for found in known}
        reason = _why_not(metric, scorer)
        for output in metric.spec.outputs:
            threshold = scorer.threshold_of(output)
            rows.append((
                metric.spec.name if output is metric.spec.outputs[0] else "",
                output.name,
                "" if threshold is None else f"{threshold:g}",
                output.direction,
                "" if reason else versions.get(output.name, "varies with labels"),
                f"no: {reason}" if reason else _how(metric, scorer),
            ))  # fmt: skip
    return rows


def _scorer_of(judge: str) -> Scorer:
    """Build the scorer of the settings with another judge; it asks nothing, so no key is needed."""
    from ragtrace.judges.registry import kinds
    from ragtrace.service.judges import build_scorer
    from ragtrace.settings import Settings

    settings = Settings.resolve({}).with_changes(judge=judge, grade_cache="off", label_freeze=None)
    if "openai" in kinds(judge) and not (settings.judge.api_key or settings.judge.base_url):
        settings = settings.with_changes(judge_api_key="none")
    return build_scorer(settings)


def _why_not(metric: Metric, scorer: Scorer) -> str:
    from ragtrace.metrics.evaluate import lacking

    if "runs" in metric.spec.needs:
        return "it compares several answers to one question"
    if metric.spec.uses_deep_pool and scorer.deep_retriever is None:
        return "no shadow retriever is set"
    return lacking(metric, scorer.judge, scorer.embedder, scorer.pairs)


def _how(metric: Metric, scorer: Scorer) -> str:
    from ragtrace.metrics.evaluate import tasks_of

    needs, tasks = metric.spec.needs, tasks_of(scorer.judge) if scorer.judge is not None else ()
    is_graded = "judge" in needs and "grades" in tasks
    is_of_labels = "labels" in needs and metric.spec.task is None and not is_graded
    return "for records with labels" if is_of_labels else "yes"


def _own_thresholds(judge: type[OverlapJudge], console: Console) -> None:
    console.print()
    for name, threshold in judge.thresholds.items():
        console.print(f"{name} under the judge {judge.name}: threshold {threshold:g}")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    say(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        say(f"| {' | '.join(row)} |")


def _blocks(specs: Sequence[MetricSpec], width: int) -> Iterator[str]:
    for metric in specs:
        yield f"{metric.name}"
        facts = (metric.summary, f"needs {', '.join(metric.needs)}; {metric.calls}; source: {metric.source}")
        yield from (f"    {line}" for fact in facts for line in wrap(fact, width - 4))
        for output in metric.outputs:
            _, name, _, span, direction, threshold, *_ = _row(metric, output, is_first=False)
            yield f"    {name}: {span}, {direction}{f', threshold {threshold}' if threshold else ''}"


def _meanings(specs: Sequence[MetricSpec], width: int) -> Iterator[str]:
    most = max(len(metric.name) for metric in specs) + 2
    for metric in specs:
        first, *rest = wrap(metric.summary, min(width, _READABLE) - most)
        yield f"{metric.name:<{most}}{first}"
        yield from (f"{'':<{most}}{line}" for line in rest)


def _row(spec: MetricSpec, output: Output, *, is_first: bool) -> tuple[str, ...]:
    return (
        spec.name if is_first else "",
        output.name,
        ", ".join(spec.needs) if is_first else "",
        f"{output.low:g} to {output.high:g}",
        output.direction,
        "" if output.threshold is None else f"{output.threshold:g}",
        spec.calls if is_first else "",
        spec.source if is_first else "",
    )


def settings() -> int:
    """Print every setting, its variable and its present value."""
    from ragtrace.cli.io.console import Shown
    from ragtrace.settings import TABLE, Settings, shown

    now = shown(Settings.resolve({}))
    rows = [
        (name, one.variable, ("set" if now[name] else "not set") if one.is_secret else _value(now[name]), one.doc)
        for name, one in TABLE.items()
    ]
    console = Shown()
    (_as_table if console.width >= SETTINGS_WIDE else _as_blocks)(console, rows)
    return 0


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _as_table(console: Console, rows: list[Row]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("setting", "variable", "now", "what"):
        table.add_column(name, no_wrap=name in {"setting", "variable"})
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _as_blocks(console: Console, rows: list[Row]) -> None:
    width = min(console.width, _SETTINGS_READABLE) - 4
    for name, variable, value, doc in rows:
        for line in wrap(f"{name} = {value}", width + 4, subsequent_indent="    "):
            console.print(line)
        for line in ([variable] if variable else ["(an argument of ragtrace.configure alone)"]) + wrap(doc, width):
            console.print(f"    {line}")
