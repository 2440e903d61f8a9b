"""``ragtrace rescore``: the records of a store once more, under another judge."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from ragtrace.cli.arguments import positive
from ragtrace.cli.stored import MOMENT, add_store, failures, moment, open_store, store_path

if TYPE_CHECKING:
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.rescore import Rescored

EPILOG = f"""\
Scored are the records that the store kept: with content=full those with low, failed or flagged scores and 1 % of
the others, for 72 hours. The new scores are a series of their own, by their version; the old ones stay. Their
weights make up for the uneven choice. They are in the export (source=rescore) and not in live metrics.
A run that was stopped, by Ctrl-C or by its budget, goes on when the same command is given again.
SINCE: {MOMENT}.
Exit status: 0 done, 1 some results are errors, 2 usage or a failure, 3 the budget is spent, 130 stopped by Ctrl-C.
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "rescore",
        help="score the records of a store again, as a series of its own",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add_store(parser)
    add("--since", required=True, help="records no older than this")
    add("--metric", required=True, help="names, separated by commas, as `ragtrace metrics` lists them; or all")
    add("--judge", help="overlap (offline, the default) or openai:MODEL")
    add("--base-url", help="an OpenAI-compatible server for the judge")
    add("--workflow", help="this workflow alone")
    add("--budget-calls", type=positive, metavar="N", help="most calls of the judge; what is begun is finished")
    add("--jobs", type=positive, default=4, help="records scored at once (4)")


def run(args: argparse.Namespace) -> int:
    """Score what is not yet; see `EPILOG` for the exit status."""
    from ragtrace.scoring.rescore import Rescoring

    path = store_path(args)
    since = moment(args.since, time.time())
    scorer = _scorer(args)
    store = open_store(path)
    rescoring = Rescoring(store, scorer, budget_calls=args.budget_calls, jobs=args.jobs)

    async def work() -> None:
        from ragtrace.cli.progress import progress

        try:
            with progress("-", done_before=0) as step:
                await rescoring.run(store.records(since=since, workflow=args.workflow), step=step)
        finally:
            await scorer.aclose()

    is_interrupted = False
    try:
        with failures(path):
            asyncio.run(work())
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        store.close()
    return _report(rescoring.total, is_interrupted=is_interrupted)


def _scorer(args: argparse.Namespace) -> Scorer:
    from ragtrace.service.judges import build_scorer
    from ragtrace.settings import Settings

    metrics = tuple(name.strip() for name in args.metric.split(",") if name.strip())
    given = {"metrics": metrics, "judge": args.judge, "judge_base_url": args.base_url}
    return build_scorer(Settings.resolve(given))


def _report(total: Rescored, *, is_interrupted: bool) -> int:
    print(
        f"{total.scored} rescored with {total.calls} judge calls, {total.done_before} done before,"
        f" {total.errors} results are errors",
        file=sys.stderr,
    )
    if not (total.scored or total.done_before or is_interrupted):
        print("ragtrace: no records are kept from then: see content and store_payload_hours", file=sys.stderr)
    if is_interrupted:
        print("ragtrace: stopped; the same command goes on", file=sys.stderr)
        return 130
    if total.is_budget_spent:
        print("ragtrace: the budget is spent; the same command goes on", file=sys.stderr)
        return 3
    return 1 if total.errors else 0
