"""Pages about many runs: overview and investigation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from ragtrace.model.diagnosis import MEANINGS
from ragtrace.pages.choices import PERIODS, calm_sentence, is_worse, shown_metric, stages_of, worse_sentence
from ragtrace.ui.site import filter_of, site_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from ragtrace.views.source import Views
    from ragtrace.views.types import RunFilter

_MOST_BINS, _FEWEST_BINS, _BIN_RUNS = 48, 6, 20  # fewer runs in a bin have intervals as wide as the chart
NEXT_STEPS = {
    "retrieval": "Look whether the needed documents are in the index, and whether its embedding or query changed.",
    "rerank": "Look whether the reranker, its K or its filter changed.",
    "prompt": "Look whether the template, or the room for passages in the prompt, changed.",
    "model": "Look whether the model, its prompt or its settings changed.",
}


def routes() -> list[Route]:
    """Return the routes of these pages."""
    return [Route("/", show_overview), Route("/investigate", show_investigation)]


def show_overview(request: Request) -> Response:
    """Show every metric, and the stages at which answers fail."""
    site = site_of(request)
    live = site.live(request)
    if unchanged := site.unchanged(request, live):
        return unchanged
    query = request.query_params
    chosen = chosen_runs(site.views, query)
    overview = site.views.overview(chosen)
    if overview.runs < _MOST_BINS * _BIN_RUNS:
        overview = site.views.overview(chosen, bins=max(overview.runs // _BIN_RUNS, _FEWEST_BINS))
    has_fallen = any(map(is_worse, overview.metrics))
    found = site.views.investigate(replace(chosen, metric=None)) if has_fallen else None
    return site.page(
        "overview.html",
        page="overview",
        title="Overview",
        live=live,
        overview=overview,
        chosen=chosen,
        query=_kept(query),
        period=query.get("period", ""),
        periods=PERIODS,
        workflows=site.views.overview().workflows if chosen.workflow else overview.workflows,
        investigation=found,
        calm=calm_sentence(overview),
        worse=worse_sentence(overview),
        shown=shown_metric(overview, query.get("metric"), found),
        shown_key=query.get("metric"),
        stages=stages_of(overview),
        fine=[share for share in overview.verdicts if share.stage == "none"],
    )


def show_investigation(request: Request) -> Response:
    """Show what fell, since when, at which stage and where."""
    site = site_of(request)
    query = request.query_params
    chosen = chosen_runs(site.views, query)
    found = site.views.investigate(chosen)
    return site.page(
        "investigate.html",
        page="investigate",
        title="Investigate",
        found=found,
        chosen=chosen,
        asked=query.get("metric"),
        query=_kept(query),
        metrics=site.views.choices().metrics,
        meanings=MEANINGS,
        steps=NEXT_STEPS,
        examples=site.views.lines(found.example_ids, found.metric),
    )


def chosen_runs(views: Views, query: Mapping[str, str]) -> RunFilter:
    """Return the runs of a page: a filter, and the period before the newest run where one is chosen."""
    chosen = filter_of(query)
    period = PERIODS.get(query.get("period", ""))
    last = views.overview().last if period else None
    return replace(chosen, since=last - period[1]) if period and last else chosen


def _kept(query: Mapping[str, str]) -> dict[str, Any]:
    return {name: query[name] for name in ("workflow", "period") if query.get(name)}
