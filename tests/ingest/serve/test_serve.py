"""``ragtrace serve`` as a process: OTLP of real instrumentations in, evaluation spans, events and metrics out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragtrace import semconv
from ragtrace.queues import SqliteQueue
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests.command_line import environment, ran
from tests.e2e.howto import blocks, run_shell
from tests.ingest.serve.serving import (
    FIXTURES,
    evaluations,
    has_evaluations,
    serving,
    spans_of,
    wait_for,
)

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

pytestmark = pytest.mark.slow
OPENINFERENCE = "openinference/openinference-langchain-0.1.80.jsonl"
KEY = "ragtrace.evaluation.key"


QUESTION, ANSWER = "How many days do I have to return shoes?", "You can return shoes within 30 days of delivery."
DOCUMENTS = json.dumps([{"id": "returns", "content": ANSWER}])


def chain(kind: str, documents: str = "") -> dict[str, str]:
    """Return attributes of OpenInference."""
    found = {"openinference.span.kind": kind, "input.value": QUESTION}
    return found | ({"retrieval.documents": documents} if documents else {"output.value": ANSWER})


def requests(name: str = OPENINFERENCE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]


def roots(name: str = OPENINFERENCE) -> dict[str, str]:
    """Return the ids of roots by trace."""
    spans = [span for request in requests(name) for span in spans_of(request)]
    return {span["traceId"]: span["spanId"] for span in spans if not span.get("parentSpanId")}


def only(request: dict[str, Any], keep: Any) -> str:
    """Return a request with those spans alone that are to be kept."""
    kept = json.loads(json.dumps(request))
    for resource in kept["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [span for span in scope["spans"] if keep(span)]
    return json.dumps(kept)


def test_scores_of_an_openinference_application_arrive_below_its_roots() -> None:
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        serve.post_fixture(OPENINFERENCE)
        assert receiver.wait_for(has_evaluations(3), 60.0)
        assert receiver.wait_for(lambda it: len(it.logs) > 9 and "ragtrace.traces" in it.metrics, 60.0)
        assert serve.stop() == 0
    assert {span.trace_id.hex(): span.parent_span_id.hex() for span in evaluations(receiver)} == roots()
    found = {span.trace_id.hex(): attributes_of(span.attributes) for span in evaluations(receiver)}
    faithful = {value.get("ragtrace.score.faithfulness") for value in found.values()}
    assert {1.0, 0.5} <= faithful  # the second answer invents a sentence
    assert all(KEY in attributes_of(log.attributes) for log in receiver.logs if log.event_name)
    shown = str(receiver.requests)
    assert "unworn" not in shown  # no text of a passage or an answer leaves without content=full
    assert "3 scored" in serve.lines[-1]


def test_a_late_span_makes_one_revision_that_counts_no_trace_again() -> None:
    request = requests()[0]
    (root,) = [span for span in spans_of(request) if not span.get("parentSpanId")]
    is_retriever = lambda span: "HelpCentre" in span["name"]  # noqa: E731
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        serve.post(only(request, lambda span: not is_retriever(span)))
        assert receiver.wait_for(has_evaluations(1), 60.0)
        serve.post(only(request, is_retriever))
        assert receiver.wait_for(has_evaluations(2), 60.0)
        late = only({**request}, lambda span: span is not None and span["spanId"] == root["spanId"])
        serve.post(late.replace(root["spanId"], "00000000000000aa"))
        assert wait_for(lambda: serve.stop() == 0)
    first, second = (attributes_of(span.attributes) for span in evaluations(receiver))
    assert "ragtrace.score.faithfulness" not in first
    assert second["ragtrace.score.faithfulness"] == 1.0
    assert "1 span too late" in serve.lines[-1]
    points = receiver.metrics["ragtrace.traces"].sum.data_points
    assert sum(point.as_int for point in points) == 1


def test_our_own_evaluations_that_come_back_make_no_new_ones() -> None:
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        serve.post_fixture(OPENINFERENCE)
        assert receiver.wait_for(has_evaluations(3), 60.0)
        for request in list(receiver.requests):
            if type(request).__name__ == "ExportTraceServiceRequest":
                assert serve.post(request.SerializeToString()) == 200  # type: ignore[attr-defined]
        assert serve.stop() == 0
    assert len(evaluations(receiver)) == 3
    assert "3 scored" in serve.lines[-1]
    assert "late" not in serve.lines[-1]


def test_a_trace_without_a_run_is_explained_once_and_counted() -> None:
    span = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "GET /"}
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "flask"}, "spans": [span]}]}]}
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        assert serve.post(json.dumps(body)) == 200
        assert "scopes: flask" in serve.says("has no RAG run")
        assert serve.stop() == 0
    assert "1 skipped (no_rag_run)" in serve.lines[-1]


def test_at_sigterm_complete_traces_are_scored_and_the_others_counted() -> None:
    first, second = requests()[:2]
    with OtlpReceiver() as receiver, serving(receiver.endpoint, "--settle", "300") as serve:
        serve.post(json.dumps(first))
        serve.post(only(second, lambda span: span.get("parentSpanId")))
        assert serve.stop() == 0
    assert len(evaluations(receiver)) == 1
    assert "1 dropped (shutdown), 1 scored" in serve.lines[-1]


def test_with_a_worker_it_receives_alone(tmp_path: Path) -> None:
    spool = str(tmp_path / "spool.sqlite")
    with (
        OtlpReceiver() as receiver,
        serving(receiver.endpoint, "--spool", spool, RAGTRACE_SCORER="worker") as serve,
    ):
        assert "ragtrace worker scores from" in serve.says("ragtrace worker scores")
        serve.post_fixture(OPENINFERENCE)
        assert serve.stop() == 0
        assert not evaluations(receiver)
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "RAGTRACE_CONSOLE": "1"}
        done = ran("worker", "--spool", spool, "--once", **variables)
        assert done.returncode == 0, done.stderr
        assert b"judge overlap; sinks: console" in done.stderr
        assert len(evaluations(receiver)) == 3


def test_a_killed_receiver_loses_what_it_assembles_and_nothing_else(tmp_path: Path) -> None:
    spool = str(tmp_path / "spool.sqlite")
    with OtlpReceiver() as receiver:
        with serving(receiver.endpoint, "--spool", spool, RAGTRACE_SCORER="worker") as serve:
            serve.post_fixture(OPENINFERENCE)
            assert wait_for(lambda: "3 scored" in ran("worker", "--spool", spool, "--once").stderr.decode())
        with serving(receiver.endpoint, "--spool", spool, "--settle", "300") as serve:
            serve.post_fixture("openinference/openinference-llama-index-4.6.1.jsonl")
            serve.process.kill()
        with serving(receiver.endpoint, "--spool", spool) as serve:
            assert serve.stop() == 0
            assert "in all 3 scored, 0 pending" in serve.lines[-1]


def test_the_first_lines_serve_a_reader_on_another_host() -> None:
    options = ("--http", "0.0.0.0:0", "--grpc", "0.0.0.0:0")
    with OtlpReceiver() as receiver, serving(receiver.endpoint, *options, RAGTRACE_CONSOLE="1") as serve:
        places = [line for line in serve.lines if "in a" in line]
        assert "ragtrace serve: judge overlap, 100% of traces; sinks: console" in serve.lines
        assert serve.post("{}", path="/v1/traces/v1/traces") == 404
        assert "there is no /v1/traces/v1/traces;" in serve.says("refused a request (not_found)")
    assert [line.split()[2] for line in places] == ["OTLP/HTTP", "in", "OTLP/GRPC"]
    for line, port in zip(places, ("HTTP", "HTTP", "GRPC"), strict=True):
        assert f"http://YOUR-HOST:{serve.ports[port]}" in line


def refusal(*options: str) -> str:
    """Run ``ragtrace serve`` in a process, whose C library writes past Python; return the one line of its refusal."""
    command = [sys.executable, "-m", "ragtrace", "serve", *options]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(("option", "other"), [("--grpc", "--http"), ("--http", "--grpc")])
def test_a_taken_port_is_one_line(option: str, other: str) -> None:
    with OtlpReceiver() as receiver:
        taken = f"127.0.0.1:{receiver.port}"
        line = refusal(option, taken, other, "127.0.0.1:0")
    assert f"cannot listen on {taken}: Address already in use; stop the process" in line
    assert f"{option} HOST:PORT" in line


def test_a_second_receiver_is_refused_at_the_grpc_port_of_the_first() -> None:
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        taken = f"127.0.0.1:{serve.ports['GRPC']}"
        assert f"cannot listen on {taken}" in refusal("--grpc", taken, "--http", "off")


def test_one_port_for_both_protocols_is_refused() -> None:
    with OtlpReceiver() as receiver:
        taken = f"127.0.0.1:{receiver.port}"
    assert f"HTTP: cannot listen on {taken}" in refusal("--grpc", taken, "--http", taken)


def test_a_receiver_that_would_send_to_itself_is_refused() -> None:
    with OtlpReceiver() as receiver:
        port = receiver.port
    done = ran(
        "serve",
        "--http",
        f"127.0.0.1:{port}",
        "--grpc",
        "off",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://localhost:{port}",
    )
    assert done.returncode == 2
    assert b"scores would be sent to this receiver itself" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--grpc", "4317"), "write HOST:PORT, for example 127.0.0.1:4317"),
        (("--http", "localhost"), "write HOST:PORT, for example 127.0.0.1:4328"),
        (("--grpc", "off", "--http", "off"), "leave nothing to listen at: leave one of them out"),
        (("--token-file", "/nowhere"), "--token-file /nowhere"),
        (("--tls-cert", "/nowhere"), "need each other"),
    ],
)
def test_a_wrong_option_is_one_line(options: tuple[str, ...], said: str) -> None:
    done = ran("serve", *options)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert said in done.stderr.decode()


def test_senders_give_the_token_of_the_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-token\n")
    with OtlpReceiver() as receiver, serving(receiver.endpoint, "--token-file", str(token)) as serve:
        assert serve.post('{"resourceSpans": []}') == 401
        assert serve.post('{"resourceSpans": []}') == 401
        assert serve.stop() == 0
        assert not any("secret-token" in line for line in serve.lines)
        assert sum("refused a request (unauthenticated)" in line for line in serve.lines) == 1
        assert sum("authorization=Bearer%20TOKEN" in line for line in serve.lines) == 2
        assert "(unauthenticated)" in serve.lines[-1]


def test_sdk_exporters_of_both_protocols_send_to_it() -> None:
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        exporters = (
            HttpExporter(endpoint=f"{serve.http}/v1/traces", compression=Compression.Gzip),
            GrpcExporter(endpoint=serve.grpc, insecure=True),
        )
        sent = {}
        for exporter in exporters:
            provider = TracerProvider(shutdown_on_exit=False)
            provider.add_span_processor(BatchSpanProcessor(exporter))
            tracer = provider.get_tracer("openinference.instrumentation.langchain")
            with tracer.start_as_current_span("chain", attributes=chain("CHAIN")) as root:
                tracer.start_span("search", attributes=chain("RETRIEVER", documents=DOCUMENTS)).end()
                tracer.start_span("model", attributes=chain("LLM")).end()
            provider.shutdown()
            sent[f"{root.get_span_context().trace_id:032x}"] = f"{root.get_span_context().span_id:016x}"
        assert receiver.wait_for(has_evaluations(2), 60.0)
    assert {span.trace_id.hex(): span.parent_span_id.hex() for span in evaluations(receiver)} == sent
    assert [attributes_of(it.attributes)["ragtrace.score.faithfulness"] for it in evaluations(receiver)] == [
        1.0,
        1.0,
    ]


def test_the_page_s_program_joins_people_s_labels_with_the_texts(tmp_path: Path) -> None:
    name = "openinference/openinference-llama-index-4.6.1.jsonl"
    given = {"name": "feedback", "score.value": 0.0, "evaluator.type": "human"}
    pairs = [
        {"key": f"gen_ai.evaluation.{key}", "value": {"stringValue" if isinstance(it, str) else "doubleValue": it}}
        for key, it in given.items()
    ]
    event = {"eventName": "gen_ai.evaluation.result", "attributes": pairs}
    labels = [{**event, "traceId": trace_id} for trace_id in roots(name)]
    store = str(tmp_path / "store.sqlite")
    with (
        OtlpReceiver() as receiver,
        serving(receiver.endpoint, "--store", store, RAGTRACE_CONTENT="full") as serve,
    ):
        body = {"resourceLogs": [{"scopeLogs": [{"logRecords": labels}]}]}
        assert serve.post(json.dumps(body), "/v1/logs") == 200
        serve.post_fixture(name)
        assert receiver.wait_for(has_evaluations(3), 60.0)
        assert serve.stop() == 0
    (commands,) = blocks("serve", "sh", after="## Scores of people")
    (program,) = blocks("serve", "python", after="## Scores of people")
    (tmp_path / "join.py").write_text(program)
    commands = commands.replace("/var/lib/ragtrace/store.sqlite", store).replace("python ", f"{sys.executable} ")
    assert "1 records: 1 ok; 1 labelled" in run_shell(commands, tmp_path)  # texts of the run with the low score


def test_a_person_s_rating_and_a_foreign_score_stand_in_the_store(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    trace_id, span_id = next(iter(roots().items()))

    def rating(**given: str | float) -> dict[str, Any]:
        values = {key: {"stringValue" if isinstance(it, str) else "doubleValue": it} for key, it in given.items()}
        pairs = [{"key": f"gen_ai.evaluation.{key.replace('_', '.')}", "value": it} for key, it in values.items()]
        return {
            "traceId": trace_id,
            "spanId": span_id,
            "eventName": "gen_ai.evaluation.result",
            "attributes": pairs,
        }

    good = rating(name="feedback", score_value=1.0, evaluator_type="human")
    foreign = rating(name="groundedness", score_value=0.25, evaluator_name="deepeval")
    bad = rating(name="stars", score_value=4.0)
    with OtlpReceiver() as receiver, serving(receiver.endpoint, "--store", store) as serve:
        serve.post_fixture(OPENINFERENCE)
        body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [good, foreign, bad]}]}]}
        assert serve.post(json.dumps(body), "/v1/logs") == 200
        assert receiver.wait_for(has_evaluations(3), 60.0)
        assert receiver.resource["service.name"] == "ragtrace"
        assert serve.stop() == 0
    assert "1 label rejected (value not in 0 to 1), 1 label of other judges, 1 label of people" in serve.lines[-1]
    shown = ran("show", store, trace_id).stdout.decode()
    assert "groundedness" in shown
    assert "rater foreign:deepeval" in shown
    assert "faithfulness" in shown
    # A process that never saw the trace finds its workflow and its root in the store.
    late = rating(name="late", score_value=0.0, evaluator_type="human")
    with OtlpReceiver() as receiver, serving(receiver.endpoint, "--store", store) as serve:
        assert (
            serve.post(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [late]}]}]}), "/v1/logs") == 200
        )
        assert receiver.wait_for(lambda it: any(rated(log) == "late" for log in it.logs), 60.0)
        (event,) = [log for log in receiver.logs if rated(log) == "late"]
        assert (event.trace_id.hex(), event.span_id.hex()) == (trace_id, span_id)
        assert receiver.wait_for(lambda it: "late" in feedback_workflows(it), 60.0)
        assert feedback_workflows(receiver)["late"]


def rated(log: LogRecord) -> object:
    return attributes_of(log.attributes).get("gen_ai.evaluation.name")


def feedback_workflows(receiver: OtlpReceiver) -> dict[object, object]:
    """Return the workflow of each name that people rated, as the counter has it."""
    metric = receiver.metrics.get(semconv.FEEDBACK)
    points = [attributes_of(point.attributes) for point in metric.sum.data_points] if metric is not None else []
    return {point[semconv.GEN_AI_EVALUATION_NAME]: point[semconv.GEN_AI_WORKFLOW_NAME] for point in points}


def test_a_kill_loses_no_more_than_the_settle_time(tmp_path: Path) -> None:
    spool, acknowledged = tmp_path / "spool.sqlite", {}
    (line, *_) = (FIXTURES / OPENINFERENCE).read_text().splitlines()
    (old,) = {span["traceId"] for span in spans_of(json.loads(line))}
    options = ("--settle", "1", "--spool", str(spool))
    with OtlpReceiver() as receiver, serving(receiver.endpoint, *options, RAGTRACE_SCORER="worker") as serve:
        ends_at = time.monotonic() + 6.0
        while time.monotonic() < ends_at:
            trace_id = os.urandom(16).hex()
            assert serve.post(line.replace(old, trace_id)) == 200
            acknowledged[trace_id] = time.monotonic()
            time.sleep(0.05)
        serve.process.kill()
        killed_at = time.monotonic()
    queue, kept = SqliteQueue(spool), set()
    while jobs := queue.lease(512):
        kept |= {job.unit.record.trace_id for job in jobs}
    queue.close()
    lost = [killed_at - at for trace_id, at in acknowledged.items() if trace_id not in kept]
    assert kept
    assert max(lost) < 1.0 + 3.0  # the thread looks every .25 s; the rest is for a busy machine
