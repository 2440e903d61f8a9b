"""The investigation of an alarm: lines for the log, and the attributes of a log event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace.scoring.investigation.comparison import NoMetric, Period, TooFewScores
from ragtrace.scoring.investigation.lines import advice, lines
from ragtrace.scoring.investigation.runs import StoreSource
from ragtrace.scoring.investigation.search import investigate
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.util.types import AnyValue, AttributeValue

    from ragtrace.model import SeriesKey
    from ragtrace.scoring.investigation.search import Investigation
    from ragtrace.stores.sqlite import SqliteStore

_DAY_S = 86_400.0
BEFORE_S = 14 * _DAY_S
READING_S = 20.0
MOST_RUNS = 20_000  # of either period: a few dozen MB in the application's process


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFinding:
    """The answer to an alarm.

    Attributes:
        text: lines for the log, without texts of questions, answers or passages.
        attributes: of the log event; None where nothing fell or too few scores tell.
        is_early: whether there are too few scores so far.
    """

    text: str
    attributes: dict[str, AnyValue] | None = None
    is_early: bool = False


def investigate_alarm(
    store: SqliteStore,
    metric: str,
    workflow: str,
    *,
    now: float,
    changed_at: float | None,
    series: Mapping[str, AttributeValue],
) -> AlarmFinding:
    """Compare the scores since a change, or of the last day, with those of the 14 days before.

    Reads at most 20,000 scores of either period, and 20 s long.

    Args:
        store: holds the scores.
        metric: the exported name.
        workflow: whose scores.
        now: Unix seconds.
        changed_at: the change's Unix seconds, as the detector has it; None = unknown.
        series: attributes of the detector's series, which the log event gets too.

    Raises:
        TimeoutError: the store could not be read in time.
        sqlite3.Error: the store cannot be read.
    """
    since = changed_at or now - _DAY_S
    source = StoreSource(store, workflow=workflow, most=MOST_RUNS, limit_s=READING_S)
    period = Period(before=since - BEFORE_S, since=since, until=now)
    try:
        found = investigate(
            source, period, metric=metric, changed_at=changed_at, is_wanted=lambda it: _is_of(it, series)
        )
    except (TooFewScores, NoMetric) as error:
        return AlarmFinding(text=str(error), is_early=True)
    rows = list(lines(found))
    if not found.is_fallen:
        return AlarmFinding(text="\n".join(rows))
    rows += [f"{'Traces' if not i else '':<10}{it.trace_id}" for i, it in enumerate(found.examples)]
    rows.append(f"{'Next':<10}{advice(found)}")
    return AlarmFinding(text="\n".join(rows), attributes=event_attributes(found, series))


def _is_of(key: SeriesKey, series: Mapping[str, AttributeValue]) -> bool:
    """Return whether scores are those that the detector watches."""
    return key.version == series.get(semconv.JUDGE_VERSION) and key.k == series.get(semconv.K)


def event_attributes(found: Investigation, series: Mapping[str, AttributeValue]) -> dict[str, AnyValue]:
    """Return the attributes of the log event; they hold no text of a question, an answer or a passage.

    Args:
        found: the investigation.
        series: the attributes of the detector's series.
    """
    change, grown = found.change, found.verdict
    return clean_attributes(
        {
            **series,
            semconv.INVESTIGATION_BEFORE_MEAN: change.before.mean,
            semconv.INVESTIGATION_BEFORE_N: change.before.n,
            semconv.INVESTIGATION_WINDOW_MEAN: change.window.mean,
            semconv.INVESTIGATION_WINDOW_N: change.window.n,
            semconv.INVESTIGATION_CHANGE_LOW: change.low,
            semconv.INVESTIGATION_CHANGE_HIGH: change.high,
            semconv.INVESTIGATION_CHANGE_TIME: found.changed_at,
            semconv.INVESTIGATION_STAGE: grown.stage if grown else None,
            semconv.INVESTIGATION_VERDICT: grown.verdict if grown else None,
            semconv.INVESTIGATION_VERDICT_BEFORE: grown.share.before if grown else None,
            semconv.INVESTIGATION_VERDICT_WINDOW: grown.share.window if grown else None,
            semconv.INVESTIGATION_SLICES: _slices_json(found),
            semconv.INVESTIGATION_EXAMPLES: json.dumps([it.trace_id for it in found.examples]),
        }
    )


def _slices_json(found: Investigation) -> str:
    return json.dumps(
        [
            {
                "dimension": it.slice.dimension,
                "value": it.slice.value,
                "explained": it.explained,
                "low": it.low,
                "high": it.high,
                "share_before": it.share_before,
                "share_window": it.share_window,
                "mean_before": it.inside.before.mean,
                "mean_window": it.inside.window.mean,
            }
            for it in found.explained.slices
        ],
        ensure_ascii=False,
    )
