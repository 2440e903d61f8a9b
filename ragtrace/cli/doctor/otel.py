"""Settings of OpenTelemetry under which boards, rules or traces miss something: the table of doctor and docs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from ragtrace.cli.doctor.check_result import CheckResult, Level
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    Found = Callable[[str], str]

SIGNALS: Final = ("TRACES", "METRICS", "LOGS")
EVERY: Final = "otlp"  # the check of a setting that leaves nothing else to check
_OTHER: Final = "otel"
_SPAN_LENGTH = ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
_LOG_LENGTH = ("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT",)
_SPAN_COUNT = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")
_EVENT_COUNT = ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT")
_EVENTS = ("OTEL_SPAN_EVENT_COUNT_LIMIT",)
_LIMITS = (*_SPAN_LENGTH, *_LOG_LENGTH, *_SPAN_COUNT, *_EVENT_COUNT, *_EVENTS)
_LEAST_LENGTH, _LEAST_COUNT, _LEAST_EVENT_COUNT, _LEAST_EVENTS = 16_384, 128, 16, 80
_MOST_INTERVAL_MS = 120_000.0


class Row(NamedTuple):
    """A setting, and what follows from it.

    Attributes:
        setting: variable and values, as the page shows them; ``SIGNAL`` stands for each signal of the row.
        said: what follows.
        todo: the remedy, "" without one.
        found: returns ``VARIABLE=value`` where the environment has it, else ""; given a signal of the row.
        level: of the finding.
        check: its name.
        signals: those whose endpoint is not asked for it; () = it stands beside the endpoints' checks.
    """

    setting: str
    said: str
    todo: str
    found: Found
    level: Level = "warn"
    check: str = _OTHER
    signals: tuple[str, ...] = ()


def consequences() -> list[CheckResult]:
    """Return a finding for each row of `TABLE` that the environment has, one a signal."""
    findings: dict[str, CheckResult] = {}
    others: list[CheckResult] = []
    for row in TABLE:
        for signal in row.signals or ("",):
            name = check_of(signal) if signal else row.check
            try:
                shown = "" if name in findings else row.found(signal)
                said = row.said.format(address=_address() if shown and "{address}" in row.said else "")
            except ConfigError as error:
                findings[name] = CheckResult(name, "fail", str(error), "correct it or unset it")
                continue
            if shown:
                result = CheckResult(name, row.level, f"{shown}: {said}", row.todo)
                if name == _OTHER:
                    others.append(result)
                else:
                    findings[name] = result
    return [*findings.values(), *others]


def check_of(signal: str) -> str:
    """Return the name of a signal's check.

    Example:
        >>> check_of("TRACES")
        'otlp traces'
    """
    return f"otlp {signal.lower()}"


def _set(*variables: str) -> tuple[str, str]:
    """Return the first variable that is set, and its value; two empty texts where none is."""
    found = ((name, os.environ.get(name, "").strip()) for name in variables)
    return next(((name, value) for name, value in found if value), ("", ""))


def _is_one_of(variable: str, *values: str) -> Found:
    def found(_: str) -> str:
        value = os.environ.get(variable, "").strip()
        return f"{variable}={value}" if value.lower() in values else ""

    return found


def _is_off(_: str) -> str:
    name = os.environ.get("OTEL_TRACES_SAMPLER", "").strip().lower().removeprefix("parentbased_")
    ratio = os.environ.get("OTEL_TRACES_SAMPLER_ARG", "").strip()
    shown = f"OTEL_TRACES_SAMPLER={os.environ.get('OTEL_TRACES_SAMPLER', '').strip()}"
    if name == "always_off":
        return shown
    return f"{shown}, OTEL_TRACES_SAMPLER_ARG={ratio}" if name == "traceidratio" and _number(ratio) == 0.0 else ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_beyond(variables: tuple[str, ...], *, least: float = 0.0, most: float = float("inf")) -> Found:
    def found(_: str) -> str:
        name, value = _set(*variables)
        number = _number(value)
        return f"{name}={value}" if number is not None and not least <= number <= most else ""

    return found


def _is_no_number(_: str) -> str:
    wrong = [(name, value) for name in _LIMITS for _, value in [_set(name)] if value]
    return next((f"{name}={value}" for name, value in wrong if not value.isdecimal()), "")


def _exporters(signal: str) -> list[str]:
    named = os.environ.get(f"OTEL_{signal}_EXPORTER", "")
    return [name.strip() for name in named.split(",") if name.strip()] or ["otlp"]


def _sends(does: Callable[[set[str], str], bool]) -> Found:
    """Find a signal whose exporters are of another kind than OTLP."""

    def found(signal: str) -> str:
        from ragtrace.telemetry.setup.exporters import exporter_names

        names, known = set(_exporters(signal)), exporter_names(signal)
        if "otlp" in known:
            return ""
        shown = f"OTEL_{signal}_EXPORTER={os.environ.get(f'OTEL_{signal}_EXPORTER', '').strip()}"
        return shown if does(names, ",".join(known)) else ""

    return found


def _address() -> str:
    from ragtrace.telemetry.setup.exporters import scrape_address

    host, port = scrape_address()
    return f"http://{host}:{port}/metrics"


TABLE: Final = (
    Row(
        "`OTEL_SDK_DISABLED`: `true`",
        "nothing is exported",
        "unset it to get traces and metrics",
        _is_one_of("OTEL_SDK_DISABLED", "true"),
        check=EVERY,
    ),
    Row(
        "`OTEL_METRICS_EXPORTER`: `prometheus`",
        "served at {address}, unless the application has a meter provider of its own",
        "",
        _sends(lambda names, _: "prometheus" in names),
        level="ok",
        signals=("METRICS",),
    ),
    Row(
        "`OTEL_METRICS_EXPORTER`: `none`, beside `RAGTRACE_METRICS_PORT`",
        "Prometheus gets them where it scrapes RAGTRACE_METRICS_PORT",
        "",
        _sends(lambda names, _: names == {"none"} and bool(os.environ.get("RAGTRACE_METRICS_PORT"))),
        level="ok",
        signals=("METRICS",),
    ),
    Row(
        "`OTEL_METRICS_EXPORTER`: `none`",
        "not sent, so that boards and alert rules get nothing",
        "set it to otlp, or set RAGTRACE_METRICS_PORT and let Prometheus scrape that",
        _sends(lambda names, _: names == {"none"}),
        signals=("METRICS",),
    ),
    Row(
        "`OTEL_TRACES_EXPORTER`, `OTEL_LOGS_EXPORTER`: `none`",
        "not sent; boards and alert rules need none of them",
        "",
        _sends(lambda names, _: names == {"none"}),
        level="ok",
        signals=("TRACES", "LOGS"),
    ),
    Row(
        "`OTEL_SIGNAL_EXPORTER`: `zipkin`, `jaeger` or another one that is not installed",
        "it is not supported and is ignored, so that nothing is sent",
        "set it to otlp",
        _sends(lambda _, known: not known),
        signals=SIGNALS,
    ),
    Row(
        "`OTEL_SIGNAL_EXPORTER`: `console`",
        "printed, so that no backend gets anything",
        "set it to otlp",
        _sends(lambda _, known: known == "console"),
        signals=SIGNALS,
    ),
    Row(
        "`OTEL_SIGNAL_EXPORTER`: another exporter that is installed",
        "sent by that exporter, which was not asked",
        "",
        _sends(lambda *_: True),
        level="ok",
        signals=SIGNALS,
    ),
    Row(
        "`OTEL_TRACES_SAMPLER`: `always_off`, `parentbased_always_off`, or a ratio of 0",
        "the sampler is off: no span of a run or of its scores is sent; scores leave as metrics and events",
        "unset it; RAGTRACE_SAMPLE_RATE bounds what is scored",
        _is_off,
    ),
    Row(
        "`OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE`: `delta`, `lowmemory`",
        "counters leave as deltas, which Prometheus refuses: boards and alert rules get nothing",
        "set it to cumulative, or use the processor deltatocumulative in the Collector",
        _is_one_of("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "lowmemory"),
    ),
    Row(
        "`OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION`: `base2_exponential_bucket_histogram`",
        "histograms have no _bucket series: distributions of scores and times are empty on the boards",
        "set it to explicit_bucket_histogram",
        _is_one_of(
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram"
        ),
    ),
    Row(
        f"`OTEL_METRIC_EXPORT_INTERVAL`: over {_MOST_INTERVAL_MS:,.0f} ms",
        "rates over 5 minutes need two reports in them: boards and alert rules have gaps",
        f"set it to {_MOST_INTERVAL_MS / 2:.0f} or less",
        _is_beyond(("OTEL_METRIC_EXPORT_INTERVAL",), most=_MOST_INTERVAL_MS),
    ),
    Row(
        "`OTEL_METRICS_EXEMPLAR_FILTER`: `always_off`",
        "no point of a board leads to the trace of a score",
        "set it to trace_based",
        _is_one_of("OTEL_METRICS_EXEMPLAR_FILTER", "always_off"),
    ),
    Row(
        f"`{'`, `'.join(_SPAN_LENGTH)}`: under {_LEAST_LENGTH:,}",
        "passages, messages and claims on spans are cut to it, and ragtrace.span.cut names them",
        f"set it to {_LEAST_LENGTH} or more",
        _is_beyond(_SPAN_LENGTH, least=_LEAST_LENGTH),
    ),
    Row(
        f"`{_LOG_LENGTH[0]}`: under 4,096",
        "explanations on the events of scores are cut to it",
        "set it to 4096 or more",
        _is_beyond(_LOG_LENGTH, least=4_096),
    ),
    Row(
        f"`{'`, `'.join(_SPAN_COUNT)}`: under {_LEAST_COUNT}",
        "the last scores and passages are left out of a span, and ragtrace.span.cut names them",
        f"set it to {_LEAST_COUNT} or more",
        _is_beyond(_SPAN_COUNT, least=_LEAST_COUNT),
    ),
    Row(
        f"`{'`, `'.join(_EVENT_COUNT)}`: under {_LEAST_EVENT_COUNT}",
        "the events of scores lose attributes",
        f"set it to {_LEAST_EVENT_COUNT} or more",
        _is_beyond(_EVENT_COUNT, least=_LEAST_EVENT_COUNT),
    ),
    Row(
        f"`{_EVENTS[0]}`: under {_LEAST_EVENTS}",
        "the first scores of a run with many metrics have no event on its span",
        f"set it to {_LEAST_EVENTS} or more",
        _is_beyond(_EVENTS, least=_LEAST_EVENTS),
    ),
    Row(
        "a limit of these that is no whole number",
        "the SDK refuses it, and there are no spans or no events",
        "correct it or unset it",
        _is_no_number,
        level="fail",
    ),
)
"""Settings and their consequences; of the rows for one signal the first that holds counts."""
