"""Recording rules that name who caused a drop: the system, the judge, both, or unknown.

The judge's part of a recorded drop is the change of its scores of the same runs, from the gauges of the anchors.
The rest is the system's. A part is named when it exceeds its standard errors, `LEAST_PART`, and `LEAST_SHARE` of
the drop. Nobody is named while a drop still grows beside a judge that changed, since the rest is not known before.

The drop is that of the shortest window while it is young: when it exceeds the day's by more than its error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import DROP, ERROR, NORMAL
from ragtrace_dashboards.drift_rule.windows import WANDER_FACTOR, mean_and_size, turned
from ragtrace_dashboards.expressions import IDENTITY, WORKFLOW, Z95, gauge_by, on, watching
from ragtrace_dashboards.rules import Rule

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

CULPRIT: Final = "ragtrace:drift_culprit"
PART: Final = "ragtrace:drift_judge_part"
"""Names of the recorded culprit, by its label ``culprit``, and of the judge's part of the drop."""

JUDGE_ERRORS: Final = 3.0
"""Standard errors at which the judge has a part in a drop."""
SYSTEM_ERRORS: Final = 1.8
"""Standard errors at which the rest of the drop is the system's."""
FEW_ERRORS, MANY_ERRORS = 0.9, 2.2
"""The same beside a judge that changed, while the drop is young: below the first the judge alone is named, from the
second on both, and nobody between them."""
GROWING_ERRORS: Final = 0.5
"""Errors by which the last three hours lie below the three before them while a young drop grows."""
LEAST_PART: Final = 0.01
"""A part of a drop that is smaller, in score units, names nobody."""
LEAST_SHARE: Final = 0.2
"""And so does a smaller share of the drop."""
MOST_HIDDEN: Final = 0.5
"""The system is named alone only where at most this share of the drop can be the judge's, with 95 % confidence."""
HALF_WANDER: Final = 0.01

_FELL, _PART_ERROR, _REST = "ragtrace:culprit_drop", "ragtrace:culprit_part_error", "ragtrace:culprit_rest"
HALF_MEAN, HALF_SIZE = "ragtrace:score_mean:half", "ragtrace:score_n_eff:half"
_JUDGED = tuple(it for it in IDENTITY if it != WORKFLOW)
"""Labels by which the anchors are exported: a judge scores them for every workflow."""


def culprit_rules(config: Config) -> list[Rule]:
    """Return the recording rules, in the order in which they need each other."""
    half_s = config.fast_window_s // 2
    mean, size = mean_and_size(config, half_s)
    where, join = watching(it.name for it in config.metrics), f"{on(_JUDGED)} group_left ()"
    change, low, high = (
        gauge_by("avg", name, _JUDGED, where)
        for name in (semconv.ANCHOR_MEAN, semconv.ANCHOR_LOW, semconv.ANCHOR_HIGH)
    )
    return [
        Rule(
            record=_FELL,
            expr=f"{DROP}:fast > {DROP}:day + {ERROR}:fast\nor {DROP}:day",
            says="The drop to explain: that of the shortest window while it is young, else the day's.",
        ),
        Rule(record=HALF_MEAN, expr=mean, says=f"Weighted mean of the last {duration(half_s)}."),
        Rule(record=HALF_SIZE, expr=size, says=f"Effective number of scores of the last {duration(half_s)}."),
        Rule(
            record=PART,
            expr=_part(config, f"{join} {change}"),
            says="The judge's part of the drop: by how much it scores the same runs worse.",
        ),
        Rule(
            record=_PART_ERROR,
            expr=f"0 * {_FELL}\n+ {join} (\n  {high}\n  - {low}\n) / {2 * Z95:g}",
            says="Standard error of that part.",
        ),
        Rule(
            record=_REST,
            expr=f"({_FELL} - {PART})\n"
            f"/ sqrt(({ERROR}:fast and {_young()} or {ERROR}:day) ^ 2 + {_PART_ERROR} ^ 2)",
            says="The rest of the drop, in standard errors: what the judge does not explain.",
        ),
        Rule(
            record=CULPRIT,
            expr=_words(config),
            says="Who caused the drop, by the label culprit: judge, system, both or unknown.",
        ),
    ]


def _young() -> str:
    return f"{_FELL} > {DROP}:day"


def _part(config: Config, change: str) -> str:
    """Return the change of the judge's scores, turned so that above 0 is worse."""
    sign = f"(0 * {_FELL} - 1)"
    if config.down_metrics:
        sign = f"(0 * {_FELL}{{{watching(config.down_metrics)}}} + 1 or 0 * {_FELL} - 1)"
    return f"{sign}\n* {change}\n+ 0"  # -1 times 0 would be told as -0.000


def _growing(config: Config) -> str:
    """Return the young drops whose last half lies lower than the half before it by more than half an error."""
    before = f" offset {duration(config.fast_window_s // 2)}"
    fell = turned(config, HALF_MEAN, HALF_MEAN, before)
    one = f"1 / {HALF_SIZE} + 1 / ({HALF_SIZE}{before})"
    error = f"sqrt({NORMAL}_s2:day * ({one}) + {WANDER_FACTOR * HALF_WANDER**2:g})"
    return f"({_young()} and ({fell}) > {GROWING_ERRORS:g} * {error})"


def _words(config: Config) -> str:
    """Return the culprit of each drop: the first of the words whose condition holds."""
    least = f"clamp_min({LEAST_SHARE:g} * {_FELL}, {LEAST_PART:g})"
    by_judge = f"({PART} >= {least} and {PART} >= {JUDGE_ERRORS:g} * {_PART_ERROR} and {_FELL} > 0)"
    # Beside a judge that changed, a young drop names nobody between few and many errors; above many it is both.
    between = f"({_REST} >= {FEW_ERRORS:g} and {_REST} < {MANY_ERRORS:g} and {_young()})"
    by_system = f"({_FELL} - {PART} >= {least} and {_REST} >= {SYSTEM_ERRORS:g})"
    cleared = f"{PART} + {Z95:g} * {_PART_ERROR} <= clamp_min({MOST_HIDDEN:g} * {_FELL}, {LEAST_PART:g})"
    words = {
        "unknown": f"{by_judge} and (\n    {_growing(config)}\n    or {between}\n  )",
        "both": f"{by_judge} and {by_system}",
        "judge": by_judge,
        "system": f"{by_system} and {cleared} and {_FELL} > 0",
    }
    named = "\n  or ignoring (culprit) ".join(_word(word, expr) for word, expr in words.items())
    return f"1 + 0 * (\n  {named}\n  or ignoring (culprit) {_word('unknown', f'{_FELL} > 0')}\n)"


def _word(word: str, expr: str) -> str:
    return f'label_replace({expr}, "culprit", "{word}", "", "")'
