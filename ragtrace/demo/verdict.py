"""What the local stack made of a run, once every score has been read and every rule evaluated after it."""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ragtrace.demo.progress import WATCHED
from ragtrace.errors import ConfigError
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.drift import DRIFT_ALERTS
from ragtrace_dashboards.expressions import METRIC
from ragtrace_dashboards.prometheus_files import GROUPS

if TYPE_CHECKING:
    from ragtrace.demo.inbox import Delivered
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
        others: other alerts that it delivered.
        missing: names of drift alerts that Prometheus raised and Alertmanager did not deliver.
        largest_z: of the watched metric over the whole run; None when its windows never held enough scores.
        limit_z: what fires.
        is_settled: every rule was evaluated after the last score was read; else the rest tells too little.
    """

    drifts: tuple[Delivered, ...]
    others: tuple[Delivered, ...]
    missing: tuple[str, ...]
    largest_z: float | None
    limit_z: float
    is_settled: bool


def verdict_of(stack: LocalStack, *, limit_s: float = LIMIT_S) -> Verdict:
    """Wait until the stack has seen everything, and say what came of it.

    Args:
        stack: running; everything asked is scored.
        limit_s: seconds to wait for Prometheus, and again for Alertmanager.
    """
    is_settled = _has_seen_all(stack.prometheus, time.time(), limit_s) and _none_pends(stack.prometheus, limit_s)
    raised = _raised(stack.prometheus)
    stack.inbox.wait_for(raised, limit_s)
    came = stack.inbox.alerts
    return Verdict(
        drifts=tuple(it for it in came if it.name in DRIFT_ALERTS),
        others=tuple(it for it in came if it.name not in DRIFT_ALERTS),
        missing=tuple(sorted(raised - {it.name for it in came})),
        largest_z=_largest_z(stack.prometheus),
        limit_z=Config.demo().z,
        is_settled=is_settled,
    )


def _has_seen_all(prometheus: str, since: float, limit_s: float) -> bool:
    """Wait until the endpoint was read after a moment, and each group of rules evaluated after what it reads."""
    deadline = time.monotonic() + limit_s
    steps = [partial(_scraped, prometheus), *(partial(_evaluated, prometheus, name) for name in GROUPS)]
    moment = since
    for step in steps:
        while (done := step()) <= moment:
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_S)
        moment = done
    return True


def _scraped(prometheus: str) -> float:
    targets = _get(prometheus, "targets")["activeTargets"]
    return max((_moment(it["lastScrape"]) for it in targets if it["health"] == "up"), default=0.0)


def _evaluated(prometheus: str, group: str) -> float:
    groups = _get(prometheus, "rules")["groups"]
    return max((_moment(it["lastEvaluation"]) for it in groups if it["name"] == group), default=0.0)


def _none_pends(prometheus: str, limit_s: float) -> bool:
    """Wait until each drift alert that has begun to be true fires or is over."""
    deadline = time.monotonic() + limit_s
    while _query(prometheus, _drifts("pending")):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def _raised(prometheus: str) -> set[str]:
    expr = f"count by (alertname) (max_over_time({_drifts('firing')}{_RUN}))"
    return {it["metric"]["alertname"] for it in _query(prometheus, expr)}


def _drifts(state: str) -> str:
    return f'ALERTS{{alertname=~"{"|".join(DRIFT_ALERTS)}",alertstate="{state}"}}'


def _largest_z(prometheus: str) -> float | None:
    expr = f'max_over_time(ragtrace:drift_z:day{{{METRIC}="{WATCHED}"}}{_RUN})'
    return max((float(it["value"][1]) for it in _query(prometheus, expr)), default=None)


def _query(prometheus: str, expr: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _get(prometheus, f"query?{urlencode({'query': expr})}")["result"]
    return found


def _get(prometheus: str, path: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/{path}", timeout=_ASK_LIMIT_S) as reply:  # noqa: S310 - http on loopback
            data: dict[str, Any] = json.load(reply)["data"]
    except OSError as error:
        raise ConfigError(f"--stack local: prometheus no longer answers: {error}") from error
    return data


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
