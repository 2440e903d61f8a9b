"""Lists of runs that a page points to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.model.diagnosis import STAGES
from ragtrace.model.reading import ANY_SIGN
from ragtrace.views.types import RunFilter

if TYPE_CHECKING:
    from ragtrace.views.types import Culprit, InvestigationView, MetricView, Overview, VerdictShare

_FIELDS = ("workflow", "model", "tag", "session")
PERIODS = {
    "15m": ("last 15 minutes", 900),
    "1h": ("last hour", 3_600),
    "24h": ("last 24 hours", 86_400),
    "7d": ("last 7 days", 604_800),
    "30d": ("last 30 days", 2_592_000),
}
"""Choices of the overview: words, and seconds before the newest run."""


def worst_of(metric: MetricView, base: RunFilter) -> RunFilter:
    """Return the runs of a page's choice, the worst by one metric first."""
    return replace(base, metric=metric.key.metric, order="worst")


def failed_with(share: VerdictShare, base: RunFilter) -> RunFilter:
    """Return the runs with one verdict."""
    return replace(base, verdict=share.verdict, order="worst")


def part_of(found: InvestigationView, culprit: Culprit | None = None, *, is_after: bool = True) -> RunFilter:
    """Return the runs of a part of the traffic, after a fall or before it, the worst first.

    A part that no list can be chosen by, such as a language, is left out of the choice.
    """
    part = {culprit.dimension: culprit.value} if culprit and culprit.dimension in _FIELDS else {}
    since = None if found.since is None else round(found.since, 3)
    times = {"since" if is_after else "until": since}
    return RunFilter(metric=found.metric, **part, **times)  # type: ignore[arg-type] # fields of RunFilter


def blamed(found: InvestigationView) -> RunFilter:
    """Return the runs after a fall of the first part and with the verdict that grew, the worst first."""
    return replace(part_of(found, *found.culprits[:1]), verdict=found.verdict)


def is_listed(culprit: Culprit) -> bool:
    """Tell whether a list can be chosen by this part."""
    return culprit.dimension in _FIELDS


def missed_by(metric: MetricView, base: RunFilter) -> RunFilter:
    """Return the runs whose value misses the metric's threshold."""
    return replace(base, metric=metric.key.metric, state="missed", order="worst")


def signed_of(base: RunFilter) -> RunFilter:
    """Return the runs of a page's choice of which capture is unsure."""
    return replace(base, sign=ANY_SIGN)


def shown_metric(overview: Overview, key: str | None, found: InvestigationView | None) -> MetricView | None:
    """Return the metric of the large chart: asked for, else of the headline, else a worse one, else the first."""
    metrics = overview.metrics
    asked = [metric for metric in metrics if metric.key.metric == key]
    told = [
        metric for metric in metrics if found is not None and found.is_fallen and metric.key.metric == found.metric
    ]
    fallen = [metric for metric in metrics if is_worse(metric)]
    return next(iter([*asked, *told, *fallen, *metrics]), None)


def is_worse(metric: MetricView) -> bool:
    """Tell whether a metric changed for the worse."""
    return metric.drift.state == {"up": "fell", "down": "rose"}.get(metric.direction or "")


def calm_sentence(overview: Overview) -> str | None:
    """Return the headline where nothing changed for the worse; None where something did, or none is watched."""
    if any(map(is_worse, overview.metrics)):
        return None
    states = [metric.drift.state for metric in overview.metrics]
    if "steady" in states:
        n = states.count("steady")
        enough = f"{n} {'has' if n == 1 else 'have'} enough scores to tell"
        return f"No metric is shown to have changed for the worse; {enough}."
    return "There are too few scores to tell a change." if "too_few" in states else None


def worse_sentence(overview: Overview) -> str | None:
    """Return the headline that names every metric that changed for the worse; None where none did.

    It stands where no investigation explains them.
    """
    worse = [
        f"{it.key.metric} {it.drift.state} from {it.drift.before:.2f} to {it.drift.after:.2f}"
        for it in overview.metrics
        if is_worse(it)
    ]
    return f"{'; '.join(worse)}." if worse else None


class StageShare(NamedTuple):
    """A stage with its failures; `share` is of all runs."""

    name: str
    share: float
    verdicts: list[VerdictShare]
    is_worst: bool


def stages_of(overview: Overview) -> list[StageShare]:
    """Return the stages that can fail, in their order, with their verdicts."""
    names = [stage for stage in dict.fromkeys(STAGES.values()) if stage != "none"]
    shares = {name: [share for share in overview.verdicts if share.stage == name] for name in names}
    sums = {name: sum(share.share.mean or 0.0 for share in found) for name, found in shares.items()}
    most = max(sums.values())
    return [StageShare(name, sums[name], shares[name], 0 < sums[name] == most) for name in names]
