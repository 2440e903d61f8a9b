"""``ragtrace compare A B``: scored files side by side."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.cli.io.report_file import written
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace.scoring.offline.comparison import Arm, Comparison

EPILOG = """\
Input: files as `ragtrace score --out` writes them, plain or gzip. Every other file is
compared with the first; one file alone is summed up.
Pairs: where at least half of the smaller file's values have a partner of the same id
(and no other query) in the other file, differences are over pairs, else over all
values of each file. Intervals are 95 % bootstrap intervals; sessions, else users, else
the runs of a query are resampled whole. A difference is shown as better or worse where
0 is outside its interval, and at least 10 units were resampled.
Refused: scores of a metric by another judge, version, K, label scale or universe are
neither averaged nor compared with one another; pairs over other labels are left out
and counted, and the metric is refused where that is most of them.
Repeated runs: a query that stands in a file at least three times has ROUGE of its
answers and the spread of its scores.
Exit status: 0 fine, 1 broken lines (the rest is compared), 2 usage or a file without a
good line, 3 a metric was refused (also when lines are broken).
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare",
        help="compare scored files: means, differences, consistency",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="scored JSON lines, gzip too; - reads standard input")
    add("--metrics", help="metrics or their outputs, separated by commas; default all")
    add(
        "--plot", type=Path, metavar="FILE", help="box plots and questions answered, as .png or .svg (extra: plots)"
    )
    add("--csv", type=Path, metavar="FILE", help="one row a query, in the form of Open RAG Eval")
    add("--json", type=Path, metavar="FILE", help="write the comparison there, as JSON")
    add("--seed", type=int, default=0, metavar="S", help="of the bootstrap (0)")


def run(args: argparse.Namespace) -> int:
    """Read, compare and report; see `EPILOG` for the exit status."""
    from ragtrace.cli.compare.scored_files import read_arms
    from ragtrace.scoring.offline.comparison import compare
    from ragtrace.settings import names

    _check(args)
    metrics = [name for name in names(args.metrics or "") if name != "all"]
    arms = read_arms(args.files)
    found = compare(arms, metrics=metrics, seed=args.seed)
    _report(args, arms, found)
    return 3 if found.refused else 1 if any(arm.broken for arm in arms) else 0


def _check(args: argparse.Namespace) -> None:
    """Refuse before anything is read what could not be written after."""
    if args.seed < 0:
        raise ConfigError(f"--seed {args.seed}: it must be 0 or more")
    if args.files.count("-") > 1:
        raise ConfigError("- stands for standard input, which can be read once; name the other file")
    taken = {Path(name).resolve() for name in args.files if name != "-"}
    for flag in ("--plot", "--csv", "--json"):
        path: Path | None = getattr(args, flag[2:])
        if path is None:
            continue
        if path.resolve() in taken:
            raise ConfigError(f"{flag} {path} is read or written already; choose another")
        if path.is_dir() or not path.resolve().parent.is_dir():
            raise ConfigError(f"{flag} {path}: cannot be written there; name a file in a folder that exists")
        taken.add(path.resolve())
    if args.plot is not None:
        from ragtrace.report.calibration_plot import check_plot

        check_plot(args.plot)


def _report(args: argparse.Namespace, arms: list[Arm], found: Comparison) -> None:
    from ragtrace.cli.compare.table import show
    from ragtrace.cli.io.console import Shown

    show(found, Shown())
    if args.json is not None:
        with written("--json", args.json):
            args.json.write_text(f"{json.dumps(found.to_json(), indent=2)}\n", encoding="utf-8")
    if args.csv is not None:
        from ragtrace.cli.compare.open_rag_eval import write_queries

        with written("--csv", args.csv), args.csv.open("wb") as stream:
            write_queries(arms, stream)
    if args.plot is not None:
        from ragtrace.report.comparison_plot import draw

        with written("--plot", args.plot):
            draw(found, args.plot)
