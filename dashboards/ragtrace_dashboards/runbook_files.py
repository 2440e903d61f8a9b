"""The runbook page of each alert, with its numbers filled in from the configuration it is exported for.

A template in ``runbooks/`` holds the text; ``{{tolerance}}`` stands for a field of `Config` (times in words, in
code as PromQL writes them), ``{{panel.z}}`` for a panel of `PANELS`. So no page states a window or a gate
of another configuration than the rules beside it.
"""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import resources
from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.alerts import POWER_Z, alerts
from ragtrace_dashboards.boards import all_boards
from ragtrace_dashboards.config import PANELS, Config, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace_dashboards.alerts import Alert

FOLDER: Final = "runbooks"
INDEX: Final = f"{FOLDER}/README.md"
_PLACE = re.compile(r"\{\{([\w.]+)\}\}")
_LINK = re.compile(r"\[([^\]]+)\]\((Ragtrace\w+)\.md[^)]*\)")
_CODE = re.compile(r"(```.*?```)", re.DOTALL)
RULE_FIELDS: Final = (
    "day_window_s", "days_window_s", "fast_window_s", "baseline_s", "tolerance", "fast_tolerance", "z", "fast_z",
    "min_n_eff", "min_baseline_n_eff",
)  # fmt: skip
"""Settings of the simulation. With another value of any of them, pages state no measured rates."""

_MEASURED = """\
The false-alarm rate was simulated, not observed. The simulated scores had a daily and weekly rhythm, a daily mean
that wandered by .006, and bursts of hard topics. The chance of any false alarm in 30 days was 7.2 % at 200 scores a
day and 1.4 % at 5,000 (1,000 months each; 95 % intervals 5.8 to 9.0 and .8 to 2.3). This is the chance for **one**
metric of one workflow, and each further one adds its own. Without these disturbances, 100 months had no false
alarm. Median times to find a drop, at 200 and at 5,000 scores a day:

| drop | 200 a day | 5,000 a day |
|---|---|---|
| from .92 to .85 | .9 days | 6 hours |
| from .92 to .80 | 7 hours | 3 hours |

An earlier simulation found 6 % and 1 % false alarms, 1.2 days and 6.5 hours, 12 and 3.4 hours, and 3 to 5 days for
a slide to .85 over a week. Your traffic differs, so count your own alarms."""
_UNMEASURED = """\
False-alarm rates and delays were simulated for other settings than these. For this configuration, both are
unknown."""


def runbook_files(config: Config) -> dict[str, str]:
    """Return the page of each alert and their index by path.

    Raises:
        KeyError: a placeholder is neither a field of the configuration nor a panel.

    Example:
        >>> page = runbook_files(Config())["runbooks/RagtraceQualityDrift.md"]
        >>> page.splitlines()[0]
        '# RagtraceQualityDrift'
    """
    values, every = dict(_values(config)), alerts(config)
    names = {alert.name for alert in every}
    pages = {f"{FOLDER}/{alert.name}.md": _linked(_page(alert, values), names) for alert in every}
    return {INDEX: _index(every, values)} | pages


def template(name: str) -> str:
    """Return what stands in the package for an alert, placeholders and all."""
    return (resources.files("ragtrace_dashboards") / FOLDER / f"{name}.md").read_text(encoding="utf-8")


def filled(text: str, values: dict[str, str]) -> str:
    """Return a template with its placeholders filled; a time in a block of code has its short form.

    Example:
        >>> values = {"hour": "1 hour", "hour.short": "1h"}
        >>> filled("within {{hour}}: ```x[{{hour}}]```", values)
        'within 1 hour: ```x[1h]```'
    """

    def fill(part: str) -> str:
        is_code = part.startswith("```")
        return _PLACE.sub(lambda found: values.get(f"{found[1]}.short" if is_code else "", values[found[1]]), part)

    return "".join(fill(part) for part in _CODE.split(text))


def in_words(seconds: int) -> str:
    """Return whole seconds in words, in the largest unit that divides them.

    Example:
        >>> in_words(86_400), in_words(21_600)
        ('1 day', '6 hours')
    """
    number, unit = duration(seconds)[:-1], {"d": "day", "h": "hour", "m": "minute", "s": "second"}
    return f"{number} {unit[duration(seconds)[-1]]}{'' if number == '1' else 's'}"


def _values(config: Config) -> Iterator[tuple[str, str]]:
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name.endswith("_s"):
            name = field.name.removesuffix("_s")
            yield name, in_words(value)
            yield f"{name}.short", duration(value)
        elif isinstance(value, int | float):
            yield field.name, f"{value:g}"
        elif isinstance(value, str):
            yield field.name, value
    yield "baseline_rest", in_words(config.baseline_rest_s)
    yield "metrics", ", ".join(f"`{it.name}`" for it in config.metrics)
    special = {"selection_efficiency_at_k", "harm_at_k"}
    yield "quality", ", ".join(f"`{it.name}`" for it in config.metrics if it.name not in special)
    yield "good_percent", f"{100 * config.good_share:g} %"
    yield "low_percent", f"{100 * (1 - config.good_share):g} %"
    yield "detectable_z", f"{config.z + POWER_Z:g}"
    is_measured = all(getattr(config, name) == getattr(Config(), name) for name in RULE_FIELDS)
    yield "measured", _MEASURED if is_measured else _UNMEASURED
    yield from _panels(config)


def _panels(config: Config) -> Iterator[tuple[str, str]]:
    drawn = {board.uid: board for board in all_boards(config)}
    for topic, (uid, number) in PANELS.items():
        board = drawn[uid]
        address = f"{config.grafana_url}/d/{uid}?viewPanel={number}"
        yield f"panel.{topic}", f'"{board.panel_title(number)}" ([{board.title}]({address}))'


def _page(alert: Alert, values: dict[str, str]) -> str:
    waits = f"after {in_words(alert.for_s)}" if alert.for_s else "at once"
    panel = f"Panel: {values[f'panel.{alert.topic}']}"
    return "\n".join(
        (
            f"# {alert.name}\n",
            f"Severity **{alert.severity}**, fires {waits}. {panel}. [All alerts](README.md)\n",
            filled(template(alert.name), values).rstrip(),
            "\n## The rule in full\n",
            f"As it stands in the Prometheus form.\n\n```promql\n{alert.expr}\n```\n",
        )
    )


def _linked(text: str, names: set[str]) -> str:
    """Take the links to pages away that this configuration has no alert for; their words stay."""
    return _LINK.sub(lambda found: found[0] if found[2] in names else found[1], text)


def _index(every: list[Alert], values: dict[str, str]) -> str:
    rows = "\n".join(
        f"| [{alert.name}]({alert.name}.md#meaning) | {alert.severity} | {values[f'panel.{alert.topic}']} |"
        for alert in every
    )
    return f"# What to do when an alert fires\n\n| alert | severity | panel |\n|---|---|---|\n{rows}\n"
