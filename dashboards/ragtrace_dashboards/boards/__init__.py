"""The four boards as Grafana dashboard JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ragtrace import semconv
from ragtrace_dashboards.boards import investigate, overview, retrieval, scorer, scores
from ragtrace_dashboards.boards.panels import PROMETHEUS, grid
from ragtrace_dashboards.config import INVESTIGATE, OVERVIEW, RETRIEVAL, SCORER, duration
from ragtrace_dashboards.expressions import CUTOFF, JOB, METRIC, SERIES, SERVED, WORKFLOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.boards.panels import Row
    from ragtrace_dashboards.config import Config

SCHEMA_VERSION = 42
TAG = "ragtrace"

OMITTED: Final = {
    semconv.CLIENT_TOKEN_USAGE: "the former name of the token counters, for one more release",
    semconv.PASS_RATIO: "shares of single processes cannot be averaged; boards compute the share from sums",
}
"""Metrics of `ragtrace.semconv.METRICS` that stand on no board, each with the reason."""


def boards(config: Config) -> dict[str, dict[str, Any]]:
    """Return the dashboards by uid.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> sorted(boards(Config()))
        ['ragtrace-investigate', 'ragtrace-overview', 'ragtrace-retrieval', 'ragtrace-scorer']
    """
    metric, metrics = _metric(), _metric(is_multi=True)
    family = _metric(is_multi=True, only="|".join((*retrieval.RANKED, *retrieval.SET_FAMILY)))
    sliced = [_slice(), _slice_value(), _cutoff(), _window(config)]
    return {
        OVERVIEW: _board(
            OVERVIEW,
            "RAG quality overview",
            "Begin here. Shows whether answers and retrieval are as good as before, and whether scores suffice.",
            overview.rows(config),
            [*_sources(), _job(), _workflow(), metrics, *sliced],
        ),
        INVESTIGATE: _board(
            INVESTIGATE,
            "Investigate a drop",
            "Six questions about one metric, in the order of the runbook.",
            investigate.rows(config),
            [*_sources(), _job(), _workflow(), metric, *sliced],
        ),
        RETRIEVAL: _board(
            RETRIEVAL,
            "Retrieval and reranking",
            "Quality of the retrieved pool and of the selection, weak passages in the prompt, and empty searches.",
            retrieval.rows(config),
            [*_sources(), _job(), _workflow(), family, *sliced],
        ),
        SCORER: _board(
            SCORER,
            "Scorer internals and cost",
            "Shows whether the scorer runs, keeps up and scores every sampled trace, and the judge's cost.",
            scorer.rows(config),
            [_sources()[0], _job()],
        ),
    }


def board_files(config: Config) -> dict[str, str]:
    """Return the text of each board's file by its name, ``<uid>.json``, with sorted keys."""
    return {
        f"{uid}.json": json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for uid, board in boards(config).items()
    }


def _board(
    uid: str, title: str, description: str, rows: Sequence[Row], variables: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "annotations": {"list": _annotations()},
        "description": description,
        "editable": False,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "links": [_link()],
        "panels": grid(rows),
        "preload": False,
        "refresh": "1m",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG],
        "templating": {"list": list(variables)},
        "time": {"from": "now-7d", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": title,
        "uid": uid,
        "version": 1,
        "weekStart": "",
    }


def _link() -> dict[str, Any]:
    return {
        "asDropdown": False,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "tags": [TAG],
        "targetBlank": False,
        "title": "ragtrace",
        "tooltip": "",
        "type": "dashboards",
        "url": "",
    }


def _annotations() -> list[dict[str, Any]]:
    version = "service_version"
    target = f"count by (job, {version}) (target_info{{{JOB}}})"
    alarms = f"sum by ({METRIC}) (increase({SERIES[semconv.DRIFT_ALARMS]}{{{JOB}}}[5m])) > 0"
    return [
        _annotation("Releases", f"{target} unless {target[:-1]} offset 10m)", "blue", f"{{{{{version}}}}}"),
        _annotation("Drift alarms", alarms, "red", f"{{{{{METRIC}}}}}"),
    ]


def _annotation(name: str, expr: str, color: str, text: str) -> dict[str, Any]:
    return {
        "datasource": dict(PROMETHEUS),
        "enable": True,
        "expr": expr,
        "hide": False,
        "iconColor": color,
        "name": name,
        "step": "5m",
        "textFormat": text,
        "titleFormat": name,
    }


def _sources() -> list[dict[str, Any]]:
    kinds = (("datasource", "Data source", "prometheus"), ("tempo_datasource", "Traces", "tempo"))
    return [
        {
            "hide": 0, "includeAll": False, "label": shown, "multi": False, "name": name, "options": [],
            "query": kind, "refresh": 1, "regex": "", "type": "datasource",
        }
        for name, shown, kind in kinds
    ]  # fmt: skip


def _query(name: str, shown: str, query: str, *, is_multi: bool, all_value: str = ".+") -> dict[str, Any]:
    variable: dict[str, Any] = {
        "datasource": dict(PROMETHEUS), "definition": query, "hide": 0, "includeAll": is_multi, "label": shown,
        "multi": is_multi, "name": name, "options": [], "query": {"qryType": 1, "query": query, "refId": name},
        "refresh": 2, "regex": "", "sort": 1, "type": "query",
    }  # fmt: skip
    if is_multi:
        variable |= {"allValue": all_value, "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    return variable


def _job() -> dict[str, Any]:
    # Any series of every scorer will do; one that a fresh process exports before its first score.
    return _query("job", "Job", f"label_values({SERIES[semconv.QUEUE_CAPACITY]}, job)", is_multi=True)


def _workflow() -> dict[str, Any]:
    query = f"label_values({SERIES[semconv.SCORE_N]}{{{JOB}}}, {WORKFLOW})"
    return _query("workflow", "Workflow", query, is_multi=True, all_value=".*")  # a run may have no workflow


def _metric(*, is_multi: bool = False, only: str = "") -> dict[str, Any]:
    query = f"label_values({SERIES[semconv.SCORE_N]}{{{JOB}}}, {METRIC})"
    found = _query("metric", "Metric", query, is_multi=is_multi)
    if not is_multi:
        found["current"] = {"selected": True, "text": "faithfulness", "value": "faithfulness"}
    if only:
        found["regex"] = f"/^({only})$/"
        found["allValue"] = only
    return found


def _cutoff() -> dict[str, Any]:
    query = f'label_values({SERIES[semconv.SCORE_N]}{{{JOB},{CUTOFF}!=""}}, {CUTOFF})'
    # A metric without K has no such label, which ".*" matches and ".+" does not.
    return _query("k", "K", query, is_multi=True, all_value=".*")


def _slice() -> dict[str, Any]:
    return _custom("slice", "Slice by", scores.SLICES, "workflow")


def _slice_value() -> dict[str, Any]:
    query = f"label_values({SERIES[semconv.SCORE_N]}{{{SERVED}}}, $slice)"
    return _query("slice_value", "Slices", query, is_multi=True)


def _window(config: Config) -> dict[str, Any]:
    seconds = sorted({config.fast_window_s, config.day_window_s, config.days_window_s})
    names = [duration(it) for it in seconds]
    return _custom("window", "Window", {name: name for name in names}, duration(config.day_window_s))


def _custom(name: str, shown: str, choices: dict[str, str], chosen: str) -> dict[str, Any]:
    options = [{"selected": text == chosen, "text": text, "value": value} for text, value in choices.items()]
    query = ",".join(text if text == value else f"{text} : {value}" for text, value in choices.items())
    return {
        "current": {"selected": True, "text": chosen, "value": choices[chosen]}, "hide": 0, "includeAll": False,
        "label": shown, "multi": False, "name": name, "options": options, "query": query, "skipUrlSync": False,
        "type": "custom",
    }  # fmt: skip
