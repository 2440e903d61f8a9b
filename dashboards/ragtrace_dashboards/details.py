"""Templates of alert texts that ask Prometheus for recorded series.

Each leaves out what is not recorded, so a text has no empty brackets. Grafana's templates cannot ask for a series:
its alerts have the plain texts of `alerts.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import DROP, ERROR, LIMIT, MEAN, N_EFF, NORMAL, arms
from ragtrace_dashboards.drift_rule.culprit import CULPRIT, PART
from ragtrace_dashboards.expressions import IDENTITY, METRIC, VERDICT, WORKFLOW, Z95
from ragtrace_dashboards.shares import BEFORE, FLOW, GROWN, NOW

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

WHOSE_MEAN: Final = f"{{{{ $labels.{METRIC} }}}}{{{{ with $labels.{WORKFLOW} }}}} of {{{{ . }}}}{{{{ end }}}}"
"""Template of a metric and its workflow."""

_SCORE: Final = '{{ . | first | value | printf "%.3f" }}'
_COUNT: Final = '{{ . | first | value | printf "%.0f" }}'
_BACK, _STEPS = 4, 36
"""How many windows back a beginning is looked for, and how many steps a window has."""


def quoted(label: str) -> str:
    r"""Return a template of a label as one word of a shell: in single quotes where a character needs them.

    Quotes and backticks are taken away, so that no shell and no chat message reads a name as code.

    Example:
        >>> print(quoted("job"))
        {{ reReplaceAll "^(.*[^\\w.:/-].*)$" "'$1'" (reReplaceAll "['`\\s]+" " " $labels.job) }}
    """
    plain = f"""reReplaceAll "['`\\\\s]+" " " $labels.{label}"""
    return f"""{{{{ reReplaceAll "^(.*[^\\\\w.:/-].*)$" "'$1'" ({plain}) }}}}"""


def command_of(since: str) -> str:
    """Return the template of the command that investigates the alert's metric and workflow."""
    flow = f"{{{{ if $labels.{WORKFLOW} }}}} --workflow {quoted(WORKFLOW)}{{{{ end }}}}"
    return f"ragtrace investigate --since {since} --metric {quoted(METRIC)}{flow}"


def fallen_command(config: Config) -> str:
    """Return the same command for the shortest window that fires."""
    return _arm(config) + command_of("{{ $window }}")


def fallen(config: Config, plain: str) -> str:
    """Return the template of the first sentence: both means, interval, beginning, stage and command.

    They are those of the shortest window that fires. Where no window is recorded, the plain words stand there.
    """
    drop, error = f"{DROP}:%[2]s{{%[1]s}}", f"{Z95:g} * {ERROR}:%[2]s{{%[1]s}}"
    low, high = (_with(f"{drop} {sign} {error}", _SCORE, "$arm") for sign in "-+")
    interval = _with(error, f", 95 % interval {low} to {high}", "$arm")
    by = _with(drop, f" (by {_SCORE}{interval})", "$arm")
    verb = '{{ if lt $mean $base }}fell{{ else }}rose{{ end }}{{ printf " from %.3f to %.3f" $base $mean }}'
    sentence = "{{ $base := . | first | value }}" + _with(
        f"{MEAN}:%[2]s{{%[1]s}}",
        f"{{{{ $mean := . | first | value }}}}{WHOSE_MEAN} {verb}{by}{_since()}{_stage()}",
        "$arm",
        otherwise=plain,
    )
    said = _with(f"{NORMAL}_mean:%[2]s{{%[1]s}}", sentence, "$normal", otherwise=plain)
    return f"{_arm(config)}{said}. Run: {command_of('{{ $window }}')}"


def evidence(config: Config) -> str:
    """Return the template of the number of effective scores, and of the drop that noise may make."""
    limit = _with(f"{LIMIT}:%[2]s{{%[1]s}}", f", whose noise stays below {_SCORE}", "$arm")
    size = f"{_COUNT} effective scores within {{{{ $window }}}}{limit}."
    return _arm(config) + _with(f"{N_EFF}:%[2]s{{%[1]s}}", size, "$arm")


def effective_scores(config: Config) -> str:
    """Return the template of the number of effective scores within a day."""
    size = f"{_COUNT} effective scores within {duration(config.day_window_s)}."
    return _of(IDENTITY) + _with(f"{N_EFF}:day{{%[1]s}}", size)


def culprit_text() -> str:
    """Return the template of who caused a drop. It is empty where no anchors tell."""
    said = f"Culprit: {{{{ $word }}}}. Of the drop, the judge's part is {_SCORE}."
    part = "{{ $word := (first .).Labels.culprit }}" + _with(f"round({PART}{{%[1]s}}, 0.001) + 0", said)
    return _of(IDENTITY) + _with(f"{CULPRIT}{{%[1]s}}", part)


def _arm(config: Config) -> str:
    """Return the beginning of a template: variables for the names of the shortest window that fires."""
    shortest, *longer = arms(config)

    def names(arm: Arm, sign: str) -> str:
        values = {
            "arm": arm.name,
            "normal": arm.base,
            "window": duration(arm.window_s),
            "shares": "fast" if arm.name == "fast" else "day",
            "back": f"{duration(_BACK * arm.window_s)}:{duration(max(arm.window_s // _STEPS, 1))}",
            "half": f"{arm.window_s // 2}",
            "layout": "15:04" if arm.window_s < 86_400 else "2 Jan 15:04",
        }
        return "".join(f'{{{{ ${name} {sign} "{value}" }}}}' for name, value in values.items())

    def fires(arm: Arm) -> str:
        return f"query (printf `{DROP}:{arm.name}{{%s}} > {LIMIT}:{arm.name}` $of)"

    other = "".join(f"{{{{ else if {fires(arm)} }}}}{names(arm, '=')}" for arm in longer)
    return f"{_of(IDENTITY)}{names(shortest, ':=')}{{{{ if {fires(shortest)} }}}}{other}{{{{ end }}}}"


def _since() -> str:
    """Return the template of the beginning of the fall, as far as the window tells.

    While a step moves through a window, the drop rises evenly. So the step lies as long before the time of half of
    the drop as that lies before now, and never longer than half of the window.
    """
    drop = f"{DROP}:%[2]s{{%[1]s}}"
    half = f"max_over_time(timestamp({drop} <= 0.5 * ({drop} @ end()))[%[3]s])"
    began = f"{half} - clamp_max(time() - {half}, %[4]s)"
    time = " since about {{ ((. | first | value) | toTime).UTC.Format $layout }} UTC"
    return _with(began, time, "$arm $back $half")


def _stage() -> str:
    """Return the template of the verdict that surely grew most, with its share before and now."""

    def share(name: str, shown: str) -> str:
        asked = f"100 * {name}:%s{{%s,{VERDICT}=%q}}"
        return f"{{{{ with query (printf `{asked}` $shares $flow $verdict) }}}}{shown}{{{{ end }}}}"

    before = "{{ $before := . | first | value }}"
    grown = share(
        BEFORE, before + share(NOW, '{{ . | first | value | printf " (%.1f %% to %.1f %% of runs)" $before }}')
    )
    return (
        f"{{{{ $flow := {_matchers(FLOW)} }}}}{{{{ with query (printf `{GROWN}:%s{{%s}}` $shares $flow) }}}}"
        f'{{{{ $verdict := (first .).Labels.{VERDICT} }}}}, mostly "{{{{ $verdict }}}}"{grown}{{{{ end }}}}'
    )


def _of(labels: tuple[str, ...]) -> str:
    """Return the beginning of a template: the matchers of the alert's series."""
    return f"{{{{ $of := {_matchers(labels)} }}}}"


def _matchers(labels: tuple[str, ...]) -> str:
    return f"printf `{','.join(f'{it}=%q' for it in labels)}` {' '.join(f'$labels.{it}' for it in labels)}"


def _with(query: str, shown: str, names: str = "", *, otherwise: str = "") -> str:
    """Return the template of what a query's answer shows, and of what stands there without an answer.

    In the query ``%[1]s`` stands for the matchers of the alert's series, and ``%[2]s`` for the first of the names.
    """
    given, other = f"$of {names}".rstrip(), f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{{{{ with query (printf `{query}` {given}) }}}}{shown}{other}{{{{ end }}}}"
