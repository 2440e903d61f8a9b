"""The local stack: Prometheus reads the demo's endpoint, Alertmanager sends alerts to the demo's own inbox."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.text import Text

from ragtrace.demo.inbox import HOOK, RUNBOOKS, Inbox, serve_inbox
from ragtrace.demo.processes import run_server
from ragtrace.demo.verdict import describe_verdict, wait_for_verdict
from ragtrace.errors import ConfigError
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.rule_files import prometheus_files
from ragtrace_dashboards.runbook_files import runbook_files
from ragtrace_dashboards.yaml_text import yaml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from rich.console import Console

    from ragtrace.demo.options import DemoOptions
    from ragtrace.demo.processes import Programs

JOB = "ragtrace-demo"
_SPARE = 1.5  # not every answer gets a score, and a busy machine asks more slowly


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStack:
    """The running stack: its addresses, and the alerts delivered so far."""

    prometheus: str
    alertmanager: str
    inbox: Inbox


def check_pace(options: DemoOptions) -> None:
    """Refuse a pace at which the alert could never tell a drop.

    Raises:
        ConfigError: the windows of the demo profile would hold too few scores; the line names the right choice.
    """
    config = Config.demo()
    if options.is_fast:
        raise ConfigError("--stack local: alerts look at seconds, --fast leaves them none; choose a --rate")
    rate = _SPARE * config.min_n_eff / config.day_window_s
    if options.rate < rate:
        raise ConfigError(
            f"--stack local: {config.day_window_s} s need {config.min_n_eff} scores; choose --rate {rate:g} or more"
        )
    questions = 2 * (options.rate * config.day_window_s + _SPARE * config.min_baseline_n_eff)
    if options.questions < questions:
        raise ConfigError(
            f"--stack local: the baseline needs {config.min_baseline_n_eff} scores before the incident; "
            f"choose --questions {questions:.0f} or more"
        )


def run_beside(programs: Programs, endpoint: str | None, run: Callable[[], int], console: Console) -> int:
    """Run the demo beside the stack, print the delivered alert, and return the exit status.

    The status is that of `run`, or 1 when Prometheus or Alertmanager did not do its part in time.

    Raises:
        ConfigError: the stack did not start.
    """
    if endpoint is None:
        raise ConfigError("--stack local: no OpenMetrics endpoint; choose another --port")

    def say(line: Text) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    with local_stack(programs, endpoint) as stack:
        say(Text(f"Prometheus {stack.prometheus}   Alertmanager {stack.alertmanager}"))
        status = run()
        if status:
            return status
        verdict = wait_for_verdict(stack)
        for line in (Text(), *describe_verdict(verdict)):
            say(line)
        if console.is_terminal and sys.stdin.isatty():
            say(
                Text(
                    "\nThe addresses answer until you press Enter. Without Grafana, the dashboard's is Prometheus."
                )
            )
            with contextlib.suppress(KeyboardInterrupt):
                sys.stdin.readline()
    return 0 if verdict.is_settled and not verdict.missing else 1


@contextlib.contextmanager
def local_stack(programs: Programs, endpoint: str) -> Iterator[LocalStack]:
    """Run Prometheus and Alertmanager on free loopback ports inside a ``with`` block.

    Their files stand in a temporary folder. Programs and folder are gone when the block is left, also by Ctrl-C,
    SIGTERM or SIGHUP.

    Raises:
        ConfigError: one of them did not start.
    """
    with contextlib.ExitStack() as opened:
        opened.enter_context(_signals_raise())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="ragtrace-demo-")))
        inbox = opened.enter_context(serve_inbox())
        alertmanager = opened.enter_context(_alertmanager(programs.alertmanager, folder, inbox.url))
        config = stack_config(inbox.url)
        inbox.pages = runbook_files(config)
        files = stack_files(config, endpoint, alertmanager)
        inbox.prometheus = opened.enter_context(_prometheus(programs.prometheus, folder, files))
        yield LocalStack(prometheus=inbox.prometheus, alertmanager=alertmanager, inbox=inbox)


def stack_config(pages: str) -> Config:
    """Return the demo profile with links to the inbox, which serves runbooks and stands in for Grafana.

    Example:
        >>> stack_config("http://127.0.0.1:2").runbook_url
        'http://127.0.0.1:2/runbooks'
    """
    return replace(Config.demo(), runbook_url=pages + RUNBOOKS, grafana_url=pages)


def stack_files(config: Config, endpoint: str, alertmanager: str) -> dict[str, str]:
    """Return Prometheus's files by their paths: its configuration and the rules of the demo profile.

    Example:
        >>> list(stack_files(Config.demo(), "http://127.0.0.1:1/metrics", "http://127.0.0.1:3"))
        ['prometheus.yml', 'rules/ragtrace-recording.yaml', 'rules/ragtrace-alerts.yaml']
    """
    rules = prometheus_files(config)
    scraped = urlsplit(endpoint)
    every = f"{config.scrape_s}s"
    main = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": list(rules),
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [urlsplit(alertmanager).netloc]}]}]},
        "scrape_configs": [
            {"job_name": JOB, "metrics_path": scraped.path, "static_configs": [{"targets": [scraped.netloc]}]}
        ],
    }
    return {"prometheus.yml": yaml_text(main), **rules}


def _prometheus(program: str, folder: Path, files: Mapping[str, str]) -> contextlib.AbstractContextManager[str]:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return run_server(
        "prometheus",
        lambda port: (
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'series'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ),
        folder / "prometheus.log",
    )


def _alertmanager(program: str, folder: Path, pages: str) -> contextlib.AbstractContextManager[str]:
    hook = {"url": pages + HOOK, "send_resolved": False}
    route = {"receiver": "demo", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
    config = {"route": route, "receivers": [{"name": "demo", "webhook_configs": [hook]}]}
    (folder / "alertmanager.yml").write_text(yaml_text(config), encoding="utf-8")
    return run_server(
        "alertmanager",
        lambda port: (
            program,
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'notices'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",  # one alone needs no port for its peers
        ),
        folder / "alertmanager.log",
    )


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions, so that everything started is stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)
