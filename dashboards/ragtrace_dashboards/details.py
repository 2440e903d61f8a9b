"""Templates of annotations that ask Prometheus for recorded series, and quote labels for a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.drift_rule.baselines import NORMAL
from ragtrace_dashboards.drift_rule.variances import DROP, THRESHOLD, VARIANCE, Z
from ragtrace_dashboards.expressions import HELD, VERDICT, Z95, on
from ragtrace_dashboards.shares import BEFORE, FLOW, GROWN, NOW

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

_PERCENT: Final = "{{ . | value | humanizePercentage }}"
_SCORE: Final = '{{ . | value | printf "%.3f" }}'
_COUNT: Final = '{{ . | value | printf "%.0f" }}'
# Numbered, since a query names its labels several times.
_SERIES: Final = ",".join(f"{name}=%[{number}]q" for number, name in enumerate(HELD, 1))
_LABELS: Final = " ".join(f"$labels.{name}" for name in HELD)
_ARM: Final = len(HELD) + 1


def quoted(label: str) -> str:
    r"""Return a template of a label in single quotes, which no shell and no chat message reads as code.

    Example:
        >>> quoted("job")
        '\'{{ reReplaceAll "[\'`]" "" $labels.job }}\''
    """
    return f"""'{{{{ reReplaceAll "['`]" "" $labels.{label} }}}}'"""


def change_text(config: Config) -> str:
    """Return the template of how much worse the mean is, in the first window that fires, else in the day's."""
    firing = [_named(f"{DROP}:{arm.name}{{{_SERIES}}} and {_fires(arm)}", arm) for arm in arms(config)]
    day = next(it for it in arms(config) if it.name == "day")
    first = f" or {on(HELD)} ".join([*firing, _named(f"{DROP}:day{{{_SERIES}}}", day)])
    error = f"{Z95:g} * sqrt({VARIANCE}:%[{_ARM}]s{{{_SERIES}}})"
    drop = f"{DROP}:%[{_ARM}]s{{{_SERIES}}}"
    low, high = (_asked(f"{drop} {sign} {error}", "arm", _SCORE) for sign in "-+")
    mean = _asked(f"ragtrace:score_mean:%[{_ARM}]s{{{_SERIES}}}", "arm", _SCORE)
    size = _asked(f"ragtrace:score_n_eff:%[{_ARM}]s{{{_SERIES}}}", "arm", _COUNT)
    base = _asked(f"{NORMAL}_mean:%[{_ARM}]s{{{_SERIES}}}", "base", _SCORE)
    return (
        f"{{{{ range $arm := query (printf `{first}` {_LABELS}) }}}}"
        f'Worse by {{{{ $arm | value | printf "%.3f" }}}} (95 % interval {low} to {high}). '
        f"Mean of {{{{ $arm.Labels.window }}}}: {mean}, from {size} effective scores. Baseline: {base}."
        f"{{{{ end }}}}"
    )


def effective_scores(config: Config) -> str:
    """Return the template of the number of effective scores within a day."""
    asked = f"ragtrace:score_n_eff:day{{{_SERIES}}}"
    return (
        f"{{{{ range query (printf `{asked}` {_LABELS}) }}}}{_COUNT} effective scores within "
        f"{duration(config.day_window_s)}.{{{{ end }}}}"
    )


def grown_verdict(config: Config) -> str:
    """Return the template of the verdict that grew most, with its share before and now.

    The window is that of the alert's first arm that fires. Nothing is said where no share surely grew.
    """
    flow = ",".join(f"{name}=%q" for name in FLOW)
    whose = ",".join(f"{name}=%[{number}]q" for number, name in enumerate(HELD, 1) if name in FLOW)
    first = f" or {on(FLOW)} ".join(
        _named(f"{GROWN}:{arm.name}{{{whose}}} and {on(FLOW)} {_fires(arm)}", arm) for arm in arms(config)
    )
    chosen = f"{flow},{VERDICT}=%q"
    one = f"$grown.Labels.arm {' '.join(f'$labels.{name}' for name in FLOW)} $grown.Labels.{VERDICT}"
    before, now = (
        f"{{{{ range query (printf `{name}:%s{{{chosen}}}` {one}) }}}}{_PERCENT}{{{{ end }}}}"
        for name in (BEFORE, NOW)
    )
    return (
        f"{{{{ range $grown := query (printf `{first}` {_LABELS}) }}}}The verdict that grew most within "
        f"{{{{ $grown.Labels.window }}}} is {{{{ $grown.Labels.{VERDICT} }}}}, from {before} of the runs before to "
        f"{now} now.{{{{ end }}}}"
    )


def _fires(arm: Arm) -> str:
    return f"{Z}:{arm.name}{{{_SERIES}}} > scalar({THRESHOLD}:{arm.name})"


def _named(expr: str, arm: Arm) -> str:
    """Label an expression with the name, the length and the baseline of its window."""
    for name, value in (("arm", arm.name), ("base", arm.base), ("window", duration(arm.window_s))):
        expr = f'label_replace({expr}, "{name}", "{value}", "", "")'
    return expr


def _asked(expr: str, arm: str, shown: str) -> str:
    return f"{{{{ range query (printf `{expr}` {_LABELS} $arm.Labels.{arm}) }}}}{shown}{{{{ end }}}}"
