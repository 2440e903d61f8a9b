"""Pages of runs: the list, and one run."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.routing import Route

from ragtrace.model.diagnosis import VERDICTS
from ragtrace.pages.formats import moment
from ragtrace.ui.rating import rating_form
from ragtrace.ui.site import filter_of, site_of
from ragtrace.views.filters import filter_to_query
from ragtrace.views.types import RunFilter

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ragtrace.pages.links import Links

_ALWAYS = {"metric", "order"}
_MORE = {"stage", "tag", "model", "state", "labelled", "low", "high", "since", "until", "sign"}
_TIMES = {"since", "until"}


def routes() -> list[Route]:
    """Return the routes of these pages."""
    return [Route("/runs", show_runs), Route("/runs/{run:path}", show_run, name="run")]


def show_runs(request: Request) -> Response:
    """List the runs of a filter, the worst first."""
    site = site_of(request)
    live = site.live(request)
    if unchanged := site.unchanged(request, live):
        return unchanged
    chosen = filter_of(request.query_params)
    number = request.query_params.get("page", "1")
    listed = site.views.runs(chosen, page=int(number) if number.isascii() and number.isdigit() else 1)
    return site.page(
        "runs.html",
        page="runs",
        title="Runs",
        live=live,
        chosen=chosen,
        listed=listed,
        choices=site.views.choices(),
        verdicts=list(VERDICTS),
        removable=removable(chosen, site.links),
        has_more=bool(_MORE & filter_to_query(chosen).keys()),
    )


def show_run(request: Request) -> Response:
    """Show one run whole, with its neighbours in the list it came from."""
    site = site_of(request)
    name = request.path_params["run"]
    run = site.views.run(name)
    if run is None:
        raise HTTPException(404, f"There is no run {name} here.")
    chosen = filter_of(request.query_params) if request.query_params else RunFilter()
    before, after = site.views.neighbours(chosen, name)
    return site.page(
        "run.html",
        page="runs",
        title=run.query[:80] or run.id,
        run=run,
        chosen=chosen,
        before=before,
        after=after,
        rating=rating_form(request, run, metric=chosen.metric),
    )


def removable(chosen: RunFilter, links: Links) -> list[tuple[str, object, str | None]]:
    """Return each part of a filter as label, value, and the address of the list without it."""
    empty = RunFilter()
    written = filter_to_query(chosen)
    return [
        (
            field.name,
            moment(getattr(chosen, field.name)) if field.name in _TIMES else written[field.name],
            links.runs(replace(chosen, **{field.name: getattr(empty, field.name)})),
        )
        for field in fields(chosen)
        if field.name in written and field.name not in _ALWAYS
    ]
