"""Shares of the verdicts on runs as recording rules.

Each window of the drift rule has the share of every verdict now and before. A share has Wilson's interval on the
effective number of runs, and a difference has Newcombe's, as in `ragtrace.stats.shares`. The recorded
``ragtrace:verdict_grown`` is the verdict whose share grew most among those that surely grew; ``ok`` is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import DRIFT_ALERTS, duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.expressions import SERIES, VERDICT, WORKFLOW, on, recording, summed, wilson_bound

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

FLOW: Final = ("job", WORKFLOW)
"""Labels of a workflow, by which shares are taken."""

GROWN: Final = "ragtrace:verdict_grown"
"""Beginning of the names of the recorded growth of the verdict that grew most."""

NOW: Final = "ragtrace:verdict_share"
BEFORE: Final = "ragtrace:verdict_share_before"
"""Beginnings of the names of the recorded shares in a window, and in the baseline before it."""

_EACH: Final = (*FLOW, VERDICT)


def difference_bound(before: str, before_size: str, now: str, now_size: str, side: str) -> str:
    """Return an end of Newcombe's 95 % interval of a difference of shares, now minus before."""
    other = "+" if side == "-" else "-"
    near = f"({now} - {wilson_bound(now, now_size, side)})"
    far = f"({wilson_bound(before, before_size, other)} - {before})"
    return f"{now} - {before} {side} sqrt({near} ^ 2 + {far} ^ 2)"


def share_baseline_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the shares before a window; they rest in an incident of the workflow."""
    rules = []
    for base, offset_s in config.baseline_ends_s.items():
        share, size = _shares(duration(config.baseline_s), f"offset {duration(offset_s)}")
        rules += [
            _resting(config, f"ragtrace:baseline_verdict_share:{base}", share),
            _resting(config, f"ragtrace:baseline_verdict_n_eff:{base}", size),
        ]
    return rules


def share_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the shares in each window, before it, and of the verdict that grew most."""
    rules, memory = [], duration(config.baseline_memory_s)
    for arm in arms(config):
        share, size = _shares(duration(arm.window_s), "")
        now, before = f"{NOW}:{arm.name}", f"{BEFORE}:{arm.name}"
        now_size, before_size = f"ragtrace:verdict_n_eff:{arm.name}", f"ragtrace:verdict_n_eff_before:{arm.name}"
        low = difference_bound(
            before,
            f"({before_size} >= {config.min_baseline_n_eff})",
            now,
            f"({now_size} >= {config.min_n_eff})",
            "-",
        )
        rules += [
            recording(now, share),
            recording(now_size, size),
            recording(before, f"last_over_time(ragtrace:baseline_verdict_share:{arm.base}[{memory}])"),
            recording(before_size, f"last_over_time(ragtrace:baseline_verdict_n_eff:{arm.base}[{memory}])"),
            recording(
                f"{GROWN}:{arm.name}",
                f'topk by ({", ".join(FLOW)}) (1, {now}{{{VERDICT}!="ok"}} - {before}\n  and ({low}) > 0)',
            ),
        ]
    return rules


def _shares(window: str, at: str) -> tuple[str, str]:
    """Return the share of each verdict in its workflow, and with the same labels the effective number of runs."""
    part = summed(SERIES[semconv.DIAGNOSIS_W], window, _EACH, "", at)
    whole, square = (
        summed(SERIES[name], window, FLOW, "", at) for name in (semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
    )
    share = f"{part} / {on(FLOW)} group_left () ({whole} > 0)"
    return share, f"0 * {part} + {on(FLOW)} group_left () ({whole} ^ 2 / ({square} > 0))"


def _resting(config: Config, name: str, expr: str) -> dict[str, str]:
    alerts = f'ALERTS{{alertname=~"{"|".join(DRIFT_ALERTS)}",alertstate="firing"}}'
    fired = f"last_over_time({alerts}[{duration(config.baseline_rest_s)}])"
    held = f"last_over_time({name}[{duration(config.baseline_memory_s)}])"
    return recording(name, f"({expr})\nunless {on(FLOW)} ({fired}\n  and {on(FLOW)} {held})")
