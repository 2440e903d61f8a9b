"""Pages that compare two files, or two periods of one store or file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.routing import Route

from ragtrace.errors import InputError
from ragtrace.ui.site import site_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from ragtrace.ui.site import Site
    from ragtrace.views.source import Views
    from ragtrace.views.types import ComparisonView, Overview, RunView

FIELDS = ("before_from", "before_to", "after_from", "after_to")
_HOUR_S, _DAY_S = 3_600.0, 86_400.0
_MOST_RUNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """Two periods, each with its begin and exclusive end in Unix seconds."""

    before: tuple[float, float]
    after: tuple[float, float]

    def query(self) -> dict[str, str]:
        """Return the fields of the form, in UTC."""
        return dict(zip(FIELDS, map(_written, (*self.before, *self.after)), strict=True))


def routes() -> list[Route]:
    """Return the routes of these pages."""
    return [Route("/compare", show_comparison), Route("/compare/run", show_pair)]


def show_comparison(request: Request) -> Response:
    """Show what became better and worse, by metric and by run."""
    site = site_of(request)
    query = request.query_params
    metric = query.get("metric") or None
    overview = site.views.overview()
    presets = presets_of(overview)
    is_periods = site.other is None or any(query.get(name) for name in FIELDS)
    chosen = periods_of(query) or next(iter(presets.values()), None) if is_periods else None
    found = _compared(site, chosen, metric, query.get("workflow") or None)
    return site.page(
        "compare.html",
        page="compare",
        title="Compare",
        found=found,
        runs=found.runs[:_MOST_RUNS] if found else (),
        other=site.other.name if site.other else None,
        is_periods=is_periods,
        fields=chosen.query() if chosen else {},
        presets={name: periods.query() for name, periods in presets.items()},
        metrics=list(dict.fromkeys(it.metric for it in found.metrics)) if found else [],
        asked=metric,
    )


def show_pair(request: Request) -> Response:
    """Show one question on both sides."""
    site = site_of(request)
    query = request.query_params
    older = site.views if query.get("in") == "periods" or site.other is None else site.other
    sides = tuple(_run(views, query.get(name, "")) for name, views in (("before", older), ("after", site.views)))
    return site.page(
        "pair.html", page="compare", title=sides[1].query[:80] or "Compare", sides=sides, metric=query.get("metric")
    )


def presets_of(overview: Overview) -> dict[str, Periods]:
    """Return periods to choose from, by their name; those of a detected change first.

    Periods end with the newest run. Where no run has a time there is none.
    """
    if overview.first is None or overview.last is None:
        return {}
    first, end = overview.first, overview.last + 1.0
    changes = {it.key.metric: it.drift.since for it in overview.metrics if it.drift.since}
    found = {
        f"before and after the change of {metric}": Periods(before=(first, at), after=(at, end))
        for metric, at in changes.items()
    }
    if end - first > _DAY_S + _HOUR_S:
        found["last 24 hours against the 7 days before"] = _last(end, _DAY_S, 7 * _DAY_S)
    if end - first > 2 * _HOUR_S:
        found["last hour against the 24 hours before"] = _last(end, _HOUR_S, _DAY_S)
    middle = (first + end) / 2
    return {**found, "second half against the first": Periods(before=(first, middle), after=(middle, end))}


def periods_of(query: Mapping[str, str]) -> Periods | None:
    """Return the periods that a form names; None where it names none.

    Raises:
        InputError: a time is missing, wrong, or before its begin.
    """
    given = [query.get(name, "") for name in FIELDS]
    if not any(given):
        return None
    times = [_read(name, text) for name, text in zip(FIELDS, given, strict=True)]
    if times[0] >= times[1] or times[2] >= times[3]:
        raise InputError("a period ends after it begins; exchange its times")
    return Periods(before=(times[0], times[1]), after=(times[2], times[3]))


def _compared(
    site: Site, chosen: Periods | None, metric: str | None, workflow: str | None
) -> ComparisonView | None:
    if chosen is not None:
        return site.views.compare_periods(chosen.before, chosen.after, metric=metric, workflow=workflow)
    return site.views.compared_with(site.other, metric=metric) if site.other else None


def _run(views: Views, name: str) -> RunView:
    found = views.run(name)
    if found is None:
        raise HTTPException(404, f"There is no run {name} here.")
    return found


def _last(end: float, after_s: float, before_s: float) -> Periods:
    return Periods(before=(end - after_s - before_s, end - after_s), after=(end - after_s, end))


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


def _read(name: str, text: str) -> float:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{name.replace('_', ' ')} is a time such as 2026-11-24T06:30, got {text!r:.40}") from None
