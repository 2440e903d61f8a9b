"""Shares of the verdicts on runs as recording rules.

The windows of the drift rule up to a day have the share of every verdict now and before. A share has Wilson's
interval on the effective number of runs, and a difference has Newcombe's, as in `ragtrace.stats.shares`.
``ragtrace:verdict_grown`` is the verdict whose share grew most among those that surely grew; ``ok`` is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms, is_long
from ragtrace_dashboards.drift_rule.baselines import fired
from ragtrace_dashboards.expressions import SERIES, VERDICT, WORKFLOW, on, summed, wilson_bound
from ragtrace_dashboards.rules import Rule

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

FLOW: Final = ("job", WORKFLOW)
"""Labels of a workflow, by which shares are taken."""

GROWN: Final = "ragtrace:verdict_grown"
"""Beginning of the names of the recorded growth of the verdict that grew most."""

NOW: Final = "ragtrace:verdict_share"
BEFORE: Final = "ragtrace:verdict_share_before"
"""Beginnings of the names of the recorded shares in a window, and in the baseline before it."""

_SIZE: Final = "ragtrace:verdict_n_eff"
_ROLLING, _ROLLING_SIZE = "ragtrace:baseline_verdict_share:day", "ragtrace:baseline_verdict_n_eff:day"

_EACH: Final = (*FLOW, VERDICT)


def difference_bound(before: str, before_size: str, now: str, now_size: str, side: str) -> str:
    """Return an end of Newcombe's 95 % interval of a difference of shares, now minus before."""
    other = "+" if side == "-" else "-"
    near = f"({now} - {wilson_bound(now, now_size, side)})"
    far = f"({wilson_bound(before, before_size, other)} - {before})"
    return f"{now} - {before} {side} sqrt({near} ^ 2 + {far} ^ 2)"


def share_baseline_rules(config: Config) -> list[Rule]:
    """Return the recording rules of the shares before a window; they rest in an incident of the workflow."""
    offset, length = duration(config.day_window_s), duration(config.baseline_s)
    share, size = _shares(length, f"offset {offset}")
    rests = f"{fired(config.baseline_rest_s)}\n  and {on(FLOW)} {_held(config, _ROLLING)}"
    return [
        Rule(
            record=_ROLLING,
            expr=f"({share})\nunless {on(FLOW)} (\n  {rests}\n)",
            says=f"Share of each verdict in the {length} that ended {offset} ago; it rests in an incident.",
        ),
        Rule(
            record=_ROLLING_SIZE,
            expr=f"({size})\nand {_ROLLING}",
            says="Effective number of runs behind that share.",
        ),
    ]


def share_rules(config: Config) -> list[Rule]:
    """Return the recording rules of the shares in each window, before it, and of the verdict that grew most."""
    return [rule for arm in arms(config) if not is_long(arm, config) for rule in _window_rules(config, arm)]


def _window_rules(config: Config, arm: Arm) -> list[Rule]:
    window = duration(arm.window_s)
    share, size = _shares(window, "")
    now, before, now_size = (f"{it}:{arm.name}" for it in (NOW, BEFORE, _SIZE))
    low = difference_bound(
        before,
        f"({_held(config, _ROLLING_SIZE)} >= {config.min_baseline_n_eff})",
        now,
        f"({now_size} >= {config.few})",
        "-",
    )
    return [
        Rule(record=now, expr=share, says=f"Share of each verdict in the last {window}."),
        Rule(record=now_size, expr=size, says=f"Effective number of runs in the last {window}."),
        Rule(record=before, expr=_held(config, _ROLLING), says="Share of each verdict before, as it last was."),
        Rule(
            record=f"{GROWN}:{arm.name}",
            expr=f'topk by ({", ".join(FLOW)}) (1,\n  {now}{{{VERDICT}!="ok"}} - {before}\n  and ({low}) > 0\n)',
            says="Growth of the verdict whose share grew most, where the 95 % interval of the growth is above 0.",
        ),
    ]


def _held(config: Config, name: str) -> str:
    return f"last_over_time({name}[{duration(config.baseline_memory_s)}])"


def _shares(window: str, at: str) -> tuple[str, str]:
    """Return the share of each verdict in its workflow, and with the same labels the effective number of runs."""
    part = summed(SERIES[semconv.DIAGNOSIS_W], window, _EACH, "", at)
    whole, square = (
        summed(SERIES[name], window, FLOW, "", at) for name in (semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
    )
    share = f"{part}\n/ {on(FLOW)} group_left () ({whole} > 0)"
    return share, f"0 * {part}\n+ {on(FLOW)} group_left () ({whole} ^ 2\n/ ({square} > 0))"
