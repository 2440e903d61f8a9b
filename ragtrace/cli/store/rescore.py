"""Command ``ragtrace rescore``, which scores a store's records again."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.arguments import BaseUrl, Jobs, Judge, Store, Workflow, option
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import MOMENT, moment, opened_store, store_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.model import RagRecord
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.scoring.offline.rescore import Rescored, Rescoring
    from ragtrace.settings import Settings

EPILOG = """\
The command scores the records that the store kept. With content=full these are records with low, failed or flagged
scores and 1 % of the others, or all (store_texts), for store_payload_hours. The new scores are a series of their
own, by their version; the old ones stay. Their weights correct for the uneven choice. They are in the export
(source=rescore), not in live metrics.

A run that was stopped, by Ctrl-C, by its budget or by a judge that is away, goes on when the same command is given
again. The limits of the settings hold (judge_rpm, judge_tpm, budget_usd_per_day, budget_tokens_per_day): rates
together with the processes of the spool that is set, budgets apart from them and of the same size.

Exit status: 0 done, 1 some results are errors or the judge is away, 2 usage or a failure, 3 the budget is spent,
130 stopped by Ctrl-C.
"""


def command(
    *,
    store: Store = None,
    since: Annotated[str, typer.Option(metavar="WHEN", help=f"Score records no older than this: {MOMENT}.")],
    metrics: Annotated[str, option("metrics", "NAMES", "--metrics", "--metric")],
    judge: Judge = None,
    base_url: BaseUrl = None,
    workflow: Workflow = None,
    budget_calls: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="End after N calls of the judge. A begun record is finished."),
    ] = None,
    jobs: Jobs = 4,
) -> int:
    """Score the records of a store again, as a series of its own."""
    from ragtrace.scoring.offline.rescore import Rescoring
    from ragtrace.service.judges import build_scorer
    from ragtrace.settings import Settings

    path = store_path(store, "rescore")
    earliest = moment(since, time.time())
    settings = Settings.resolve({"metrics": metrics, "judge": judge, "judge_base_url": base_url})
    is_interrupted = False
    with ExitStack() as stack:
        limiter = _limiter(settings, stack)
        scorer = build_scorer(settings, limiter)
        opened = stack.enter_context(opened_store(path))
        rescoring = Rescoring(
            opened, scorer, budget_calls=budget_calls, jobs=jobs, closed=limiter.blocked if limiter else None
        )
        try:
            asyncio.run(_work(rescoring, scorer, opened.records(since=earliest, workflow=workflow)))
        except KeyboardInterrupt:
            is_interrupted = True
    return _report(rescoring.total, is_interrupted=is_interrupted)


async def _work(rescoring: Rescoring, scorer: Scorer, records: Iterable[tuple[RagRecord, float]]) -> None:
    from ragtrace.cli.io.progress import progress

    try:
        with progress("-", done_before=0) as step:
            await rescoring.run(records, step=step)
    finally:
        await scorer.aclose()


def _limiter(settings: Settings, stack: ExitStack) -> JudgeLimiter | None:
    from ragtrace.service.judges import is_limited
    from ragtrace.service.limits import BACKFILL, build_limiter

    return stack.enter_context(closing(build_limiter(settings, account=BACKFILL))) if is_limited(settings) else None


def _report(total: Rescored, *, is_interrupted: bool) -> int:
    say(
        f"{total.scored} rescored with {total.calls} judge calls, {total.done_before} done before,"
        f" {total.errors} results are errors",
        file=sys.stderr,
    )
    if is_interrupted:
        say("ragtrace: stopped; the same command goes on", file=sys.stderr)
        return 130
    if total.stopped_by:
        when = f" in {max(total.wait_s / 60.0, 1.0):.0f} min" if total.wait_s else ""
        say(f"ragtrace: {total.stopped_by}; the same command goes on{when}", file=sys.stderr)
        return 3 if total.is_budget_spent else 1
    if total.is_budget_spent:
        say("ragtrace: the budget is spent; the same command goes on", file=sys.stderr)
        return 3
    if not (total.scored or total.done_before):
        say("ragtrace: no records are kept from then: see content and store_payload_hours", file=sys.stderr)
    return 1 if total.errors else 0
