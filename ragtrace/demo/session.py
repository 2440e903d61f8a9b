"""One demo run from its first line to its last."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import socket
import time
from typing import TYPE_CHECKING, Any

import ragtrace
from ragtrace.demo.closing import close
from ragtrace.demo.detector import TOLERANCE, quicken_detector, read_detector
from ragtrace.demo.display import LiveDisplay, PlainDisplay
from ragtrace.demo.handbook import NAME
from ragtrace.demo.invention import Incident
from ragtrace.demo.outfile import ScoredFile
from ragtrace.demo.picture import save_picture
from ragtrace.demo.questions import asked
from ragtrace.demo.sending import sending_to
from ragtrace.demo.stacked import chosen_programs, run_beside
from ragtrace.demo.tally import TAG, Tally
from ragtrace.demo.view import Heading
from ragtrace.demo.writers import OfflineWriter, ServerWriter
from ragtrace.errors import MissingExtra
from ragtrace.judges.registry import costs
from ragtrace.service import current
from ragtrace.settings import check_address
from ragtrace.stats.intervals import bootstrap_mean_ci

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.runnables import Runnable
    from opentelemetry.trace import TracerProvider
    from rich.console import Console

    from ragtrace.demo.display import Display
    from ragtrace.demo.options import DemoOptions
    from ragtrace.demo.progress import Progress
    from ragtrace.demo.questions import Question
    from ragtrace.demo.writers import Writer

OFFLINE_METRICS = (
    "faithfulness",
    "invented_specifics",
    "no_answer",
    "answer_similarity",
    "ra_nwg",
    "context_precision_graded",
    "mrr",
    "ndcg",
    "harm",
)
JUDGED_METRICS = (*OFFLINE_METRICS, "answer_relevancy", "context_recall")
LABELS_VERSION = "1"
FAILURES_IN_A_ROW = 3
SETTLE_S = 600.0  # for a slow judge; the offline one needs less than a second
STOPPED_SETTLE_S = 5.0
SHUTDOWN_S = 5.0
INTERRUPTED = 130


def run_demo(options: DemoOptions, console: Console) -> int:
    """Run the demo and return its exit status: 0, 1 when the model kept failing, 130 after Ctrl-C.

    Configures ragtrace for this process, and shuts it down at the end.

    Raises:
        MissingExtra: langchain-core is not installed.
        ConfigError: a wrong choice, in one line, before any work.
    """
    if importlib.util.find_spec("langchain_core") is None:
        raise MissingExtra("langchain-core", "langchain")
    for flag, address in (("--otlp", options.otlp), ("--base-url", _base_url(options))):
        if address:
            check_address(flag, address)
    programs = chosen_programs(options)
    writer = _writer(options)
    with ScoredFile(options.out) as file, _quiet_logs():
        try:
            session = _Session(options, console, writer, file)
            status = session.run() if programs is None else run_beside(programs, session, console)
        finally:
            is_sent = ragtrace.shutdown(SHUTDOWN_S)
    if not is_sent:
        console.print("Not everything could be exported: see whether the collector is up.")
    return status


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep log lines out of the view: it shows alarms itself, and says at the end what could not be exported."""
    handler = logging.NullHandler()
    loggers = [logging.getLogger(name) for name in ("ragtrace", "opentelemetry")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Session:
    """The parts of one run, and what goes on between them."""

    def __init__(self, options: DemoOptions, console: Console, writer: Writer, file: ScoredFile) -> None:
        self._options = options
        self._console = console
        self._file = file
        self._failures = 0
        self._error = ""
        self._tally = Tally(
            total=options.questions,
            incident_at=options.incident_at,
            detector=read_detector,
            interval=_interval,
        )
        self._heading = Heading(
            model=writer.model,
            judge=options.judge,
            seed=options.seed,
            total=options.questions,
            incident_at=options.incident_at,
            endpoint=self._configure(),
            out=str(options.out),
        )
        self._chain = _chain(writer, Incident(first=options.incident_at, seed=options.seed))

    @property
    def endpoint(self) -> str | None:
        """URL of the OpenMetrics endpoint."""
        return self._heading.endpoint

    def run(self) -> int:
        """Ask, wait for the scores, sum up."""
        status = 0
        with self._display() as display:
            try:
                self._ask_all(display)
                self._settle(SETTLE_S, display)
                display.tick(self._tally.count, self._tally.alarm)
            except KeyboardInterrupt:
                status = INTERRUPTED
                with contextlib.suppress(KeyboardInterrupt):
                    self._settle(STOPPED_SETTLE_S, display)
        progress = self._progress()
        close(
            self._console,
            progress,
            out=str(self._options.out),
            lines=self._file.lines,
            has_view=self._console.is_terminal,
        )
        if self._options.save_svg is not None:
            save_picture(self._options.save_svg, progress, self._heading)
        if self._failures >= FAILURES_IN_A_ROW:
            self._console.print(f"The model failed {self._failures} times in a row: {self._error}", markup=False)
            return status or 1
        return status

    def _configure(self) -> str | None:
        options = self._options
        port = free_port(options.port)
        if port != options.port:
            self._console.print(f"Port {options.port} is taken; the OpenMetrics endpoint takes another.")
        with sending_to(options.otlp) as tracer_provider:
            self._configure_ragtrace(port, tracer_provider)
        service = current()
        return None if service is None or service.endpoint is None else service.endpoint.url

    def _configure_ragtrace(self, port: int, tracer_provider: TracerProvider | None) -> None:
        options = self._options
        is_offline = not costs(options.judge)
        ragtrace.configure(
            enabled=True,
            judge=options.judge,
            judge_base_url=options.base_url,
            metrics=OFFLINE_METRICS if is_offline else JUDGED_METRICS,
            sample_rate=1.0,
            content="full",
            # One at a time offline: scores then come in the order of the questions, and a seed repeats the run.
            concurrency=1 if is_offline else 8,
            drift_baseline=options.baseline,
            drift_tolerance=TOLERANCE,
            metrics_port=port,
            service_name="ragtrace-demo",
            tracer_provider=tracer_provider,
            sinks=(self._file, self._tally),
        )
        quicken_detector()

    def _display(self) -> Display:
        kind = LiveDisplay if self._console.is_terminal else PlainDisplay
        return kind(self._console, self._progress, self._heading)

    def _progress(self) -> Progress:
        service = current()
        return self._tally.progress(service.ledger.snapshot() if service else {})

    def _ask_all(self, display: Display) -> None:
        options = self._options
        begun = time.monotonic()
        for number, question in enumerate(asked(options.questions, options.seed), start=1):
            if not options.is_fast:
                time.sleep(max(begun + (number - 1) / options.rate - time.monotonic(), 0.0))
            self._ask(number, question)
            display.tick(number, self._tally.alarm)
            if self._failures >= FAILURES_IN_A_ROW:
                return

    def _ask(self, number: int, question: Question) -> None:
        self._tally.asked()
        try:
            self._chain.invoke(question.query, config=_config(number, question))
        except Exception as error:  # of the model's server; the run is captured with its outcome
            self._tally.failed()
            self._failures += 1
            self._error = f"{type(error).__name__}: {error}"
        else:
            self._failures = 0

    def _settle(self, timeout_s: float, display: Display) -> None:
        """Wait until everything asked is scored."""
        service = current()
        deadline = time.monotonic() + timeout_s
        while service is not None and time.monotonic() < deadline:
            if service.ledger.wait_settled(0.5):
                return
            display.tick(self._tally.count, self._tally.alarm)


def _chain(writer: Writer, incident: Incident) -> Runnable[str, str]:
    from ragtrace.demo.chain import build_chain  # noqa: PLC0415 - needs langchain-core, which may be missing

    return build_chain(writer, incident)


def _config(number: int, question: Question) -> Any:
    from ragtrace_langchain import RagtraceHandler  # noqa: PLC0415 - the same

    return {
        "callbacks": [RagtraceHandler(workflow="handbook", corpus=NAME)],
        "tags": [f"{TAG}{number}"],
        "metadata": {
            "ragtrace.labels": {"grades": question.labels(), "universe": "gold", "version": LABELS_VERSION},
            "ragtrace.reference": question.reference,
        },
    }


def _writer(options: DemoOptions) -> Writer:
    if options.model is None and options.base_url is None:
        return OfflineWriter(options.seed)
    # A key in the environment alone starts nothing: 300 paid calls are a person's decision.
    return ServerWriter(options.model, base_url=_base_url(options), api_key=os.environ.get("OPENAI_API_KEY"))


def _base_url(options: DemoOptions) -> str | None:
    return options.base_url or os.environ.get("OPENAI_BASE_URL")


def _interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    interval = bootstrap_mean_ci(values)
    return interval.low, interval.high


def free_port(wanted: int) -> int:
    """Return the wanted port of 127.0.0.1 when it is free, else 0, which stands for any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted
