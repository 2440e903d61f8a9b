"""A run of the demo beside the local stack, and what it says of the alert."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Protocol

from rich.text import Text

from ragtrace.demo.programs import find_programs
from ragtrace.demo.progress import WATCHED
from ragtrace.demo.stack import check_pace, local_stack
from ragtrace.demo.verdict import verdict_of
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from ragtrace.demo.inbox import Delivered
    from ragtrace.demo.options import DemoOptions
    from ragtrace.demo.programs import Programs
    from ragtrace.demo.verdict import Verdict

_QUIET = "dim"


class Session(Protocol):
    """A run of the demo: its endpoint, and the run itself, which returns an exit status."""

    @property
    def endpoint(self) -> str | None:
        """URL of the OpenMetrics endpoint, None without one."""
        ...

    def run(self) -> int:
        """Run, and return the exit status."""
        ...


def chosen_programs(options: DemoOptions) -> Programs | None:
    """Return the programs that the options ask for, None without a stack.

    Raises:
        ConfigError: a program is missing, or the pace is too quick or too slow for the alerts.
    """
    if options.stack is None:
        return None
    check_pace(options)
    return find_programs()


def run_beside(programs: Programs, session: Session, console: Console) -> int:
    """Run the session beside the stack, print what Alertmanager delivered, and return the exit status.

    The status is the session's; 1 when Prometheus or Alertmanager did not do its part in time.

    Raises:
        ConfigError: the stack did not start.
    """
    if session.endpoint is None:
        raise ConfigError("--stack local: no OpenMetrics endpoint; choose another --port")
    with local_stack(programs, session.endpoint) as stack:
        _say(console, Text(f"Prometheus {stack.prometheus}   Alertmanager {stack.alertmanager}"))
        status = session.run()
        if status:
            return status
        verdict = verdict_of(stack)
        for line in (Text(), *told(verdict)):
            _say(console, line)
        _stay(console)
    return 0 if verdict.is_settled and not verdict.missing else 1


def told(verdict: Verdict) -> Iterator[Text]:
    """Return the lines on what came of the run."""
    if not verdict.is_settled:
        yield Text("Prometheus did not read and evaluate everything in time: the machine is too busy.")
    for name in verdict.missing:
        yield Text(f"Prometheus raised {name}, and Alertmanager did not deliver it in time.")
    for alert in verdict.drifts:
        yield from _message(alert)
    if not verdict.drifts:
        yield Text(_why_quiet(verdict))
    others = dict.fromkeys(f"{alert.name} ({alert.labels.get('severity', '')})" for alert in verdict.others)
    if others:
        yield Text(f"Also delivered: {', '.join(others)}.", style=_QUIET)


def _message(alert: Delivered) -> Iterator[Text]:
    yield Text("Alertmanager delivered this alert:", style=_QUIET)
    yield Text(f"  {alert.name} ({alert.labels.get('severity', '')})", style="bold")
    for name in ("summary", "description"):
        yield Text(f"  {alert.annotations.get(name, '')}")
    for name in ("runbook", "dashboard"):
        yield Text(f"  {name:<10} {alert.annotations.get(f'{name}_url', '')}")


def _why_quiet(verdict: Verdict) -> str:
    if verdict.largest_z is None:
        return f"Alertmanager delivered no drift alert: too few scores of {WATCHED} came in time to tell a drop."
    return (
        f"Alertmanager delivered no drift alert: z of {WATCHED} was {verdict.largest_z:.1f} at most,"
        f" {verdict.limit_z:g} fires."
    )


def _stay(console: Console) -> None:
    """Keep the addresses alive while a person follows them; without a person there is nothing to wait for."""
    if not (console.is_terminal and sys.stdin.isatty()):
        return
    _say(
        console,
        Text("\nThe addresses answer until you press Enter; without a Grafana the dashboard's is Prometheus."),
    )
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.readline()


def _say(console: Console, line: Text) -> None:
    console.print(line, soft_wrap=True, highlight=False)
