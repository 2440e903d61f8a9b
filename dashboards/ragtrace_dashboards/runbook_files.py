"""The runbook page of each alert, with its numbers filled in from the configuration it is exported for.

A template in ``runbooks/`` holds the text; ``{{tolerance}}`` stands for a field of `Config` (times in words, in
code as PromQL writes them), ``{{panel.drop}}`` for a panel of `PANELS`, ``{{panel}}`` for the alert's own. So
no page states a window or a gate of another configuration than the rules beside it.
"""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import resources
from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.alerts import alerts
from ragtrace_dashboards.boards import all_boards
from ragtrace_dashboards.config import PANELS, Config, duration
from ragtrace_dashboards.drift import arms, back_below
from ragtrace_dashboards.drift_rule.blind import POWER_Z
from ragtrace_dashboards.rule_files import ANCHOR, RUNBOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace_dashboards.alerts import Alert

INDEX: Final = f"{RUNBOOKS}/README.md"
_PLACE = re.compile(r"\{\{([\w.]+)\}\}")
_LINK = re.compile(r"\[([^\[\]]++)\]\((Ragtrace\w+)\.md[^)]*\)")
_CODE = re.compile(r"(```.*?```)", re.DOTALL)
RULE_FIELDS: Final = (
    "fast_window_s", "day_window_s", "week_window_s", "baseline_s", "tolerance", "fast_tolerance",
    "z", "week_z", "fast_z", "fall", "family", "block_s", "fast_block_s", "wander_s", "wander_rest_s",
    "wander_prior", "wander_scores", "wander_weight_s", "wander_cap", "fast_wander_cap", "wander_sampling",
    "min_n_eff", "min_baseline_n_eff",
)  # fmt: skip
"""Settings of the simulation. With another value of any of them, pages state no measured rates."""

_MEASURED = """\
The false-alarm rate was simulated, not observed, in 32 worlds: wandering means, weekends, releases, holidays,
sessions, shapes of scores. On average, 1.2 % of months had a false alarm, and 4.8 % in the worst of these
worlds. This is the rate for one metric of one workflow. Each further one widens the limits, so that the rate of all
together stays as low. Median times to find a drop that begins at a random hour, where one series is watched:

| scores a day | from 0.92 to 0.85 | from 0.92 to 0.80 |
|---|---|---|
| 20 | not seen | 5.24 d |
| 50 | 5.97 d | 3.33 d |
| 200 | 2.20 d | 0.80 d |
| 1,000 | 0.61 d | 0.24 d |
| 5,000 | 0.24 d | 0.18 d |

A slide to 0.85 over a week is seen after 7.2 days at 200 scores a day, 5.4 at 1,000 and 4.8 at 5,000. Your traffic
differs, so count your own alarms."""
_MEASURED_MISSING = """\
The false-alarm rate was simulated, not observed. Where the share wanders from day to day by .02, at most 7 % of
months had any false alarm at 50 runs a day, and 3 % with more. Where it wanders by .03, up to 34 % had one."""
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
    pages = {f"{RUNBOOKS}/{alert.name}.md": _linked(_page(alert, values), names) for alert in every}
    return {INDEX: _index(every, values)} | pages


def template(name: str) -> str:
    """Return what stands in the package for an alert, placeholders and all."""
    return (resources.files("ragtrace_dashboards") / RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")


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
    special = {"selection_efficiency_at_k", "harm_at_k", "answered"}
    yield "quality", ", ".join(f"`{it.name}`" for it in config.metrics if it.name not in special)
    yield "good_percent", f"{100 * config.good_share:g} %"
    yield "low_percent", f"{100 * (1 - config.good_share):g} %"
    yield "power_z", f"{POWER_Z:g}"
    yield "back", f"{back_below(config):g}"
    yield "windows", _windows(config)
    is_measured = all(getattr(config, name) == getattr(Config(), name) for name in RULE_FIELDS)
    yield "measured", _MEASURED if is_measured else _UNMEASURED
    is_plain = is_measured and all(
        getattr(config, name) == getattr(Config(), name) for name in ("missing_rise", "missing_share")
    )
    yield "measured_missing", _MEASURED_MISSING if is_plain else _UNMEASURED
    yield from _panels(config)


def _windows(config: Config) -> str:
    """Return the windows of the drift rule as a table."""
    rows = "".join(
        f"\n| {in_words(arm.window_s)} | the {in_words(config.baseline_s)} that end "
        f"{in_words(config.baseline_ends_s[arm.base])} ago | {arm.tolerance:g} | {arm.z:g} |"
        for arm in arms(config)
    )
    return f"| window | held against | tolerance | k |\n|---|---|---|---|{rows}"


def _panels(config: Config) -> Iterator[tuple[str, str]]:
    drawn = {board.uid: board for board in all_boards(config)}
    for topic, (uid, number) in PANELS.items():
        board = drawn[uid]
        address = f"{config.grafana_url}/d/{uid}?viewPanel={number}"
        where = f"[{board.title}]({address})" if config.grafana_url else f"board {board.title}"
        yield f"panel.{topic}", f'"{board.panel_title(number)}" ({where})'


def _page(alert: Alert, values: dict[str, str]) -> str:
    waits = f"after {in_words(alert.for_s)}" if alert.for_s else "at once"
    text = filled(template(alert.name), values | {"panel": values[f"panel.{alert.topic}"]})
    return "\n".join(
        (
            f"# {alert.name}\n",
            f"Severity **{alert.severity}**, fires {waits}. [All alerts](README.md)\n",
            text.rstrip(),
            f"\n```promql\n{alert.expr}\n```\n",
        )
    )


def _linked(text: str, names: set[str]) -> str:
    """Take the links to pages away that this configuration has no alert for; their words stay."""
    return _LINK.sub(lambda found: found[0] if found[2] in names else found[1], text)


def _index(every: list[Alert], values: dict[str, str]) -> str:
    rows = "\n".join(
        f"| [{alert.name}]({alert.name}.md#{ANCHOR}) | {alert.severity} | {values[f'panel.{alert.topic}']} |"
        for alert in every
    )
    return f"# What to do when an alert fires\n\n| alert | severity | panel |\n|---|---|---|\n{rows}\n"
