"""Alerts that the local stack raised in a run, once every score was read and every rule evaluated after it."""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from rich.text import Text

from ragtrace.demo.tally import WATCHED
from ragtrace.demo.view import QUIET
from ragtrace.errors import ConfigError
from ragtrace_dashboards.config import DRIFT_ALERTS
from ragtrace_dashboards.drift import DROP, LIMIT
from ragtrace_dashboards.expressions import METRIC
from ragtrace_dashboards.rule_files import GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.demo.inbox import DeliveredAlert
    from ragtrace.demo.stack import LocalStack

LIMIT_S = 60.0
_PAUSE_S = 0.2
_ASK_LIMIT_S = 30.0
_RUN = "[1h]"  # longer than any run; the series begin with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of a run with the stack.

    Attributes:
        drifts: drift alerts that Alertmanager delivered, the oldest first.
        missing: names of drift alerts that Prometheus raised and Alertmanager did not deliver.
        largest_drop: of the watched metric over the whole run; None when its windows never held enough scores.
        fires_above: the least drop that would have fired; None as well.
        is_settled: every rule was evaluated after the last score was read; else the rest tells too little.
    """

    drifts: tuple[DeliveredAlert, ...]
    others: tuple[DeliveredAlert, ...]
    missing: tuple[str, ...]
    largest_drop: float | None
    fires_above: float | None
    is_settled: bool


def wait_for_verdict(stack: LocalStack, *, limit_s: float = LIMIT_S) -> Verdict:
    """Wait until the stack has seen everything, and return the alerts.

    Prometheus has `limit_s` seconds, and Alertmanager as many again.
    """
    server, deadline = stack.prometheus, time.monotonic() + limit_s
    moment, is_settled = time.time(), True
    # Each step reads the series that the one before has written.
    for last in (partial(_last_scrape, server), *(partial(_last_evaluation, server, name) for name in GROUPS)):
        is_settled = is_settled and _wait_until(partial(_is_after, last, moment), deadline)
        moment = last()
    is_settled = is_settled and _wait_until(lambda: not _query(server, _drift_alerts("pending")), deadline)
    fired = f"count by (alertname) (max_over_time({_drift_alerts('firing')}{_RUN}))"
    raised = {it["metric"]["alertname"] for it in _query(server, fired)}
    _wait_until(lambda: raised <= {it.name for it in stack.inbox.alerts}, time.monotonic() + limit_s)
    delivered = tuple(stack.inbox.alerts)
    where = f'{{{METRIC}="{WATCHED}"}}{_RUN}'
    return Verdict(
        drifts=tuple(it for it in delivered if it.name in DRIFT_ALERTS),
        others=tuple(it for it in delivered if it.name not in DRIFT_ALERTS),
        missing=tuple(sorted(raised - {it.name for it in delivered})),
        largest_drop=_value(server, f"max(max_over_time({DROP}:day{where}))"),
        fires_above=_value(server, f"min(min_over_time({LIMIT}:day{where}))"),
        is_settled=is_settled,
    )


def describe_verdict(verdict: Verdict) -> Iterator[Text]:
    """Return the lines that a person reads."""
    if not verdict.is_settled:
        yield Text("Prometheus did not read and evaluate everything in time: the machine is too busy.")
    for name in verdict.missing:
        yield Text(f"Prometheus raised {name}, and Alertmanager did not deliver it in time.")
    for alert in verdict.drifts:
        yield Text("Alertmanager delivered this alert:", style=QUIET)
        yield Text(f"  {_name(alert)}", style="bold")
        for name in ("summary", "culprit", "evidence", "description"):
            if text := alert.annotations.get(name):
                yield Text(f"  {text}")
        for name in ("runbook", "dashboard"):
            yield Text(f"  {name:<10} {alert.annotations.get(f'{name}_url', '')}")
    if not verdict.drifts and verdict.largest_drop is None:
        yield Text(
            f"Alertmanager delivered no drift alert: too few scores of {WATCHED} came in time to tell a drop."
        )
    elif not verdict.drifts:
        yield Text(
            f"Alertmanager delivered no drift alert: {WATCHED} dropped by {verdict.largest_drop:.3f} at most,"
            f" {verdict.fires_above:.3f} fires."
        )
    if verdict.others:
        names = dict.fromkeys(_name(alert) for alert in verdict.others)
        yield Text(f"Also delivered: {', '.join(names)}.", style=QUIET)


def _name(alert: DeliveredAlert) -> str:
    return f"{alert.name} ({alert.labels.get('severity', '')})"


def _wait_until(holds: Callable[[], bool], deadline: float) -> bool:
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def _is_after(last: Callable[[], float], moment: float) -> bool:
    return last() > moment


def _last_scrape(prometheus: str) -> float:
    targets = _get(prometheus, "targets")["activeTargets"]
    return max((_seconds(it["lastScrape"]) for it in targets if it["health"] == "up"), default=0.0)


def _last_evaluation(prometheus: str, group: str) -> float:
    groups = _get(prometheus, "rules")["groups"]
    return max((_seconds(it["lastEvaluation"]) for it in groups if it["name"] == group), default=0.0)


def _seconds(time_text: str) -> float:
    return datetime.fromisoformat(time_text).timestamp()


def _drift_alerts(state: str) -> str:
    return f'ALERTS{{alertname=~"{"|".join(DRIFT_ALERTS)}",alertstate="{state}"}}'


def _value(prometheus: str, expr: str) -> float | None:
    return next((float(it["value"][1]) for it in _query(prometheus, expr)), None)


def _query(prometheus: str, expr: str) -> Any:
    return _get(prometheus, f"query?{urlencode({'query': expr})}")["result"]


def _get(prometheus: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/{path}", timeout=_ASK_LIMIT_S) as reply:  # noqa: S310 - http on loopback
            return json.load(reply)["data"]
    except OSError as error:
        raise ConfigError(f"--stack local: prometheus no longer answers: {error}") from error
