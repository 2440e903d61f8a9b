"""ragtrace doctor over real servers, files and packages, as a person runs it."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest

from docs import otel_table
from ragtrace.cli import main
from ragtrace.cli.doctor import endpoints, setup
from ragtrace.cli.doctor.packages import own_floors
from tests.guards.judge_server import Answer, completion
from tests.kafka_broker import tansu

SIGNALS = ("TRACES", "METRICS", "LOGS")
VERDICT = {"id": 1, "sources": [1], "reason": "", "verdict": "supported"}
AUDIT = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["The lab is in Oslo."],
    "verdicts": [VERDICT],
    "citations": [],
}


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("OTEL_", "OPENAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for signal in SIGNALS:
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    monkeypatch.setattr(endpoints, "LIMIT_S", 1.0)


@pytest.fixture
def doctor(capsys, monkeypatch):
    """Run the command with variables; its status and checks."""

    def run(*args, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        status = main(["doctor", "--json", *args])
        report = json.loads(capsys.readouterr().out)
        assert (status == 1) == (report["status"] == "fail")
        return status, {check["check"]: check for check in report["checks"]}

    return run


@pytest.fixture
def said(doctor):
    """Run the command; the level of one check and its words."""

    def run(check, **variables):
        found = doctor(**variables)[1][check]
        return found["level"], f"{found['said']}: {found['todo']}"

    return run


@pytest.fixture
def collector():
    """Start a server that answers each POST with a status; its address and what it was sent."""
    servers = []

    def start(status=200):
        requests = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                requests.append(
                    (self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
                )
                self.send_response_only(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Quiet."""

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}", requests

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def judge_server(judge_server, monkeypatch):
    judge_server.always = lambda _: Answer(200, completion(AUDIT))
    monkeypatch.setenv("RAGTRACE_JUDGE", "openai:m")
    monkeypatch.setenv("RAGTRACE_JUDGE_BASE_URL", judge_server.url)
    monkeypatch.setenv("RAGTRACE_JUDGE_API_KEY", "sk-very-secret")
    return judge_server


@pytest.fixture
def send_to(monkeypatch):
    def send(url, *signals):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        for signal in signals or SIGNALS:
            monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)

    return send


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_fresh_setup_with_a_collector_is_well_one_line_a_check(capsys, send_to, collector):
    send_to(collector()[0])
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [
        "settings", "otlp", "otlp", "otlp", "judge", "disk", "ids", "conflicts", "versions", "extras",
    ]  # fmt: skip
    assert all(line.startswith("ok    ") for line in lines), lines


# -- settings --


def test_an_unknown_variable_is_a_warning_with_the_nearest_name(said):
    level, words = said("settings", RAGTRACE_SAMPEL_RATE="0.5")
    assert (level, "did you mean 'RAGTRACE_SAMPLE_RATE'?" in words) == ("warn", True)


def test_a_variable_that_is_gone_fails_and_a_mistyped_one_is_not_to_be_unset(said, monkeypatch):
    assert said("settings", RAGTRACE_SAMPEL_RATE="1")[1].endswith("did you mean 'RAGTRACE_SAMPLE_RATE'?: ")
    monkeypatch.delenv("RAGTRACE_SAMPEL_RATE")
    level, words = said("settings", RAGTRACE_BUDGET_SHARE="0.5")
    assert level == "fail"
    assert words.startswith("RAGTRACE_BUDGET_SHARE is gone: set RAGTRACE_BUDGET_USD_PER_DAY")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RAGTRACE_SINKS": "fenix"}, "no entry point 'fenix'; did you mean 'phoenix'?"),
        ({"RAGTRACE_SINKS": "langfuse"}, "it needs the server's address: set LANGFUSE_BASE_URL"),
        ({"RAGTRACE_SINKS": "langfuse", "LANGFUSE_BASE_URL": "http://h"}, "Langfuse needs public_key"),
    ],
)
def test_a_sink_that_the_worker_refuses_fails_with_the_same_line(doctor, capsys, tmp_path, variables, words):
    _, checks = doctor(**variables, OTEL_SERVICE_NAME="ragtrace")  # as the worker names itself
    assert checks["settings"]["level"] == "fail"
    assert words in checks["settings"]["said"]
    assert "judge" in checks
    assert main(["worker", "--once", "--spool", str(tmp_path / "spool.sqlite")]) == 2
    assert capsys.readouterr().err == f"ragtrace: {checks['settings']['said']}\n"


def test_a_wrong_value_fails_and_the_other_checks_go_on(doctor):
    _, checks = doctor(RAGTRACE_SAMPLE_RATE="7")
    assert (checks["settings"]["level"], checks["versions"]["level"]) == ("fail", "ok")
    assert "between 0.0 and 1.0" in checks["settings"]["said"]
    assert "judge" not in checks


@pytest.mark.parametrize(
    ("variable", "value", "check", "words"),
    [
        ("RAGTRACE_METRICS", "fathfulness", "judge", "did you mean 'faithfulness'?"),
        ("RAGTRACE_JUDGE", "openai:m", "judge", "set OPENAI_API_KEY"),
        ("RAGTRACE_SCORER", "worker", "settings", "needs a spool"),
        ("RAGTRACE_METRIC_RATES", "faithfulness", "settings", "is no METRIC=RATE"),
        ("RAGTRACE_METRIC_RATES", "fathfulness=1", "settings", "did you mean 'faithfulness'?"),
        ("RAGTRACE_SAMPLING_RULES", "foo=1", "settings", "unknown field 'foo'"),
        ("RAGTRACE_JUDGE_REPEATS", "3", "judge", "never changes its mind"),
        ("RAGTRACE_LABEL_FREEZE", "5", "judge", "grade_cache=memory has no labels to freeze"),
        ("RAGTRACE_FIRST_JUDGE", "overlap", "judge", "first_judge and judge are both 'overlap'"),
        ("OTEL_TRACES_EXPORTER", "oltp", "otlp traces", "did you mean 'otlp'?"),
    ],
)
def test_a_wrong_setting_fails_with_the_remedy(said, variable, value, check, words):
    level, found = said(check, **{variable: value})
    assert (level, words in found) == ("fail", True), found


# -- endpoints --


def test_a_collector_gets_an_empty_request_with_the_headers_of_each_signal(doctor, send_to, collector):
    url, requests = collector()
    send_to(url + "/")
    status, checks = doctor(OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20top-secret")
    assert (status, [checks[f"otlp {it.lower()}"]["level"] for it in SIGNALS]) == (0, ["ok"] * 3)
    assert [path for path, _, _ in requests] == ["/v1/traces", "/v1/metrics", "/v1/logs"]
    assert {body for _, _, body in requests} == {b""}
    assert {headers["authorization"] for _, headers, _ in requests} == {"Bearer top-secret"}
    assert "top-secret" not in json.dumps(checks)


def test_a_signals_own_endpoint_is_taken_as_it_is(doctor, send_to, collector):
    url, requests = collector()
    send_to(f"http://127.0.0.1:{closed_port()}", "TRACES")
    assert doctor(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url + "/own")[0] == 0
    assert [path for path, _, _ in requests] == ["/own"]


def test_a_login_in_the_address_is_sent_and_not_shown(doctor, send_to, collector):
    url, requests = collector()
    send_to(url.replace("//", "//user:pass-word@"), "TRACES")
    status, checks = doctor()
    assert (status, requests[0][1]["Authorization"]) == (0, "Basic dXNlcjpwYXNzLXdvcmQ=")
    assert "pass-word" not in json.dumps(checks)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("login", ["ada:s3/cret", "ada:s3?cret", "ada:s3#cret", "ada:s3@cret", "ada:7/s3cret"])
def test_a_password_is_not_shown_however_it_is_written(doctor, monkeypatch, send_to, login, protocol):
    monkeypatch.setattr(endpoints, "LIMIT_S", 0.3)
    send_to(f"http://{login}@127.0.0.1:{closed_port()}", "TRACES")
    status, checks = doctor(OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    assert status == 1
    assert not {part for part in ("s3", "cret") if part in json.dumps(checks)}


def test_a_server_that_is_down_fails_with_the_remedy(said, send_to):
    send_to(f"http://127.0.0.1:{closed_port()}", "TRACES")
    level, words = said("otlp traces")
    assert level == "fail"
    assert "cannot be reached over HTTP" in words
    assert "OTEL_TRACES_EXPORTER=none" in words
    assert said("otlp logs")[0] == "ok"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_unused_default_address_is_a_warning_and_a_configured_one_a_failure(monkeypatch, protocol):
    here = dict.fromkeys(("http/protobuf", "grpc"), f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setattr(endpoints, "_DEFAULTS", here)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    for signal in SIGNALS[1:]:
        monkeypatch.delenv(f"OTEL_{signal}_EXPORTER")
    assert [one.level for one in endpoints.check_otlp(limit_s=0.3)] == ["fail", "warn", "warn"]


@pytest.mark.parametrize(
    ("status", "todo"),
    [(401, "OTEL_EXPORTER_OTLP_HEADERS"), (404, "no such path"), (405, "EXPORTER=none"), (400, "look")],
)
def test_a_server_that_refuses_the_batch(said, send_to, collector, status, todo):
    send_to(collector(status)[0], "METRICS")
    level, words = said("otlp metrics")
    assert (level, f"answers {status}" in words, todo in words) == ("fail", True, True)


@pytest.mark.parametrize(
    "address", ["nonsense", "file:///etc/passwd", "http://", "http://127.0.0.1:port", "http://[::1"]
)
def test_a_wrong_address_fails(said, send_to, address):
    send_to("http://127.0.0.1:9", "TRACES")
    level, words = said("otlp traces", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=address)
    assert (level, "report it" in words) == ("fail", False)


def test_a_server_that_is_silent_costs_a_short_time(send_to):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        send_to(f"http://127.0.0.1:{silent.getsockname()[1]}", "TRACES")
        began = time.monotonic()
        assert endpoints.check_otlp(limit_s=0.2)[0].level == "fail"
        assert time.monotonic() - began < 10.0


def test_a_grpc_endpoint(said, send_to):
    class Takes(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            return grpc.unary_unary_rpc_method_handler(lambda _, __: b"")

    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=(Takes(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        send_to(f"http://127.0.0.1:{port}", "TRACES")
        assert said("otlp traces", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")[0] == "ok"
        send_to(f"http://user:pass-word@127.0.0.1:{port}")
        level, words = said("otlp traces")
        assert (level, "knows no login" in words) == ("fail", True), "the exporter finds no host there"
        send_to(f"http://127.0.0.1:{port}")
        assert said("otlp traces", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")[0] == "fail"
    finally:
        server.stop(None)


@pytest.mark.parametrize(
    ("port", "level", "words"),
    [("9999", "ok", "served at http://127.0.0.1:9999/metrics"), ("x", "fail", "OTEL_EXPORTER_PROMETHEUS_PORT='x'")],
)
def test_metrics_for_prometheus_are_served(said, port, level, words):
    found = said("otlp metrics", OTEL_METRICS_EXPORTER="prometheus", OTEL_EXPORTER_PROMETHEUS_PORT=port)
    assert (found[0], words in found[1]) == (level, True)


# -- settings of OpenTelemetry and what follows from them --

DELTA = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
BUCKETS = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
SAMPLER, RATIO = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"


@pytest.mark.parametrize(
    ("variables", "level", "words"),
    [
        ({DELTA: "delta"}, "warn", "boards and alert rules get nothing"),
        ({DELTA: "LowMemory"}, "warn", "deltatocumulative"),
        ({BUCKETS: "base2_exponential_bucket_histogram"}, "warn", "no _bucket series"),
        ({SAMPLER: "always_off"}, "warn", "the sampler is off"),
        ({SAMPLER: "parentbased_always_off"}, "warn", "the sampler is off"),
        ({SAMPLER: "parentbased_traceidratio", RATIO: "0.0"}, "warn", "OTEL_TRACES_SAMPLER_ARG=0.0"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "300000"}, "warn", "have gaps"),
        ({"OTEL_METRICS_EXEMPLAR_FILTER": "always_off"}, "warn", "leads to the trace"),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "4095"}, "warn", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=4095: passages"),
        ({"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "99"}, "warn", "ragtrace.span.cut names them"),
        ({"OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT": "99"}, "warn", "explanations"),
        ({"OTEL_ATTRIBUTE_COUNT_LIMIT": "64"}, "warn", "the last scores"),
        ({"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": "4"}, "warn", "lose attributes"),
        ({"OTEL_SPAN_EVENT_COUNT_LIMIT": "8"}, "warn", "no event"),
        (
            {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many"},
            "fail",
            "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=many: the SDK refuses it",
        ),
    ],
)
def test_a_setting_that_leaves_a_board_or_a_span_empty_says_so(said, variables, level, words):
    found, line = said("otel", **variables)
    assert (found, words in line) == (level, True), line


@pytest.mark.parametrize(
    "variables",
    [
        {DELTA: "cumulative", BUCKETS: "explicit_bucket_histogram", "OTEL_METRICS_EXEMPLAR_FILTER": "trace_based"},
        {SAMPLER: "traceidratio", RATIO: "0.1", "OTEL_METRIC_EXPORT_INTERVAL": "60000"},
        {SAMPLER: "traceidratio"},
        {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "65536", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "128"},
        {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "10", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "65536"},
    ],
)
def test_settings_that_lose_nothing_have_no_line(doctor, variables):
    assert "otel" not in doctor(**variables)[1]


def test_several_settings_have_a_line_each(capsys, monkeypatch):
    for name, value in {DELTA: "delta", SAMPLER: "always_off", "OTEL_ATTRIBUTE_COUNT_LIMIT": "3"}.items():
        monkeypatch.setenv(name, value)
    assert main(["doctor"]) == 0
    assert [line.split()[2].partition("=")[0] for line in capsys.readouterr().out.splitlines() if " otel " in line] == [
        SAMPLER, DELTA, "OTEL_ATTRIBUTE_COUNT_LIMIT",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("signal", "exporter", "more", "level", "words"),
    [
        ("METRICS", "none", {}, "warn", "boards and alert rules get nothing"),
        ("METRICS", "none", {"RAGTRACE_METRICS_PORT": "9464"}, "ok", "scrapes"),
        ("TRACES", "none", {}, "ok", "not sent"),
        ("LOGS", "none", {}, "ok", "not sent"),
        ("TRACES", "console", {}, "warn", "no backend gets anything"),
        ("METRICS", "console", {}, "warn", "no backend gets anything"),
        ("TRACES", "zipkin", {}, "warn", "zipkin: it is not supported and is ignored"),
        ("TRACES", "zipkin,console", {}, "warn", "printed"),
        ("LOGS", "oltp", {}, "fail", "did you mean 'otlp'?"),
    ],
)
def test_an_exporter_of_another_kind_says_who_gets_nothing(said, signal, exporter, more, level, words):
    found, line = said(f"otlp {signal.lower()}", **{f"OTEL_{signal}_EXPORTER": exporter}, **more)
    assert (found, words in line) == (level, True), line


def test_an_exporter_beside_otlp_changes_nothing(said, send_to, collector):
    send_to(collector()[0], "TRACES")
    assert "takes them" in said("otlp traces", OTEL_TRACES_EXPORTER="console,otlp")[1]


def test_a_disabled_sdk_has_one_line(doctor):
    _, checks = doctor(OTEL_SDK_DISABLED="true", OTEL_TRACES_SAMPLER="always_off")
    assert (checks["otlp"]["level"], "nothing is exported" in checks["otlp"]["said"]) == ("warn", True)
    assert not {"otel", "otlp traces", "otlp metrics", "otlp logs"} & {*checks}


def test_the_page_has_the_table_of_these_settings():
    text = otel_table.PAGE.read_text()
    assert otel_table.with_table(text) == text, "run `python -m docs.otel_table`"


# -- judge --


def test_a_judge_is_asked_once_and_with_no_judge_never(doctor, judge_server):
    assert doctor("--no-judge")[0] == 0
    assert judge_server.requests == []
    status, checks = doctor()
    assert (status, checks["judge"]["level"], len(judge_server.requests)) == (0, "ok", 1)
    assert "openai:m replied in" in checks["judge"]["said"]


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        (Answer(401, {"error": {"message": "bad key sk-very-secret"}}), "fail", "refuses the API key (401)"),
        (Answer(404, {"error": {"message": "no such model"}}), "fail", "no such model or path"),
        (Answer(200, completion("I would rather not say.")), "fail", ""),
        (
            Answer(200, completion(AUDIT | {"verdicts": [VERDICT | {"verdict": "not_supported"}]})),
            "warn",
            "finds a copied sentence unsupported",
        ),
    ],
)
def test_a_judge_that_does_not_judge(said, judge_server, answer, level, words):
    judge_server.always = lambda _: answer
    found = said("judge")
    assert (found[0], words in found[1], "sk-very-secret" in found[1]) == (level, True, False)


def test_a_judge_that_is_silent(said, judge_server, hung, monkeypatch):
    monkeypatch.setattr("ragtrace.cli.doctor.setup.JUDGE_LIMIT_S", 0.3)
    level, words = said("judge", RAGTRACE_JUDGE_BASE_URL=hung)
    assert (level, "127.0.0.1:" in words, "has not answered for 0 s" in words) == ("fail", True, True)


# -- disk --


@pytest.mark.slow
def test_a_queue_on_kafka_is_asked_for_its_topic(said, monkeypatch):
    admin = pytest.importorskip("confluent_kafka.admin", reason="the extra kafka")
    monkeypatch.setattr(setup, "KAFKA_LIMIT_S", 2.0)
    with tansu() as brokers:
        queue = f"kafka://{brokers}/units"
        level, words = said("queue", RAGTRACE_QUEUE=queue)
        assert (level, words.partition(": ")[0]) == ("warn", "Kafka answers; topic units does not exist")
        made = admin.AdminClient({"bootstrap.servers": brokers})
        made.create_topics([admin.NewTopic("units", num_partitions=3)])["units"].result(10)
        assert said("queue", RAGTRACE_QUEUE=queue) == ("ok", "Kafka answers; topic units has 3 partitions: ")
    assert said("queue", RAGTRACE_QUEUE=queue) == ("fail", f"Kafka at {brokers} does not answer: ")


def test_files_that_can_be_written_are_not_made(doctor, tmp_path):
    _, checks = doctor(
        RAGTRACE_SPOOL=tmp_path / "spool",
        RAGTRACE_SPOOL_BYTES=1_000,
        RAGTRACE_GRADE_CACHE=tmp_path / "grades",
        RAGTRACE_LABEL_FREEZE=5,
    )
    assert (checks["spool"]["level"], checks["grade cache"]["level"]) == ("ok", "ok")
    assert list(tmp_path.iterdir()) == []


def test_a_grade_cache_that_is_another_programs_file_fails(said, tmp_path):
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE theirs (n)")
    other.close()
    level, words = said("judge", RAGTRACE_GRADE_CACHE=tmp_path / "other")
    assert (level, "use a file of its own" in words) == ("fail", True)


@pytest.mark.parametrize(
    ("variable", "name", "words"),
    [
        ("SPOOL", "no/spool", "make the folder"),
        ("STORE", "a" * 300, "File name too long: choose another file"),
        ("STORE", "notes", "'notes' is not an SQLite file: check the path"),
        ("SPOOL", "notes", "'notes' is not an SQLite file: check the path"),
    ],
)
def test_a_file_that_cannot_be_used_fails_and_stays(doctor, tmp_path, variable, name, words):
    notes = tmp_path / "notes"
    notes.write_text("the thesis")
    notes.chmod(0o600)
    _, checks = doctor(**{f"RAGTRACE_{variable}": tmp_path / name})
    found = checks[variable.lower()]
    assert (found["level"], checks["versions"]["level"]) == ("fail", "ok")
    assert words in f"{found['said']}: {found['todo']}"
    assert notes.read_text() == "the thesis"


def test_a_store_that_others_may_read_is_a_warning(said, tmp_path):
    store = tmp_path / "store"
    store.touch()
    store.chmod(0o644)
    level, words = said("store", RAGTRACE_STORE=store, RAGTRACE_STORE_BYTES=2_000_000)
    assert (level, words.endswith(f": chmod 600 {store}")) == ("warn", True)
    store.chmod(0o600)
    assert said("store")[0] == "ok"


def test_less_room_than_the_limit_is_a_warning(said, tmp_path):
    level, words = said("spool", RAGTRACE_SPOOL=tmp_path / "spool", RAGTRACE_SPOOL_BYTES=10**18)
    assert (level, "may grow by" in words) == ("warn", True)


# -- packages: real metadata, in a folder that is put before the others --


@pytest.mark.parametrize(
    ("package", "version", "check", "words"),
    [
        ("ragtrace", "0.3.1", "conflicts", "is installed beside ragtrace-otel"),
        ("ragtrace", "0.3.1", "conflicts", "pip uninstall ragtrace ragtrace-otel"),
        ("langchain-core", "0.9.9", "versions", '"langchain-core>='),
        ("llama-index-core", "0.13.9", "versions", '"llama-index-core>='),
        ("opentelemetry-sdk", "0.9.9", "versions", '"opentelemetry-sdk>='),
    ],
)
def test_a_stranger_and_an_old_package_fail(said, tmp_path, monkeypatch, package, version, check, words):
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / f"{package.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {package}\nVersion: {version}\n")
    level, found = said(check)
    assert level == "fail"
    assert f"{package} {version}" in found
    assert words in found


def test_the_floors_are_those_of_our_own_metadata():
    floors = {(floor.package, floor.extra): floor.version for floor in own_floors()}
    assert floors["opentelemetry-sdk", ""] == "1.39"
    assert floors["langchain-core", "langchain"] == "1.0"
    assert floors["llama-index-core", "llamaindex"] == "0.14"
    assert floors["openai", "openai"] == "2.0", "also where the metadata names the bound above it first"
    assert not [extra for _, extra in floors if extra == "all"]
    assert own_floors("a-package-that-nobody-made") is None


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "another one after a restart"),
        ({"RAGTRACE_STORE": "scores.db"}, "without this store's file"),
        ({"RAGTRACE_ID_KEY": "s3cret"}, "that has this RAGTRACE_ID_KEY"),
        ({"RAGTRACE_CONTENT": "full"}, "a hash of the text"),
    ],
)
def test_it_says_how_long_ids_that_are_made_of_texts_stay(said, variables, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    level, line = said("ids", **variables)
    assert (level, words in line, "s3cret" in line) == ("ok", True, False)
    assert ("set RAGTRACE_ID_KEY" in line) == ("another one" in line)
