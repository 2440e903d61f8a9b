"""Lint of dashboards: 15 of the 17 rules of Grafana's dashboard-linter, in Python, and our own stricter ones.

Left out are template-instance and target-instance: a series that came over OTLP may have no ``instance``, and
``instance=~".+"`` would then empty the panel.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import promql_parser as pp
from grafana_foundation_sdk.models import units

from ragtrace import semconv
from ragtrace_dashboards import HELD, IDENTITY, VERDICT, WORKFLOW, Config, recording_groups
from tests.dashboards.promql import asked, filled, is_without, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

Board = dict[str, Any]
UNITS = {value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")}
FOREIGN = {"target_info": {"job", "service_version", "service_name"}}
SERIES = {it.prometheus: it for it in semconv.METRICS}
RECORDED = {rule.record for group in recording_groups(Config()) for rule in group.rules}
SCREEN_ROWS = 25
"""Grid rows of 30 pixels and a gap of 8 that 1080 pixels show below Grafana's own header and the variables."""
MOST_LINES = 7


def panels(board: Board) -> list[Board]:
    """Every panel, also those of collapsed rows."""
    inner = [it for row in board["panels"] for it in row.get("panels", ())]
    return [it for it in (*board["panels"], *inner) if it["type"] != "row"]


def asking(board: Board) -> list[Board]:
    """Every panel but texts, which ask nothing."""
    return [it for it in panels(board) if it["type"] != "text"]


def targets(board: Board) -> Iterator[tuple[str, Board]]:
    for panel in panels(board):
        for target in panel["targets"]:
            yield f"panel {panel['id']} {target['refId']}", target


def expressions(board: Board) -> Iterator[tuple[str, str]]:
    for where, target in targets(board):
        if "expr" in target:
            yield where, target["expr"]
    for note in board["annotations"]["list"]:
        yield f"annotation {note['name']}", note["expr"]


def parsed(board: Board):
    for where, expr in expressions(board):
        try:
            yield where, expr, asked(filled(expr))
        except (ValueError, KeyError):  # target_promql tells
            continue


def variables_of(board: Board) -> dict[str, Board]:
    return {it["name"]: it for it in board["templating"]["list"]}


# -- the upstream rules --


def template_datasource(board):
    found = [it for it in board["templating"]["list"] if it["type"] == "datasource" and it["query"] == "prometheus"]
    if len(found) != 1:
        yield f"{len(found)} Prometheus data source variables"
    for it in found:
        if it["name"] not in {"datasource", "prometheus_datasource"}:
            yield f"the variable is called {it['name']}"
        wanted = "Data source" if it["name"] == "datasource" else "Prometheus data source"
        if it["label"] != wanted:
            yield f"its label is {it['label']}"


def template_job(board):
    job = variables_of(board).get("job")
    if job is None:
        yield "no variable job"
        return
    wanted = {"type": "query", "multi": True, "includeAll": True, "allValue": ".+", "label": "Job"}
    for key, value in wanted.items():
        if job.get(key) != value:
            yield f"job's {key} is {job.get(key)!r}"
    if job["datasource"]["uid"] not in {"$datasource", "${datasource}"}:
        yield "job's data source is not the variable"


def template_label_promql(board):
    for it in board["templating"]["list"]:
        if it["type"] != "query":
            continue
        query = re.fullmatch(r"label_values\((?:(.+), *)?(\$?\w+)\)", it["query"]["query"])
        if not query:
            yield f"{it['name']}: no label_values query"
            continue
        try:
            pp.parse(filled(query[1]))
        except (ValueError, KeyError) as error:
            yield f"{it['name']}: {error}"


def template_on_time_change_reload(board):
    for it in board["templating"]["list"]:
        if it["type"] == "query" and it["refresh"] != 2:
            yield f"{it['name']} refreshes on {it['refresh']}"


def panel_datasource(board):
    sources = {f"${{{it['name']}}}" for it in board["templating"]["list"] if it["type"] == "datasource"}
    for panel in panels(board):
        if panel["datasource"]["uid"] not in sources:
            yield f"panel {panel['id']} reads {panel['datasource']['uid']}"


def panel_title_description(board):
    for panel in panels(board):
        if not panel["title"] or not panel["description"]:
            yield f"panel {panel['id']} lacks title or description"


def panel_units(board):
    for panel in asking(board):
        unit = panel["fieldConfig"]["defaults"].get("unit", "")
        if unit not in UNITS and not unit.startswith(("time:", "suffix:")):  # forms of one's own
            yield f"panel {panel['id']} has no known unit"


def panel_no_targets(board):
    for panel in asking(board):
        if not panel["targets"]:
            yield f"panel {panel['id']} asks nothing"


def target_promql(board):
    for where, expr in expressions(board):
        try:
            pp.parse(filled(expr))
        except (ValueError, KeyError) as error:
            yield f"{where}: {error!r}"


def target_rate_interval(board):
    for where, expr in expressions(board):
        for span in re.findall(r"\b(?:rate|irate)\([^\[]*\[([^\]]*)\]", expr):
            if span != "$__rate_interval":
                yield f"{where}: rate over {span}"


def target_job(board):
    for where, expr, found in parsed(board):
        if 'job=~"$job"' not in expr:
            yield f"{where}: no job matcher"
        for name, matchers, _ in found.selectors:
            if "job" not in matchers:
                yield f"{where}: {name} without job"


def target_counter_agg(board):
    for where, _, found in parsed(board):
        for name, _, around in found.selectors:
            if name.endswith("_total") and not set(around) & {"rate", "irate", "increase"}:
                yield f"{where}: {name} outside rate and increase"


def target_logql(board):
    for where, target in targets(board):
        if target["datasource"]["type"] == "loki":
            yield f"{where}: a Loki query, which this lint cannot parse"


def target_logql_auto(board):
    for where, target in targets(board):
        if target["datasource"]["type"] == "loki" and "$__auto" not in target.get("expr", ""):
            yield f"{where}: a fixed range"


def uneditable(board):
    if board.get("editable") is not False:
        yield "editable is not false"


UPSTREAM = (
    template_datasource, template_job, template_label_promql, template_on_time_change_reload, panel_datasource,
    panel_title_description, panel_units, panel_no_targets, target_promql, target_rate_interval, target_job,
    target_counter_agg, target_logql, target_logql_auto, uneditable,
)  # fmt: skip

# -- our own --


def stable_uid(board):
    if not re.fullmatch(r"ragtrace-[a-z-]{1,31}", board["uid"]):
        yield f"uid {board['uid']}"


def schema_version(board):
    if board["schemaVersion"] not in {41, 42}:
        yield f"schemaVersion {board['schemaVersion']}"


def unique_panel_ids(board):
    rows = [it for it in board["panels"] if it["type"] == "row"]
    for number, count in Counter(it["id"] for it in (*rows, *panels(board))).items():
        if count > 1:
            yield f"{count} panels have id {number}"


def grid_without_overlap(board):
    taken: dict[tuple[int, int], int] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        if place["x"] < 0 or place["x"] + place["w"] > 24 or place["w"] < 1 or place["h"] < 1:
            yield f"panel {panel['id']} leaves the 24 columns"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if taken.setdefault((x, y), panel["id"]) != panel["id"]:
                    yield f"panels {taken[x, y]} and {panel['id']} overlap"
                    return


def telling_description(board):
    for panel in panels(board):
        if len(panel["description"]) < 40:
            yield f"panel {panel['id']}: {panel['description']!r}"


def no_value_text(board):
    for panel in panels(board):
        if not panel["fieldConfig"]["defaults"].get("noValue"):
            yield f"panel {panel['id']} has no text for no value"


NO_RATIO = {
    ("ragtrace-investigate", 11): "a band of a few hundredths is flat between 0 and 1",
    ("ragtrace-investigate", 26): "a band of a few hundredths is flat between 0 and 1",
    ("ragtrace-investigate", 41): "a change of a few hundredths is flat between 0 and 1",
}
LEGEND = {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True}


def one_legend(board):
    for panel in panels(board):
        if panel["type"] == "timeseries" and panel["options"]["legend"] != LEGEND:
            yield f"panel {panel['id']} has a legend of its own"


def fits_one_screen(board):
    # Others are read from top to bottom.
    if board["uid"] == "ragtrace-overview":
        for panel in board["panels"]:
            below = panel["gridPos"]["y"] + panel["gridPos"]["h"]
            if below > SCREEN_ROWS + panel.get("collapsed", False):
                yield f"panel {panel['id']} ends in grid row {below}"


def few_series_or_a_rule(board):
    """A panel of lines or values has at most seven: each query one, or the first of a rank that is named.

    Rows of a table and buckets of a heatmap are no lines.
    """
    for panel in panels(board):
        if panel["type"] not in {"timeseries", "stat"}:
            continue
        asked_for = [filled(it["expr"]) for it in panel["targets"] if "expr" in it]
        most = sum(_most_series(it) for it in asked_for)
        if most > MOST_LINES:
            yield f"panel {panel['id']} may show {most} series"
        told = f"{panel['title']} {panel['description']}"
        if any("topk" in it or "bottomk" in it for it in asked_for) and not re.search(
            r"(top|bottom|highest|worst) \d|\(\d|worst|most|nearest|largest|seven", told
        ):
            yield f"panel {panel['id']} does not name its rank"


def _most_series(expr: str) -> float:
    """The series that an expression gives at most, as far as its form tells; a scalar limits nothing."""
    return _lines(pp.parse(expr))


def _lines(node: object) -> float:
    if isinstance(node, pp.ParenExpr):
        return _lines(node.expr)
    if isinstance(node, pp.Call):
        return min((_lines(it) for it in node.args), default=math.inf)
    if isinstance(node, pp.AggregateExpr):
        if str(node.op) in {"topk", "bottomk"}:
            return math.inf if node.modifier else int(node.param.val)
        # A histogram is one series.
        joined = not is_without(node) and set(node.modifier.labels if node.modifier else ()) <= {"le"}
        return 1 if joined else _lines(node.expr)
    if isinstance(node, pp.BinaryExpr):
        left, right = _lines(node.lhs), _lines(node.rhs)
        return {"or": left + right, "unless": left}.get(str(node.op), min(left, right))
    return math.inf


def _shown(legend: str) -> str:
    return legend.replace("{{ragtrace_unit}}", "token").replace("{{", "").replace("}}", "")


def patterns_meet_a_legend(board):
    for panel in panels(board):
        legends = [_shown(it["legendFormat"]) for it in panel["targets"] if "legendFormat" in it]
        for it in panel["fieldConfig"]["overrides"] if legends else ():
            matcher = it["matcher"]
            if {each["id"] for each in it["properties"]} == {"color"}:  # by values that a label may have
                continue
            pattern = matcher["options"][1:-1]
            if matcher["id"] == "byRegexp" and not any(re.search(pattern, legend) for legend in legends):
                yield f"panel {panel['id']}: no legend has /{pattern}/"


def ratios_from_0_to_1(board):
    scores = {semconv.SCORE_WX, semconv.PASS_RATIO, semconv.COVERAGE_RATIO, semconv.EVALUATION_SCORE}
    shows: dict[str, set[str]] = {}
    for where, _, found in parsed(board):
        names = {it.name for name, _, _ in found.selectors if (it := instrument(name))}
        shows.setdefault(where.rpartition(" ")[0], set()).update(names)
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        is_score = panel["type"] == "timeseries" and bool(shows.get(f"panel {panel['id']}", set()) & scores)
        is_ratio = (is_score and (board["uid"], panel["id"]) not in NO_RATIO) or defaults["unit"] == "percentunit"
        if is_ratio and (defaults.get("min"), defaults.get("max")) != (0, 1):
            yield f"panel {panel['id']} is a ratio without the axis 0 to 1"


def templated_datasources(board):
    names = {f"${{{it['name']}}}" for it in board["templating"]["list"] if it["type"] == "datasource"}
    for path, value in walk(board):
        if path.endswith(("datasource/uid", "datasourceUid")) and value not in names:
            yield f"{path}: {value}"


def known_metrics(board):
    for where, _, found in parsed(board):
        for name, _, _ in found.selectors:
            if name not in FOREIGN and name not in RECORDED and instrument(name) is None:
                yield f"{where}: {name} is no metric of semconv and no recorded one"


def known_labels(board):
    for where, _, found in parsed(board):
        for name, matchers, _ in found.selectors:
            for label in set(matchers) - labels(name):
                yield f"{where}: {name} has no label {label}"
        for kept, names in found.grouped:
            for name in names:
                for label in kept - labels(name):
                    yield f"{where}: {name} has no label {label}"


_SUMS = {
    semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2, semconv.SCORE_LOW_W,
}  # fmt: skip
_HELD = {
    semconv.BASELINE_MEAN, semconv.BASELINE_SD, semconv.BASELINE_N, semconv.BASELINE_FROZEN_TIME,
}  # fmt: skip
_OF_A_PROCESS = {semconv.WINDOW_MEAN, semconv.WINDOW_LOW, semconv.WINDOW_HIGH, semconv.PASS_RATIO}


def nothing_is_averaged_that_differs(board):
    """Scores of two judges, scales, universes, workflows or K are never one number."""
    for where, expr in expressions(board):
        if where.startswith("annotation"):  # a mark in time
            continue
        for by, name in re.findall(r"(?:sum|avg|min|max) by \(([^)]*)\) \((?:increase\()?(\w+)", expr):
            found, kept = instrument(name), set(by.split(", "))
            if found is None:
                continue
            if found.name in _OF_A_PROCESS:
                yield f"{where}: {name} of several processes"
            needed = IDENTITY if found.name in _SUMS else HELD if found.name in _HELD else ()
            for label in set(needed) - kept:
                yield f"{where}: {name} over all {label}"


def no_pie(board):
    for panel in panels(board):
        if "pie" in panel["type"]:
            yield f"panel {panel['id']} is a pie"


def no_exact_bucket(board):
    # One exporter writes le="1", the next le="1.0".
    for where, _, found in parsed(board):
        for name, matchers, _ in found.selectors:
            if "le" in matchers:
                yield f"{where}: {name} selects a bucket"


def variables_exist_and_are_used(board):
    names = set(variables_of(board))
    used: set[str] = set()
    for _, value in walk(board):
        if isinstance(value, str):
            used |= {it for it in variables(value) if not it.startswith("__")}
    for name in used - names:
        yield f"${name} is no variable"
    for name in names - used:
        yield f"nothing uses ${name}"


OWN = (
    one_legend, fits_one_screen, few_series_or_a_rule,
    stable_uid, schema_version, unique_panel_ids, grid_without_overlap,
    telling_description, no_value_text, patterns_meet_a_legend, ratios_from_0_to_1, templated_datasources, known_metrics, known_labels,
    nothing_is_averaged_that_differs, no_pie, no_exact_bucket, variables_exist_and_are_used,
)  # fmt: skip


def instrument(series: str) -> semconv.Instrument | None:
    """The instrument of a series, also of a histogram's parts."""
    if series in SERIES:
        return None if SERIES[series].kind == "histogram" else SERIES[series]
    base = re.sub(r"_(bucket|sum|count)$", "", series)
    return SERIES[base] if base in SERIES and SERIES[base].kind == "histogram" else None


def labels(series: str) -> set[str]:
    """The labels a series may have."""
    if series in FOREIGN:
        return FOREIGN[series]
    if series in RECORDED:
        of_verdicts = {"job", WORKFLOW, VERDICT}
        return of_verdicts if series.startswith("ragtrace:verdict_") else {*IDENTITY, "culprit"}
    found = instrument(series)
    names = {semconv.prometheus_name(it, "") for it in found.attributes} if found else set()
    return names | {"job"} | ({"le"} if series.endswith("_bucket") else set())


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from walk(part, f"{path}/{key}")
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from walk(part, f"{path}/{at}")
    else:
        yield path, value
