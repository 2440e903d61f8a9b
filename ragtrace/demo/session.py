"""One demo run from its first line to its last."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.live import Live

import ragtrace
from ragtrace.address import address_fault
from ragtrace.demo.answers import OfflineWriter, ServerWriter
from ragtrace.demo.chain import build_chain
from ragtrace.demo.display import PlainLines, diagnose, own_command, print_closing
from ragtrace.demo.handbook import NAME, shuffled_questions
from ragtrace.demo.incident import Incident, channel_of
from ragtrace.demo.outfile import ScoredFile
from ragtrace.demo.processes import find_programs, free_port
from ragtrace.demo.stack import check_pace, run_beside
from ragtrace.demo.tally import TAG, Tally
from ragtrace.demo.view import DemoHeading, frame, save_picture
from ragtrace.errors import ConfigError
from ragtrace.judges.registry import costs
from ragtrace.service import current
from ragtrace_langchain import RagtraceHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from opentelemetry.trace import TracerProvider
    from rich.console import Console

    from ragtrace.demo.answers import Writer
    from ragtrace.demo.handbook import Question
    from ragtrace.demo.options import DemoOptions
    from ragtrace.demo.tally import Progress

OFFLINE_METRICS = (
    "faithfulness", "invented_specifics", "diagnosis", "no_answer", "answer_similarity",
    "ra_nwg", "context_precision_graded", "mrr", "ndcg", "harm",
)  # fmt: skip
JUDGED_METRICS = (*OFFLINE_METRICS, "answer_relevancy", "context_recall")
LABELS_VERSION = "1"
FAILURES_IN_A_ROW = 3
SETTLE_S = 600.0  # for a slow judge; the offline one needs less than a second
STOPPED_SETTLE_S = 5.0
SHUTDOWN_S = 5.0
INTERRUPTED = 130
FRAMES_A_SECOND = 2
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER")
_GRPC_PORT = 4317  # of OTLP over gRPC everywhere


def run_demo(options: DemoOptions, console: Console) -> int:
    """Run the demo and return its exit status: 0, 1 when the model kept failing, 130 after Ctrl-C.

    Configures ragtrace and OpenTelemetry's variables for this process, and shuts ragtrace down at the end.

    Raises:
        MissingExtra: the package openai is not installed, and a real model shall answer.
        ConfigError: a wrong choice, in one line, before any work.
    """
    for flag, address in (("--otlp", options.otlp), ("--base-url", _base_url(options))):
        if address and (fault := address_fault(address.strip())):
            raise ConfigError(f"{flag} {fault}")
    if options.stack:
        check_pace(options)
    programs = find_programs() if options.stack else None
    writer = _writer(options)
    with ScoredFile(options.out) as file, _quiet_logs():
        try:
            session = _Session(options, console, writer, file)
            if programs is None:
                status = session.run()
            else:
                status = run_beside(programs, session.heading.endpoint, session.run, console)
        finally:
            is_sent = ragtrace.shutdown(SHUTDOWN_S)
    if not is_sent:
        console.print("Not everything could be exported: see whether the collector is up.")
    return status


class _Session:
    """The parts of one run."""

    def __init__(self, options: DemoOptions, console: Console, writer: Writer, file: ScoredFile) -> None:
        self._options = options
        self._console = console
        self._file = file
        self._failures = 0
        self._error = ""
        self._tally = Tally(total=options.questions, incident_at=options.incident_at)
        self._chain = build_chain(writer, Incident(first=options.incident_at, seed=options.seed))
        self.heading = DemoHeading(
            model=writer.model,
            judge=options.judge,
            seed=options.seed,
            endpoint=self._configure(),
            out=str(options.out),
        )

    def run(self) -> int:
        """Ask, wait for the scores, sum up."""
        status = 0
        with self._display() as update:
            try:
                self._ask_all(update)
                self._settle(SETTLE_S, update)
                update()
            except KeyboardInterrupt:
                status = INTERRUPTED
                with contextlib.suppress(KeyboardInterrupt):
                    self._settle(STOPPED_SETTLE_S, update)
        progress = self._progress()
        diagnosis = diagnose(self._file, f"{own_command()} show {self._options.out} --id")
        print_closing(
            self._console,
            progress,
            out=str(self._options.out),
            lines=self._file.lines,
            has_view=self._console.is_terminal,
            diagnosis=diagnosis,
        )
        if self._options.save_svg is not None:
            save_picture(self._options.save_svg, progress, self.heading, diagnosis)
        if self._failures >= FAILURES_IN_A_ROW:
            self._console.print(f"The model failed {self._failures} times in a row: {self._error}", markup=False)
            return status or 1
        return status

    def _configure(self) -> str | None:
        options = self._options
        port = options.port
        if port and free_port(port) != port:
            port = 0
            self._console.print(f"Port {options.port} is taken; the OpenMetrics endpoint takes another.")
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
            metrics_port=port,
            tracer_provider=_choose_exporters(options.otlp),
            sinks=(self._file, self._tally),
        )
        service = current()
        return None if service is None or service.endpoint is None else service.endpoint.url

    @contextlib.contextmanager
    def _display(self) -> Iterator[Callable[[], None]]:
        """Show the run inside a ``with`` block; call its value after each question."""
        console = self._console
        if not console.is_terminal:
            yield PlainLines(console, self._progress, self.heading).update
            return
        with Live(
            get_renderable=lambda: frame(
                self._progress(), self.heading, width=console.width, height=console.height
            ),
            console=console,
            refresh_per_second=FRAMES_A_SECOND,
            vertical_overflow="crop",
        ):
            yield lambda: None  # the view refreshes itself

    def _progress(self) -> Progress:
        service = current()
        return self._tally.progress(service.ledger.snapshot() if service else {})

    def _ask_all(self, update: Callable[[], None]) -> None:
        options = self._options
        begun = time.monotonic()
        for number, question in enumerate(shuffled_questions(options.questions, options.seed), start=1):
            if not options.is_fast:
                time.sleep(max(begun + (number - 1) / options.rate - time.monotonic(), 0.0))
            self._ask(number, question)
            update()
            if self._failures >= FAILURES_IN_A_ROW:
                return

    def _ask(self, number: int, question: Question) -> None:
        self._tally.asked += 1
        try:
            self._chain.invoke(question.query, config=_run_config(number, question, self._options.seed))
        except Exception as error:  # of the model's server; the run is captured with its outcome
            self._tally.failed += 1
            self._failures += 1
            self._error = f"{type(error).__name__}: {error}"
        else:
            self._failures = 0

    def _settle(self, timeout_s: float, update: Callable[[], None]) -> None:
        """Wait until every question is scored."""
        service = current()
        deadline = time.monotonic() + timeout_s
        while service is not None and time.monotonic() < deadline:
            if service.wait_scored(0.5):
                return
            update()


def _run_config(number: int, question: Question, seed: int) -> RunnableConfig:
    return {
        "callbacks": [RagtraceHandler(workflow="handbook", corpus=NAME)],
        "tags": [f"{TAG}{number}", f"channel:{channel_of(number, seed)}"],
        "metadata": {
            "ragtrace.session": f"visitor-{seed}-{number}",  # each asks once, so that every score counts
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


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep log lines out of the view."""
    handler = logging.NullHandler()
    loggers = [logging.getLogger(name) for name in ("ragtrace", "opentelemetry")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def _choose_exporters(url: str | None) -> TracerProvider | None:
    """Set OpenTelemetry's own variables, and return the tracer provider to configure with.

    Without a URL, and without one in the environment, nothing is exported: OpenTelemetry's default would be
    localhost, where often no collector listens. Spans are still made, so that exemplars carry real trace ids.
    """
    os.environ["OTEL_SERVICE_NAME"] = "ragtrace-demo"
    if url is not None:
        os.environ[ENDPOINT] = url
        is_grpc = urlsplit(url).port == _GRPC_PORT
        os.environ[_PROTOCOL] = os.environ.get(_PROTOCOL) or ("grpc" if is_grpc else "http/protobuf")
        os.environ.update(dict.fromkeys(_EXPORTERS, "otlp"))
    elif not os.environ.get(ENDPOINT):
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider  # noqa: PLC0415 - takes 0.1 s

        os.environ.update(dict.fromkeys(_EXPORTERS, "none"))
        return SdkTracerProvider(shutdown_on_exit=False)
    return None
