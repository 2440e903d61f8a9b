"""Pages of people's ratings: the queue, one run of it, and the calibration of the judge."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from ragtrace.scoring.offline.calibration_lines import about_choice, findings, head, rows
from ragtrace.ui.rating import rating_form, refusal_of
from ragtrace.ui.site import site_of
from ragtrace.views.labels import LEAST_LABELS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ragtrace.ui.site import Site
    from ragtrace.views.types import LabelQueue, MetricView


def routes() -> list[Route]:
    """Return the routes of these pages."""
    return [Route("/queue", show_queue), Route("/label", show_label), Route("/calibrate", show_calibration)]


def show_queue(request: Request) -> Response:
    """List the runs to label next, and how far the labels have come."""
    site = site_of(request)
    live = site.live(request)
    if unchanged := site.unchanged(request, live):
        return unchanged
    metrics = rated_metrics(site)
    queue = site.views.queue(_chosen(request, metrics))
    return site.page(
        "queue.html",
        page="queue",
        title="Label",
        live=live,
        queue=queue,
        left_out=left_out(queue, is_store=site.views.is_store),
        remarks=list(about_choice(queue.kept_as_bad, queue.labelled)),
        metrics=metrics,
        refusal=refusal_of(site),
        least=LEAST_LABELS,
    )


def show_label(request: Request) -> Response:
    """Show a run of the queue with the form of its rating; without ``run``, go to the first."""
    site = site_of(request)
    queue = site.views.queue(_chosen(request, rated_metrics(site)))
    name = request.query_params.get("run")
    if name is None:
        return RedirectResponse(_after(site, queue, None), 303)
    run = site.views.run(name)
    if run is None:
        raise HTTPException(404, f"There is no run {name} here.")
    skip = _after(site, queue, name)
    return site.page(
        "label.html",
        page="queue",
        title="Label",
        run=run,
        queue=queue,
        skip=skip,
        rating=rating_form(request, run, metric=queue.metric, back=skip),
    )


def show_calibration(request: Request) -> Response:
    """Show how far the judge agrees with people, and the command that says the same."""
    site = site_of(request)
    metrics = rated_metrics(site)
    queue = site.views.queue(_chosen(request, metrics))
    report = site.views.calibration(queue.metric)
    remarks = list(about_choice(queue.kept_as_bad, queue.labelled))
    found = findings(report) if report else []
    direction = next((it.direction for it in site.views.overview().metrics if it.key.metric == queue.metric), None)
    return site.page(
        "calibrate.html",
        page="queue",
        title="Calibrate",
        metrics=metrics,
        queue=queue,
        report=report,
        head=list(head(report, "people's ratings")) if report else [],
        rows=[row for row in rows(report) if not row[0].startswith("label mean")] if report else [],
        remarks=remarks,
        findings=[it for it in found if it not in remarks and not it.startswith("the corrected mean")],
        command=None if site.views.is_store else command_of(site, queue.metric, is_inverted=direction == "down"),
        least=LEAST_LABELS,
    )


def rated_metrics(site: Site) -> list[str]:
    """Return the metrics that people can agree with: a judge gives them, and they pass or fail."""
    return list(dict.fromkeys(it.key.metric for it in site.views.overview().metrics if _is_rated(it)))


def command_of(site: Site, metric: str, *, is_inverted: bool) -> str:
    """Return the command that compares the judge with the ratings kept beside a file."""
    keys = (it.key for it in site.views.overview().metrics)
    judge = next((key.judge for key in keys if key.metric == metric and key.judge), None)
    words = ["ragtrace", "calibrate", f"{site.views.name}.labels.jsonl", "--label", f"label.{metric}"]
    words += [] if metric == "faithfulness" else ["--metric", metric]
    words += ["--inverted"] if is_inverted else []
    words += ["--judge", judge] if judge and judge != "overlap" else []
    return shlex.join(words)


def left_out(queue: LabelQueue, *, is_store: bool) -> str | None:
    """Return how many runs the queue leaves out, and why; None where it leaves none out.

    Example:
        >>> from ragtrace.stats.intervals import Interval
        >>> from ragtrace.views.types import LabelQueue
        >>> mean = Interval(None, None, None)
        >>> queue = LabelQueue(metric="mrr", items=(), labelled=0, total=9, raw=mean, unkept=4)
        >>> left_out(queue, is_store=False)
        'Left out: 4 of 9 scored runs, which cannot be read. The file holds no texts of 4.'
    """
    count = queue.unkept + queue.deleted
    if not count:
        return None
    why = []
    if not is_store:
        why.append(f"The file holds no texts of {count:,}.")
    if is_store and queue.unkept:
        why.append(
            f'The store kept no texts of {queue.unkept:,} (content="full" with store_texts="all" keeps them).'
        )
    if is_store and queue.deleted:
        why.append(f"The texts of {queue.deleted:,} were deleted (store_payload_hours, store_bytes).")
    return f"Left out: {count:,} of {queue.total:,} scored runs, which cannot be read. {' '.join(why)}"


def _is_rated(metric: MetricView) -> bool:
    is_judged = metric.key.judge is not None and metric.key.universe is None and metric.key.k is None
    return is_judged and metric.missed is not None


def _chosen(request: Request, metrics: list[str]) -> str | None:
    asked = request.query_params.get("metric")
    return asked if asked in metrics else next(iter(metrics), None)


def _after(site: Site, queue: LabelQueue, name: str | None) -> str:
    """Return the address of the run behind another in the queue; of the queue itself at its end."""
    ids = [it.id for it in queue.items]
    place = ids.index(name) + 1 if name in ids else 0
    if place < len(ids):
        return site.links.page("label", metric=queue.metric, run=ids[place])
    return site.links.page("queue", metric=queue.metric)
