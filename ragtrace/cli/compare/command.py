"""Command ``ragtrace compare A B``, which compares scored files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.arguments import JsonFile, Metrics, Plot
from ragtrace.cli.io.jsonl_reader import BrokenLines
from ragtrace.cli.io.report_file import check_reports, write_json, written
from ragtrace.cli.io.scored_files import read_scored
from ragtrace.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.scoring.offline.comparison import ComparedFile, Comparison

EPILOG = """\
Input: files and folders as `ragtrace score --out` writes them, JSON lines also as gzip.
Every other one is compared with the first; one alone is summed up.

Pairs: where at least half of the smaller file's values have a partner of the same id
(and no other query) in the other file, differences are over pairs, else over all
values of each file. A session, else a user, else the runs of a query count as one in
the 95 % intervals. A difference is shown as better or worse where 0 is outside its
interval, and there are at least 10 units.

Refused: scores of a metric by another judge, version, K, label scale or universe are
neither averaged nor compared with one another; pairs over other labels are left out
and counted, and the metric is refused where that is most of them.

Repeated runs: a query that stands in a file at least three times has ROUGE of its
answers and the spread of its scores.

Exit status: 0 fine, 1 broken lines (the rest is compared), 2 usage or a file without a
good line, 3 a metric was refused (also when lines are broken).
"""


def command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Scored file or folder; - reads JSON lines of standard input."),
    ],
    *,
    metrics: Metrics = None,
    plot: Plot = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one row a query there, in the form of Open RAG Eval.")
    ] = None,
    json_file: JsonFile = None,
) -> int:
    """Compare scored files: means, differences and consistency."""
    from ragtrace.scoring.offline.comparison import compare
    from ragtrace.settings import names

    reports = {"--plot": plot, "--csv": csv, "--json": json_file}
    if files.count("-") > 1:
        raise ConfigError("- stands for standard input, which can be read once; name the other file")
    check_reports(reports, taken=files)
    arms = [_arm(file, name) for file, name in zip(files, short_names(files), strict=True)]
    chosen = [name for name in names(metrics or "") if name != "all"]
    found = compare(arms, metrics=chosen)
    _report(reports, arms, found)
    return 3 if found.refused else 1 if any(arm.broken for arm in arms) else 0


def short_names(files: Sequence[str]) -> list[str]:
    """Return the files' names without folders where they stay distinct.

    Example:
        >>> short_names(["runs/a.jsonl", "b.jsonl"]), short_names(["old/a.jsonl", "new/a.jsonl"])
        (['a.jsonl', 'b.jsonl'], ['old/a.jsonl', 'new/a.jsonl'])
    """
    names = [Path(file).name or file for file in files]
    return names if len(set(names)) == len(set(files)) else list(files)


def _arm(file: str, name: str) -> ComparedFile:
    from ragtrace.scoring.offline.comparison import ComparedFile
    from ragtrace.scoring.offline.scored_row import scored_row

    broken = BrokenLines(file, is_held=True)
    rows = list(read_scored(file, broken, scored_row))
    if not rows:
        raise InputError(broken.first or f"{file}:1: the file is empty; give one that `ragtrace score` wrote")
    broken.close()
    return ComparedFile(name, rows, broken.count)


def _report(reports: dict[str, Path | None], arms: list[ComparedFile], found: Comparison) -> None:
    from ragtrace.cli.compare.table import show
    from ragtrace.cli.io.console import Shown

    show(found, Shown())
    write_json(reports["--json"], found.to_json())
    if csv := reports["--csv"]:
        from ragtrace.cli.compare.open_rag_eval import write_queries

        with written("--csv", csv), csv.open("wb") as stream:
            write_queries(arms, stream)
    if plot := reports["--plot"]:
        from ragtrace.report.comparison_plot import draw

        with written("--plot", plot):
            draw(found, plot)
