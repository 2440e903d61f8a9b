"""The scrape endpoint over real HTTP, and its text."""
# ruff: noqa: S310, S607 - loopback addresses and Debian's own binaries

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource

from ragtrace.errors import ConfigError
from ragtrace.sinks import OpenMetricsEndpoint, OTelCollector, ScrapeReader
from ragtrace.telemetry import remote_context

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ASK_OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


@pytest.fixture
def endpoint():
    with_server = OpenMetricsEndpoint(port=0)
    yield with_server
    with_server.close()


def meter_of(endpoint, **options):
    resource = Resource({"service.name": "shop", "host.name": 'a"b\\c\nd'})
    provider = MeterProvider(metric_readers=[endpoint.reader], resource=resource, shutdown_on_exit=False, **options)
    return provider.get_meter("ragtrace")


def get(endpoint, accept=ASK_OPENMETRICS, path="/metrics", method="GET"):
    request = urllib.request.Request(
        f"http://127.0.0.1:{endpoint.port}{path}", headers={"Accept": accept}, method=method
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def fill(meter):
    histogram = meter.create_histogram(
        "ragtrace.evaluation.score",
        unit="{score}",
        description='The "score".',
        explicit_bucket_boundaries_advisory=[0.5, 1.0],
    )
    histogram.record(
        0.75, {"gen_ai.workflow.name": 'sup"port\n'}, context=remote_context(TRACE, SPAN, is_sampled=True)
    )
    meter.create_counter("ragtrace.score.n", unit="{score}").add(2.0)
    meter.create_histogram("ragtrace.evaluation.lag", unit="s").record(3)
    meter.create_up_down_counter("depth").add(-1)


def test_the_whole_openmetrics_text(endpoint):
    meter = meter_of(endpoint)
    fill(meter)
    kind, text = get(endpoint)
    assert kind.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    text = re.sub(r"\} 0\.75 \d+\.\d+", "} 0.75 TIME", text)
    assert text.split("# HELP ragtrace_evaluation_lag_seconds")[0] == (
        "# HELP target Target metadata\n"
        "# TYPE target info\n"
        'target_info{host_name="a\\"b\\\\c\\nd",service_name="shop"} 1.0\n'
        '# HELP ragtrace_evaluation_score The \\"score\\".\n'
        "# TYPE ragtrace_evaluation_score histogram\n"
        'ragtrace_evaluation_score_bucket{gen_ai_workflow_name="sup\\"port\\n",le="0.5"} 0.0\n'
        'ragtrace_evaluation_score_bucket{gen_ai_workflow_name="sup\\"port\\n",le="1.0"} 1.0'
        f' # {{span_id="{SPAN}",trace_id="{TRACE}"}} 0.75 TIME\n'
        'ragtrace_evaluation_score_bucket{gen_ai_workflow_name="sup\\"port\\n",le="+Inf"} 1.0\n'
        'ragtrace_evaluation_score_count{gen_ai_workflow_name="sup\\"port\\n"} 1.0\n'
        'ragtrace_evaluation_score_sum{gen_ai_workflow_name="sup\\"port\\n"} 0.75\n'
        "# HELP ragtrace_score_n \n"
        "# TYPE ragtrace_score_n counter\n"
        "ragtrace_score_n_total 2.0\n"
    )
    assert "# UNIT ragtrace_evaluation_lag_seconds seconds\n" in text
    assert "# TYPE depth gauge\ndepth -1.0\n" in text
    assert text.endswith("# EOF\n")


def test_the_older_text_for_a_client_that_asks_for_it_alone(endpoint):
    fill(meter_of(endpoint))
    kind, text = get(endpoint, accept="text/plain")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert "# TYPE ragtrace_score_n_total counter\nragtrace_score_n_total 2.0\n" in text
    assert "# TYPE target_info gauge" in text
    assert "trace_id" not in text
    assert "# EOF" not in text
    assert get(endpoint, accept="*/*")[0].startswith("application/openmetrics-text")


def test_a_counter_has_the_exemplar_of_its_last_addition(endpoint):
    counter = meter_of(endpoint).create_counter("asked")
    counter.add(1, context=remote_context(TRACE, SPAN, is_sampled=True))
    assert f'asked_total 1.0 # {{span_id="{SPAN}",trace_id="{TRACE}"}} 1.0 ' in get(endpoint)[1]


def test_every_scraper_sees_exemplars_and_cumulative_sums(endpoint):
    meter = meter_of(endpoint)
    fill(meter)
    counter = meter.create_counter("asked")
    for expected in (1, 2, 3):
        counter.add(1)
        text = get(endpoint)[1]
        assert f"\nasked_total {expected}.0\n" in text
        assert f'trace_id="{TRACE}"' in text


def test_an_exponential_histogram_does_not_break_the_scrape(endpoint):
    view = View(instrument_type=Histogram, aggregation=ExponentialBucketHistogramAggregation())
    meter = meter_of(endpoint, views=[view])
    meter.create_histogram("odd").record(3.0)
    meter.create_counter("even").add(1)
    text = get(endpoint)[1]
    assert 'odd_bucket{le="+Inf"} 1.0\n' in text
    assert "even_total 1.0\n" in text


def test_keys_that_fall_on_one_label_are_joined(endpoint):
    meter_of(endpoint).create_counter("c").add(1, {"a.b": "x", "a_b": "y", "1": True, "l": ("p", "q")})
    assert 'c_total{_1="true",a_b="x;y",l="[\\"p\\", \\"q\\"]"} 1.0\n' in get(endpoint)[1]


@pytest.mark.parametrize(
    ("path", "method", "code"), [("/", "GET", 404), ("/metrics", "DELETE", 405), ("/metrics", "GET", 500)]
)
def test_other_paths_other_methods_and_a_failing_collection(endpoint, monkeypatch, path, method, code):
    monkeypatch.setattr(endpoint.reader, "get_metrics_data", lambda: 1 / 0)
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(endpoint, path=path, method=method)
    assert caught.value.code == code
    caught.value.close()
    monkeypatch.undo()
    assert get(endpoint, method="HEAD")[1] == ""
    assert get(endpoint)[1].endswith("# EOF\n"), "the server lives"


def test_a_taken_port_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            OpenMetricsEndpoint(port=port)
    assert str(caught.value) == (
        f"metrics_port={port}: cannot listen on 127.0.0.1: Address already in use;"
        " choose another metrics_port, or 0 for any free one"
    )


def test_close_is_quick_frees_the_port_and_may_be_repeated():
    endpoint = OpenMetricsEndpoint(port=0)
    get(endpoint)
    started = time.monotonic()
    endpoint.close()
    endpoint.close()
    assert time.monotonic() - started < 5.0
    OpenMetricsEndpoint(port=endpoint.port).close()


@pytest.mark.parametrize("given", [{}, {"host": ""}])
def test_bound_to_loopback_unless_told(given):
    endpoint = OpenMetricsEndpoint(port=0, **given)
    assert endpoint._server.server_address[0] == "127.0.0.1"
    assert endpoint.url == f"http://127.0.0.1:{endpoint.port}/metrics"
    endpoint.close()


def test_no_exemplar_without_a_trace():
    reader = ScrapeReader()
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    nobody = trace.set_span_in_context(trace.INVALID_SPAN)
    provider.get_meter("x").create_histogram("h").record(1.0, context=nobody)
    assert not any(sample.exemplar for family in OTelCollector(reader).collect() for sample in family.samples)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on this machine")
def test_promtool_finds_nothing_wrong(endpoint):
    fill(meter_of(endpoint))
    _, text = get(endpoint, accept="text/plain")
    done = subprocess.run(
        ["promtool", "check", "metrics"], check=False, input=text, capture_output=True, text=True, timeout=30
    )
    assert "error while linting" not in done.stderr
    assert done.returncode in {0, 3}, done.stderr  # 3: advice on style


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not on this machine")
def test_prometheus_scrapes_it_and_stores_the_exemplar(endpoint, tmp_path):
    fill(meter_of(endpoint))
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: ragtrace\n  static_configs:\n"
        f"  - targets: ['127.0.0.1:{endpoint.port}']\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage",
    ]  # fmt: skip
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            url = f"http://127.0.0.1:{port}/api/v1/query_exemplars?query=ragtrace_evaluation_score_bucket&start=0&end=9999999999"
            assert TRACE in _until(url, TRACE)
            assert '"2"' in _until(f"http://127.0.0.1:{port}/api/v1/query?query=ragtrace_score_n_total", '"2"')
        finally:
            server.terminate()


def _until(url, wanted, timeout_s=30.0):
    deadline, text = time.monotonic() + timeout_s, ""
    while wanted not in text and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                text = reply.read().decode()
        except OSError:
            text = ""
        time.sleep(0.1)
    return text
