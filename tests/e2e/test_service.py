"""The service as an operator meets it: configure, flush, shutdown, sinks, the endpoint, errors of the environment."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import ragtrace
from ragtrace.capture import internal_errors
from ragtrace.errors import ConfigError
from ragtrace.service import current
from ragtrace.sinks import LangfuseSink
from tests.process.observing import QUIET, providers
from tests.unit.sinks.server import Scripted


class Keeper:
    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []

    def emit(self, record: Any, scores: Any) -> None:
        self.seen.append((record, scores))


def capture(text: str = "The lab is in Oslo.") -> None:
    with ragtrace.query("Where is the lab?", workflow="manual", session="s-1") as run:
        run.retrieved(
            [{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}, "Bergen is rainy."], source="faq", top_k=2
        )
        run.reranked([{"id": "a", "text": "The lab is in Oslo.", "score": 3.0}], model="x")
        run.used([{"id": "a", "text": "The lab is in Oslo."}])
        run.answered(text, model="m", usage={"input_tokens": 9, "output_tokens": 4})
        run.reference("In Oslo.")
        run.labels({"a": 5})
        run.feedback(1.0)


def test_the_manual_form_reaches_a_sink_with_its_scores(service: Any) -> None:
    keeper = Keeper()
    service.configure(sample_rate=1.0, sinks=[keeper], **providers())
    capture()
    assert service.flush(30)
    ((record, scores),) = keeper.seen
    assert (record.workflow, record.session, record.reference, record.usage.input_tokens) == (
        "manual",
        "s-1",
        "In Oslo.",
        9,
    )
    values = {score.result.name: score.result.value for score in scores}
    assert values["faithfulness"] == 1.0
    assert all(score.weight == 1.0 and score.stratum == "random" for score in scores)


def test_weights_are_one_over_the_probability(service: Any) -> None:
    keeper = Keeper()
    service.configure(sample_rate=0.25, sinks=[keeper], metrics=["no_answer"], **providers())
    for _ in range(200):
        capture()
    assert service.flush(60)
    assert 20 <= len(keeper.seen) <= 85
    assert {score.weight for _, scores in keeper.seen for score in scores} == {4.0}
    counts = current().ledger.snapshot()
    assert counts["offered"] == 200 == counts["scored"] + counts["skipped"]


def test_metrics_may_be_one_text(service: Any) -> None:
    keeper = Keeper()
    service.configure(sample_rate=1.0, sinks=[keeper], metrics="no_answer, faithfulness,", **providers())
    capture()
    assert service.flush(60.0)
    ((_, scores),) = keeper.seen
    assert {score.key.metric for score in scores} == {"answered", "faithfulness"}


def test_a_sink_that_raises_is_counted_and_stops_nobody(service: Any) -> None:
    class Broken:
        def emit(self, record: Any, scores: Any) -> None:
            raise RuntimeError("disk full")

    keeper = Keeper()
    before = internal_errors().get("sink:Broken", 0)
    service.configure(sample_rate=1.0, sinks=[Broken(), keeper], **providers())
    capture()
    assert service.flush(30)
    assert len(keeper.seen) == 1
    assert internal_errors()["sink:Broken"] == before + 1


def test_configure_again_replaces_the_settings_behind_a_kept_recorder(service: Any) -> None:
    first, second = Keeper(), Keeper()
    service.configure(sample_rate=1.0, sinks=[first], metrics=["no_answer"], **providers())
    recorder = ragtrace.recorder()
    capture()
    service.configure(sample_rate=1.0, sinks=[second], metrics=["faithfulness"], **providers())
    assert ragtrace.recorder() is recorder
    capture()
    assert service.flush(30)
    assert [[s.result.name for s in scores] for _, scores in first.seen] == [["answered"]]
    assert [[s.result.name for s in scores] for _, scores in second.seen] == [["faithfulness"]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metrics": ["fathfulness"]}, "did you mean 'faithfulness'?"),
        ({"judge": "overlapp"}, "did you mean 'overlap'?"),
        ({"judge": "openai:x"}, "OPENAI_API_KEY"),
        ({"contents": "full"}, "did you mean 'content'?"),
        ({"metrics": [5]}, "metrics"),
        ({"metrics": 5}, "metrics=5 is not a list"),
        ({"metric_options": {"k_values": 3}}, "k_values=3 is not a list"),
        ({"metric_rates": 5}, "metric_rates=5 is not a list"),
        ({"sampling_rules": 5}, "sampling_rules=5 is not a list"),
        ({"spool": 5}, "spool=5"),
        ({"sinks": 5}, "sinks: an object with emit(record, scores) is wanted, got int"),
        ({"sinks": "x"}, "no entry point 'x'"),
        ({"sinks": [print]}, "got builtin_function_or_method"),
        ({"tracer_provider": 5}, "tracer_provider must be a provider with get_tracer(), got int"),
        ({"meter_provider": object()}, "meter_provider must be a provider with get_meter()"),
        ({"logger_provider": "x"}, "logger_provider must be a provider with get_logger()"),
    ],
)
def test_a_wrong_setting_raises_one_line_and_what_ran_goes_on(
    service: Any, given: dict, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    keeper = Keeper()
    service.configure(sample_rate=1.0, sinks=[keeper], **providers())
    with pytest.raises(ConfigError) as caught:
        service.configure(**given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    capture()
    assert service.flush(30)
    assert len(keeper.seen) == 1


def test_shutdown_keeps_its_deadline_with_a_dead_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    for signal in ("TRACES", "METRICS", "LOGS"):
        monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
    ragtrace.configure(sample_rate=1.0)
    capture()
    start = time.monotonic()
    assert not ragtrace.shutdown(2.0)
    assert time.monotonic() - start < 6.0


def test_after_shutdown_capture_is_harmless() -> None:
    keeper = Keeper()
    ragtrace.configure(sample_rate=1.0, sinks=[keeper], **providers())
    assert ragtrace.shutdown(10)
    capture()
    assert ragtrace.flush(1)
    assert keeper.seen == []


def test_the_openmetrics_endpoint_beside_the_applications_provider(service: Any) -> None:
    service.configure(sample_rate=1.0, metrics_port=0, **providers())
    capture()
    assert service.flush(30)
    endpoint = current().endpoint
    assert endpoint.url.startswith("http://127.0.0.1:")
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    page = connection.getresponse().read().decode()
    connection.close()
    assert page.endswith("# EOF\n")
    assert "ragtrace_score_w_total{" in page
    assert 'trace_id="' in page, "exemplars carry the trace id"


@pytest.mark.parametrize("timeout_s", [float("inf"), float("nan"), -1.0, 1e300])
def test_any_number_is_a_time_to_wait(service: Any, timeout_s: float) -> None:
    service.configure(sample_rate=1.0, **providers())
    capture()
    is_patient = timeout_s > 0.0
    assert service.flush(timeout_s) or not is_patient
    assert service.shutdown(timeout_s) or not is_patient


def run_python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RAGTRACE_"))}
    return subprocess.run(
        [sys.executable, "-c", code], env=keep | env, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_wrong_environment_turns_ragtrace_off_and_leaves_the_application_alone() -> None:
    code = """
import ragtrace
with ragtrace.query("q") as run:
    run.answered("a")
print("served", ragtrace.flush(1))
"""
    done = run_python(code, RAGTRACE_JUDGE="overlapp")
    assert done.returncode == 0
    assert "served True" in done.stdout
    assert "ragtrace is off: " in done.stderr
    assert "did you mean 'overlap'" in done.stderr


@pytest.mark.parametrize(
    ("loaded", "ours", "heavy"),
    [
        (
            "sys",
            "ragtrace, ragtrace.capture, ragtrace.model, ragtrace.semconv, ragtrace.modes",
            ["openai", "numpy", "pydantic", "sqlite3", "rich", "opentelemetry", "httpx", "asyncio"],
        ),
        (
            (
                "langchain_core.callbacks, langchain_core.documents, langchain_core.messages, langchain_core.outputs, "
                "langchain_core.runnables.config, langchain_core.prompt_values"
            ),
            "ragtrace_langchain",
            ["openai", "numpy", "pydantic", "sqlite3", "rich", "opentelemetry"],
        ),
    ],
    ids=["capture", "langchain"],
)
def test_the_applications_process_stays_light(loaded: str, ours: str, heavy: list[str]) -> None:
    code = f"""
import sys
import {loaded}
before = set(sys.modules)
import {ours}
print(sorted({{name.split(".")[0] for name in set(sys.modules) - before}} & set({heavy!r})))
"""
    assert run_python(code).stdout.strip() == "[]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("begin", ["pass", "ragtrace.configure(**settings)"], ids=["by itself", "configured anew"])
def test_a_run_that_is_open_at_a_fork_is_the_parents(begin: str) -> None:
    code = f"""
import os, sys, ragtrace
from ragtrace.service import current
class Printer:
    def emit(self, record, scores): os.write(1, f"{{os.getpid() == PARENT}} {{record.answer}}\\n".encode())
PARENT = os.getpid()
settings = dict(sample_rate=1.0, sinks=[Printer()])
ragtrace.configure(metrics_port=0, **settings)
with ragtrace.query("Where?") as run:
    run.retrieved(["The lab is in Oslo."]); run.answered("before")
    child = os.fork()
if child == 0:
    assert ragtrace.flush(1)
    {begin}
    with ragtrace.query("Where?") as run:
        run.retrieved(["The lab is in Oslo."]); run.answered("child")
    ok = ragtrace.flush(20) and current().ledger.offered == 1 and current().endpoint is None
    os._exit(0 if ok and ragtrace.shutdown(5) else 3)
_, status = os.waitpid(child, 0)
assert ragtrace.flush(20)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = run_python(code, OTEL_TRACES_EXPORTER="none", OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n"))[1:] == ["False child", "True before"]


def test_the_public_names() -> None:
    assert sorted(ragtrace.__all__) == [
        "EvalContext", "MetricResult", "MetricSpec", "Output", "Passage", "RagRecord",
        "Score", "__version__", "batch", "configure", "display", "evidence", "feedback", "flush", "metric", "query", "recorder", "shutdown",
    ]  # fmt: skip
    assert all(getattr(ragtrace, name) is not None for name in ragtrace.__all__)


@pytest.mark.parametrize(("setting", "path"), [("metrics_port", "metrics"), ("health_port", "healthz")])
def test_a_second_configure_takes_the_port_of_the_first_over(setting: str, path: str, monkeypatch) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    asks = f"http://127.0.0.1:{port}/{path}"
    try:
        for workflow in ("first", "second", "third"):
            ragtrace.configure(workflow=workflow, **{setting: port})
            with urlopen(asks, timeout=30) as reply:
                assert reply.status == 200
        with pytest.raises(ConfigError, match="unknown metric"):
            ragtrace.configure(metrics=["no such metric"], **{setting: port})
        with urlopen(asks, timeout=30) as reply:
            assert reply.status == 200, "what ran before goes on"
        with ragtrace.query("Where?", workflow="fourth"):
            pass
        assert ragtrace.flush(20)
        if path == "metrics":
            with urlopen(asks, timeout=30) as reply:
                assert b'workflow_name="fourth"' in reply.read()
    finally:
        ragtrace.shutdown(5)
    with pytest.raises(URLError):
        urlopen(asks, timeout=30)


PROMETHEUS = {**QUIET, "OTEL_METRICS_EXPORTER": "prometheus"}
CAPTURE = """
import ragtrace
from ragtrace.service import current
with ragtrace.query("q") as run:
    run.retrieved([{"id": "a", "text": "Oslo."}])
    run.answered("Oslo.")
"""


def test_the_prometheus_exporter_of_opentelemetry_is_our_endpoint() -> None:
    code = f"""{CAPTURE}
import urllib.request
print("flushed", ragtrace.flush(30))
page = urllib.request.urlopen(current().endpoint.url).read().decode()
print([line for line in page.splitlines() if line.startswith("ragtrace_traces_total")])
"""
    done = run_python(code, RAGTRACE_SAMPLE_RATE="1", OTEL_EXPORTER_PROMETHEUS_PORT="0", **PROMETHEUS)
    assert done.stderr == ""
    assert done.stdout == "flushed True\n['ragtrace_traces_total{ragtrace_decision=\"sampled\"} 1.0']\n"


@pytest.mark.parametrize(
    ("variable", "env"),
    [
        ("RAGTRACE_METRICS_PORT", QUIET),
        ("RAGTRACE_HEALTH_PORT", QUIET),
        ("OTEL_EXPORTER_PROMETHEUS_PORT", PROMETHEUS),
    ],
)
def test_the_second_process_of_a_host_captures_without_the_port_that_the_first_has(
    variable: str, env: dict[str, str]
) -> None:
    code = CAPTURE + "print('flushed', ragtrace.flush(30), current().ledger.snapshot()['scored'])"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_python(code, RAGTRACE_SAMPLE_RATE="1", **{variable: str(port)}, **env)
        if variable.startswith("RAGTRACE_"):
            with pytest.raises(ConfigError, match="Address already in use"):
                ragtrace.configure(**{variable.removeprefix("RAGTRACE_").lower(): port})
    assert (done.returncode, done.stdout) == (0, "flushed True 1\n")
    assert done.stderr.count("\n") == 1
    assert "this process captures and scores without it" in done.stderr


def test_a_shutdown_that_is_late_says_what_was_lost_and_what_was_not(tmp_path: Any) -> None:
    code = CAPTURE + "print(ragtrace.shutdown(2.0))"
    given = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    done = run_python(
        code,
        RAGTRACE_SAMPLE_RATE="1",
        RAGTRACE_STORE=str(tmp_path / "store.sqlite"),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
        **given,
    )
    assert done.stdout == "False\n"
    last = done.stderr.splitlines()[-1]
    assert last == (
        "ragtrace: shutdown, limit 2.0 s: every sampled trace was scored; not sent: 3 spans; "
        "scores in the store are kept"
    )


@pytest.mark.parametrize(("status", "reason"), [(401, "refused"), (503, "unreachable")])
@pytest.mark.parametrize("has_store", [False, True])
def test_a_shutdown_says_what_a_sink_did_not_deliver_and_why(
    status: int, reason: str, *, has_store: bool, service: Any, caplog: Any, tmp_path: Any
) -> None:
    server = Scripted(replies=lambda *_: (status, {}))
    try:
        service.configure(
            sample_rate=1.0,
            metrics=["faithfulness"],
            sinks=[LangfuseSink(server.url, public_key="pk", secret_key="sk")],
            store=tmp_path / "store.sqlite" if has_store else None,
            **providers(),
        )
        capture()
        assert not ragtrace.shutdown(3.0)
    finally:
        server.close()
    end = "; scores in the store are kept" if has_store else ", lost"
    assert f"every sampled trace was scored; not delivered to langfuse: 1 score ({reason}){end}" in caplog.text
    assert "lost data" not in caplog.text
    assert "not ended" not in caplog.text
