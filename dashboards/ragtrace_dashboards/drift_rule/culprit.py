"""Recording rules that name who caused a drop: the system, the judge, both, or unknown.

The same decision as `ragtrace.stats.culprit`, over the recorded drops and the gauges of the anchors. The judge's
part is the change of its scores of the same runs. The rest is the system's. A promtool test holds the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift_rule import variances
from ragtrace_dashboards.drift_rule.baselines import NORMAL
from ragtrace_dashboards.expressions import (
    HELD,
    IDENTITY,
    SERIES,
    WORKFLOW,
    Z95,
    gauge_by,
    on,
    recording,
    summed,
    watching,
)

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

CULPRIT: Final = "ragtrace:drift_culprit"
PART: Final = "ragtrace:drift_judge_part"
"""Names of the recorded culprit, by its label ``culprit``, and of the judge's part of the drop."""

JUDGE_ERRORS, SYSTEM_ERRORS, FEW_ERRORS, MANY_ERRORS, GROWING_ERRORS = 3.0, 1.8, 0.9, 2.2, 0.5
LEAST_PART, LEAST_SHARE, MOST_HIDDEN = 0.01, 0.2, 0.5
HALF_WANDER = 0.01
"""Numbers of `ragtrace.stats.culprit`, which this package cannot import."""

_DROP, _ERROR, _YOUNG = "ragtrace:culprit_drop", "ragtrace:culprit_drop_error", "ragtrace:culprit_young"
_CHANGE, _CHANGE_ERROR = "ragtrace:judge_change", "ragtrace:judge_change_error"
_PART_ERROR, _REST, _REST_ERROR = (
    "ragtrace:culprit_part_error",
    "ragtrace:culprit_rest",
    "ragtrace:culprit_rest_error",
)
_RISE, _RISE_ERROR, _LEAST = "ragtrace:culprit_rise", "ragtrace:culprit_rise_error", "ragtrace:culprit_least"
_BY_JUDGE, _BY_SYSTEM = "ragtrace:culprit_by_judge", "ragtrace:culprit_by_system"
_JUDGED = tuple(it for it in IDENTITY if it != WORKFLOW)
"""Labels by which the anchors are exported: a judge scores them for every workflow."""


def culprit_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules, in the order in which they need each other."""
    day, fast = (f"{variances.DROP}:{name}" for name in ("day", "fast"))
    day_error, fast_error = (f"sqrt({variances.VARIANCE}:{name})" for name in ("day", "fast"))
    return [
        recording(_YOUNG, f"{fast} - {day} > {fast_error}"),
        recording(_DROP, f"({fast} and {_YOUNG}) or {day}"),
        recording(_ERROR, f"({fast_error} and {_YOUNG}) or {day_error}"),
        recording(_LEAST, f"clamp_min({LEAST_SHARE:g} * {_DROP}, {LEAST_PART:g})"),
        *_rise_rules(config),
        *_part_rules(config),
        recording(_BY_JUDGE, f"{PART} >= {_LEAST} and {PART} >= {JUDGE_ERRORS:g} * {_PART_ERROR} and {_DROP} > 0"),
        recording(_BY_SYSTEM, _by_system()),
        recording(CULPRIT, _words()),
    ]


def culprit_text() -> str:
    """Return the template of an annotation that names the culprit. It is empty where no drop is recorded."""
    chosen, values = ",".join(f"{name}=%q" for name in HELD), " ".join(f"$labels.{name}" for name in HELD)
    part = '{{ . | value | printf "%.3f" }}'
    return (
        f"{{{{ range query (printf `{CULPRIT}{{{chosen}}}` {values}) }}}}Culprit: {{{{ .Labels.culprit }}}}."
        f"{{{{ end }}}}{{{{ range query (printf `{PART}{{{chosen}}}` {values}) }}}} Of the drop, the judge's part"
        f" is {part}.{{{{ end }}}}"
    )


def _rise_rules(config: Config) -> list[dict[str, str]]:
    """Return how far the last half of the fast window lies below the half before it, with its standard error."""
    half = duration(config.fast_window_s // 2)
    where = watching(it.name for it in config.metrics)
    w, wx, w2 = (
        summed(SERIES[name], half, IDENTITY, where)
        for name in (semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2)
    )
    mean, n = "ragtrace:score_mean:half", "ragtrace:score_n_eff:half"
    before = f"{mean} offset {half}"
    one = f"(1 / {n} + 1 / ({n} offset {half}))"
    variance = f"{NORMAL}_s2:day * {one} + {variances.WANDER_FACTOR * HALF_WANDER**2:g}"
    return [
        recording(mean, f"{wx} / ({w} > 0)"),
        recording(n, f"({w}) ^ 2 / ({w2} > 0)"),
        recording(_RISE, _turned(config, before, mean)),
        recording(_RISE_ERROR, f"sqrt({variance})"),
    ]


def _turned(config: Config, better: str, worse: str) -> str:
    down = config.down_metrics
    if not down:
        return f"{better} - {worse}"
    lower = watching(down)
    return f"({better} - {worse} unless {_DROP}{{{lower}}})\nor ({worse} - {better} and {_DROP}{{{lower}}})"


def _part_rules(config: Config) -> list[dict[str, str]]:
    """Return the judge's part of each drop, and the rest, with their standard errors."""
    where = watching(it.name for it in config.metrics)
    mean, low, high = (
        gauge_by("avg", name, _JUDGED, where)
        for name in (semconv.ANCHOR_MEAN, semconv.ANCHOR_LOW, semconv.ANCHOR_HIGH)
    )
    join = f"{on(_JUDGED)} group_left ()"
    down = config.down_metrics
    part = f"0 * {_DROP} - {join} {_CHANGE}"
    if down:
        lower = f"{_DROP}{{{watching(down)}}}"
        part = f"({part} unless {lower})\nor (0 * {lower} + {join} {_CHANGE})"
    return [
        recording(_CHANGE, mean),
        recording(_CHANGE_ERROR, f"({high} - {low}) / {2 * Z95:g}"),
        recording(PART, part),
        recording(_PART_ERROR, f"0 * {_DROP} + {join} {_CHANGE_ERROR}"),
        recording(_REST, f"{_DROP} - {PART}"),
        recording(_REST_ERROR, f"sqrt({_ERROR} ^ 2 + {_PART_ERROR} ^ 2)"),
    ]


def _by_system() -> str:
    """Return the rests that are the system's; beside a judge that changed, a young drop needs more."""
    many = f"{_REST} >= {MANY_ERRORS:g} * {_REST_ERROR} and {_YOUNG} and {_BY_JUDGE}"
    usual = f"{_REST} >= {SYSTEM_ERRORS:g} * {_REST_ERROR} unless ({_YOUNG} and {_BY_JUDGE})"
    return f"({_REST} >= {_LEAST}) and (({many}) or ({usual}))"


def _words() -> str:
    growing = f"({_YOUNG} and {_RISE} > {GROWING_ERRORS:g} * {_RISE_ERROR})"
    between = (
        f"({_REST} >= {FEW_ERRORS:g} * {_REST_ERROR} and {_REST} < {MANY_ERRORS:g} * {_REST_ERROR} and {_YOUNG})"
    )
    cleared = f"({PART} + {Z95:g} * {_PART_ERROR} <= clamp_min({MOST_HIDDEN:g} * {_DROP}, {LEAST_PART:g}))"
    known = f"({_BY_JUDGE} unless {growing} unless {between})"
    words = {
        "judge": f"{known} unless {_BY_SYSTEM}",
        "both": f"{known} and {_BY_SYSTEM}",
        "system": f"{_BY_SYSTEM} and {cleared} and {_DROP} > 0 unless {_BY_JUDGE}",
    }
    named = [_word(word, expr) for word, expr in words.items()]
    unknown = " ".join(f"unless ({expr})" for expr in words.values())
    return "\nor ".join([*named, _word("unknown", f"{_DROP} > 0 {unknown}")])


def _word(word: str, expr: str) -> str:
    return f'label_replace(0 * ({expr}) + 1, "culprit", "{word}", "", "")'
