"""Command ``ragtrace report``, which writes one HTML file over scored runs."""

from __future__ import annotations

from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ragtrace.cli.io.answers import source_of
from ragtrace.cli.io.arguments import Source
from ragtrace.cli.io.report_file import check_reports, written
from ragtrace.cli.io.say import say
from ragtrace.cli.io.scored_files import opened_views
from ragtrace.errors import ConfigError, MissingExtra

EPILOG = """\
The file needs no server and no network. It holds the overview, the comparison and the worst runs. As many runs as
fit into 2 MB are whole, and 1,000 are listed. Texts stand in it where the store or file holds them.

Exit status: 0 written, 2 usage.
"""


def command(
    source: Source = None,
    *,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="Write the report there.")],
    compare: Annotated[
        str | None, typer.Option(metavar="FILE|STORE", help="Compare with this file or store, as the state before.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Order the runs by this metric. Default: faithfulness.")
    ] = None,
) -> int:
    """Write scored runs as one HTML file, for mail and CI."""
    if find_spec("jinja2") is None:
        raise MissingExtra("jinja2", "ui")
    from ragtrace.report.html import report_html

    name = source_of(source)
    check_reports({"--out": out}, taken=[name, compare])
    with ExitStack() as stack:
        views = stack.enter_context(closing(opened_views(name)))
        known = [one for one, _ in views.choices().metrics]
        if metric is not None and metric not in known:
            raise ConfigError(f"{name}: no run has a score of {metric}; known: {', '.join(known)}")
        before = stack.enter_context(closing(opened_views(source_of(compare)))) if compare else None
        text = report_html(views, views.compared_with(before, metric=metric) if before else None, metric=metric)
    with written("--out", out):
        out.write_text(text, encoding="utf-8", errors="replace")
    say(f"{out}: {len(text.encode(errors='replace')) / 1e6:.2f} MB")
    return 0
