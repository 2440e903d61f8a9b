"""The three boards as Grafana dashboard JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.boards import investigate, overview, scorer
from ragtrace_dashboards.boards.panels import PROMETHEUS, grid
from ragtrace_dashboards.config import INVESTIGATE, OVERVIEW, SCORER, duration
from ragtrace_dashboards.expressions import CUTOFF, JOB, METRIC, SERIES, WORKFLOW, legend_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.boards.panels import Row
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.yaml_text import JsonObject

SCHEMA_VERSION = 42
TAG = "ragtrace"

OMITTED: Final = {
    semconv.DIAGNOSIS_N: "the effective number of diagnosed runs decides how sure a share is",
    semconv.DIAGNOSIS_W2: "the recording rules take the effective number of diagnosed runs from it",
    semconv.CLIENT_TOKEN_USAGE: "the former name of the token counters, for one more release",
    semconv.CLIENT_CALL_INPUT_TOKENS: "the application's own; the board shows its counters of tokens",
    semconv.CLIENT_CALL_OUTPUT_TOKENS: "the application's own; the board shows its counters of tokens",
    semconv.CLIENT_FIRST_CHUNK: "the application's own; the board shows the durations of its calls",
    semconv.CLIENT_OUTPUT_CHUNK: "the application's own; the board shows the durations of its calls",
    semconv.ASSEMBLY: "counts of `ragtrace serve` alone, which most installations do not run",
    semconv.RECEIVER_REFUSED: "requests that `ragtrace serve` refused; its report and its log name the reasons",
    semconv.KAFKA_LAG: "of a queue on Kafka alone, whose own boards show the lag of every group",
    semconv.KAFKA_PARTITIONS: "of a queue on Kafka alone; an alert asks for it by name",
    semconv.PASS_RATIO: "shares of single processes cannot be averaged; boards compute the share from sums",
    semconv.BASELINE_MEAN: "the recorded normal holds a frozen one; `ragtrace baseline show` lists them all",
    semconv.BASELINE_SD: "the recorded drop that fires holds it; `ragtrace baseline show` lists them all",
    semconv.BASELINE_N: "the recorded drop that fires holds it; `ragtrace baseline show` lists them all",
    semconv.BASELINE_FROZEN_TIME: "`ragtrace baseline show` lists when each baseline was frozen",
    **dict.fromkeys(
        (
            semconv.INVESTIGATION_FOUND,
            semconv.INVESTIGATION_SIZE,
            semconv.INVESTIGATION_LOW,
            semconv.INVESTIGATION_HIGH,
            semconv.INVESTIGATION_N,
            semconv.INVESTIGATION_SINCE,
            semconv.INVESTIGATION_LOOKED,
            semconv.INVESTIGATION_PART,
            semconv.INVESTIGATION_VERDICT,
        ),
        "the search's own answer, which `ragtrace investigate` and the pages print whole",
    ),
    semconv.ANCHOR_N: "the interval of the judge's change holds it; `ragtrace anchors show` has the number",
}
"""Metrics of `ragtrace.semconv.METRICS` that stand on no board, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard with its rows and variables."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[JsonObject]

    def panel_title(self, number: int) -> str:
        """Return the title of the panel with a number."""
        return next(it.title for row in self.rows for it in row.panels if it.number == number)

    def json(self) -> JsonObject:
        """Return the board as Grafana imports it."""
        return {
            "annotations": {"list": _annotations()},
            "description": self.description,
            "editable": False,
            "fiscalYearStartMonth": 0,
            "graphTooltip": 1,
            "links": [_link()],
            "panels": grid(self.rows),
            "preload": False,
            "refresh": "1m",
            "schemaVersion": SCHEMA_VERSION,
            "tags": [TAG],
            "templating": {"list": list(self.variables)},
            "time": {"from": "now-7d", "to": "now"},
            "timepicker": {},
            "timezone": "browser",
            "title": self.title,
            "uid": self.uid,
            "version": 1,
            "weekStart": "",
        }


def all_boards(config: Config) -> list[Board]:
    """Return the boards in the order in which a reader needs them."""
    prometheus, tempo = _sources()
    chosen = [prometheus, _job(), _workflow()]
    return [
        Board(
            uid=OVERVIEW,
            title="RAG quality overview",
            description="Begin here. Is quality good now, since when not, where, and can the numbers be trusted?",
            rows=overview.rows(config),
            variables=chosen,
        ),
        Board(
            uid=INVESTIGATE,
            title="Investigate a drop",
            description="From an alert's workflow and metric to the answers, the stage and the command.",
            rows=investigate.rows(config),
            variables=[prometheus, tempo, *chosen[1:], _metric(), _cutoff(), _slice(), _window(config)],
        ),
        Board(
            uid=SCORER,
            title="Scorer internals and cost",
            description="For who runs it: does the scorer run, keep up and lose nothing, and at what cost?",
            rows=scorer.rows(config),
            variables=chosen[:2],
        ),
    ]


def boards(config: Config) -> dict[str, JsonObject]:
    """Return the JSON of each dashboard by its uid.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> sorted(boards(Config()))
        ['ragtrace-investigate', 'ragtrace-overview', 'ragtrace-scorer']
    """
    return {board.uid: board.json() for board in all_boards(config)}


def board_files(config: Config) -> dict[str, str]:
    """Return the text of each board's file by its name, ``<uid>.json``, with sorted keys."""
    return {
        f"{uid}.json": json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for uid, board in boards(config).items()
    }


def _link() -> JsonObject:
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


def _annotations() -> list[JsonObject]:
    version = "service_version"
    target = f"count by (job, {version}) (target_info{{{JOB}}})"
    return [_annotation("Releases", f"{target} unless {target[:-1]} offset 10m)", "blue", legend_of(version))]


def _annotation(name: str, expr: str, color: str, text: str) -> JsonObject:
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


def _sources() -> list[JsonObject]:
    kinds = (("datasource", "Data source", "prometheus"), ("tempo_datasource", "Traces", "tempo"))
    return [
        {
            "hide": 0, "includeAll": False, "label": shown, "multi": False, "name": name, "options": [],
            "query": kind, "refresh": 1, "regex": "", "type": "datasource",
        }
        for name, shown, kind in kinds
    ]  # fmt: skip


def _query(name: str, shown: str, query: str, *, is_multi: bool, all_value: str = ".+") -> JsonObject:
    variable: JsonObject = {
        "datasource": dict(PROMETHEUS), "definition": query, "hide": 0, "includeAll": is_multi, "label": shown,
        "multi": is_multi, "name": name, "options": [], "query": {"qryType": 1, "query": query, "refId": name},
        "refresh": 2, "regex": "", "sort": 1, "type": "query",
    }  # fmt: skip
    if is_multi:
        variable |= {"allValue": all_value, "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    return variable


def _job() -> JsonObject:
    # Any series of every scorer will do; one that a fresh process exports before its first score.
    return _query("job", "Job", f"label_values({SERIES[semconv.QUEUE_CAPACITY]}, job)", is_multi=True)


def _workflow() -> JsonObject:
    query = f"label_values({SERIES[semconv.SCORE_N]}{{{JOB}}}, {WORKFLOW})"
    return _query("workflow", "Workflow", query, is_multi=True, all_value=".*")  # a run may have no workflow


def _metric() -> JsonObject:
    query = f"label_values({SERIES[semconv.SCORE_N]}{{{JOB}}}, {METRIC})"
    variable = _query("metric", "Metric", query, is_multi=False)
    variable["current"] = {"selected": True, "text": "faithfulness", "value": "faithfulness"}
    return variable


def _cutoff() -> JsonObject:
    query = f'label_values({SERIES[semconv.SCORE_N]}{{{JOB},{CUTOFF}!=""}}, {CUTOFF})'
    # A metric without K has no such label, which ".*" matches and ".+" does not.
    return _query("k", "K", query, is_multi=True, all_value=".*")


def _slice() -> JsonObject:
    return _custom("slice", "Slice by", investigate.SLICES, "workflow")


def _window(config: Config) -> JsonObject:
    seconds = sorted({config.fast_window_s, config.day_window_s, config.week_window_s})
    names = [duration(it) for it in seconds]
    return _custom("window", "Window", {name: name for name in names}, duration(config.day_window_s))


def _custom(name: str, shown: str, choices: dict[str, str], chosen: str) -> JsonObject:
    options: list[JsonObject] = [
        {"selected": text == chosen, "text": text, "value": value} for text, value in choices.items()
    ]
    query = ",".join(text if text == value else f"{text} : {value}" for text, value in choices.items())
    return {
        "current": {"selected": True, "text": chosen, "value": choices[chosen]}, "hide": 0, "includeAll": False,
        "label": shown, "multi": False, "name": name, "options": options, "query": query, "skipUrlSync": False,
        "type": "custom",
    }  # fmt: skip
