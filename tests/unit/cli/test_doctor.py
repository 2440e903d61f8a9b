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

import pytest

from ragtrace.cli.doctor.packages import own_floors
from ragtrace.cli.main import main
from tests.unit.judges.openai.judge_server import Answer, completion

SIGNALS = ("TRACES", "METRICS", "LOGS")
AUDIT = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["The lab is in Oslo."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("RAGTRACE_", "OTEL_", "OPENAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for signal in SIGNALS:
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    monkeypatch.setattr("ragtrace.cli.doctor.endpoints.LIMIT_S", 1.0)


@pytest.fixture
def doctor(capsys):
    def run(*args):
        status = main(["doctor", "--json", *args])
        said = capsys.readouterr().out
        report = json.loads(said)
        assert (status == 1) == (report["status"] == "fail")
        checks = {check["check"]: check for check in report["checks"]}
        return status, checks

    return run


class Collector:
    """A web server that takes POSTs as it is told and remembers them."""

    def __init__(self, status=200):
        self.requests = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), body))
                self.send_response_only(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def collector():
    made = []

    def start(**more):
        made.append(Collector(**more))
        return made[-1]

    yield start
    for one in made:
        one.server.shutdown()
        one.server.server_close()


@pytest.fixture
def judge_server(judge_server, monkeypatch):
    judge_server.always = lambda _: Answer(200, completion(AUDIT))
    monkeypatch.setenv("RAGTRACE_JUDGE", "openai:m")
    monkeypatch.setenv("RAGTRACE_JUDGE_BASE_URL", judge_server.url)
    monkeypatch.setenv("RAGTRACE_JUDGE_API_KEY", "sk-very-secret")
    return judge_server


def send_to(monkeypatch, url, *signals):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    for signal in signals or SIGNALS:
        monkeypatch.delenv(f"OTEL_{signal}_EXPORTER")


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_fresh_setup_is_well_one_line_a_check(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [
        "settings", "otlp", "otlp", "otlp", "judge", "disk", "conflicts", "versions", "extras",
    ]  # fmt: skip
    assert all(line.startswith("ok    ") for line in lines), lines


# -- settings --


def test_an_unknown_variable_is_a_warning_with_the_nearest_name(doctor, monkeypatch):
    monkeypatch.setenv("RAGTRACE_SAMPEL_RATE", "0.5")
    status, checks = doctor()
    assert (status, checks["settings"]["level"]) == (0, "warn")
    assert "did you mean 'RAGTRACE_SAMPLE_RATE'?" in checks["settings"]["said"]


def test_a_wrong_value_fails_and_the_other_checks_go_on(doctor, monkeypatch):
    monkeypatch.setenv("RAGTRACE_SAMPLE_RATE", "7")
    status, checks = doctor()
    assert (status, checks["settings"]["level"]) == (1, "fail")
    assert "between 0.0 and 1.0" in checks["settings"]["said"]
    assert checks["versions"]["level"] == "ok"
    assert "judge" not in checks


@pytest.mark.parametrize(
    ("variable", "value", "check", "words"),
    [
        ("RAGTRACE_METRICS", "fathfulness", "judge", "did you mean 'faithfulness'?"),
        ("RAGTRACE_JUDGE", "openai:m", "judge", "set OPENAI_API_KEY"),
        ("RAGTRACE_SCORER", "worker", "settings", "needs a spool"),
        ("RAGTRACE_METRIC_RATES", "faithfulness", "settings", "is no METRIC=RATE"),
        ("RAGTRACE_METRIC_RATES", "fathfulness=1", "settings", "did you mean 'faithfulness'?"),
        ("RAGTRACE_METRIC_RATES", "faithfulness=2", "settings", "a rate lies between 0 and 1"),
        ("RAGTRACE_SAMPLING_RULES", "foo=1", "settings", "unknown field 'foo'"),
        ("RAGTRACE_SAMPLING_RULES", "rate=9", "settings", "a rate lies between 0 and 1"),
        ("RAGTRACE_JUDGE_REPEATS", "3", "judge", "never changes its mind"),
        ("RAGTRACE_LABEL_FREEZE", "5", "judge", "grade_cache=memory has no labels to freeze"),
        ("OTEL_TRACES_EXPORTER", "oltp", "otlp traces", "did you mean 'otlp'?"),
    ],
)
def test_what_cannot_work_fails_with_what_to_do(doctor, monkeypatch, variable, value, check, words):
    monkeypatch.setenv(variable, value)
    status, checks = doctor()
    assert (status, checks[check]["level"]) == (1, "fail")
    assert words in checks[check]["said"]


# -- endpoints --


def test_a_collector_gets_an_empty_request_with_the_headers_of_each_signal(doctor, monkeypatch, collector):
    server = collector()
    send_to(monkeypatch, server.url + "/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20top-secret")
    status, checks = doctor()
    assert status == 0
    assert [checks[f"otlp {signal.lower()}"]["level"] for signal in SIGNALS] == ["ok"] * 3
    assert [path for path, _, _ in server.requests] == ["/v1/traces", "/v1/metrics", "/v1/logs"]
    assert {body for _, _, body in server.requests} == {b""}
    assert {headers["authorization"] for _, headers, _ in server.requests} == {"Bearer top-secret"}
    assert "top-secret" not in json.dumps(checks)


def test_a_signals_own_endpoint_is_taken_as_it_is(doctor, monkeypatch, collector):
    server = collector()
    send_to(monkeypatch, f"http://127.0.0.1:{closed_port()}", "TRACES")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.url + "/own")
    assert doctor()[0] == 0
    assert [path for path, _, _ in server.requests] == ["/own"]


def test_a_login_in_the_address_is_sent_and_not_shown(doctor, monkeypatch, collector):
    server = collector()
    send_to(monkeypatch, server.url.replace("//", "//user:pass-word@"), "TRACES")
    status, checks = doctor()
    assert status == 0
    assert server.requests[0][1]["Authorization"] == "Basic dXNlcjpwYXNzLXdvcmQ="
    assert "pass-word" not in json.dumps(checks)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("login", ["ada:s3/cret", "ada:s3?cret", "ada:s3#cret", "ada:s3@cret", "ada:7/s3cret"])
def test_a_password_is_not_shown_however_it_is_written(monkeypatch, capsys, login, protocol):
    monkeypatch.setattr("ragtrace.cli.doctor.endpoints.LIMIT_S", 0.3)
    send_to(monkeypatch, f"http://{login}@127.0.0.1:{closed_port()}", "TRACES")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "s3" not in said
    assert "cret" not in said


def test_nobody_there(doctor, monkeypatch):
    send_to(monkeypatch, f"http://user:pass-word@127.0.0.1:{closed_port()}", "TRACES")
    status, checks = doctor()
    assert (status, checks["otlp traces"]["level"]) == (1, "fail")
    assert "cannot be reached over HTTP" in checks["otlp traces"]["said"]
    assert "OTEL_TRACES_EXPORTER=none" in checks["otlp traces"]["todo"]
    assert "pass-word" not in json.dumps(checks)
    assert checks["otlp metrics"]["level"] == "ok"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_nobody_at_the_default_that_nobody_configured_is_a_warning(monkeypatch, protocol):
    from ragtrace.cli.doctor import endpoints as doctor_endpoints

    here = dict.fromkeys(("http/protobuf", "grpc"), f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setattr(doctor_endpoints, "_DEFAULTS", here)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    for signal in SIGNALS:
        monkeypatch.delenv(f"OTEL_{signal}_EXPORTER")
    levels = [one.level for one in doctor_endpoints.check_otlp(limit_s=0.3)]
    assert levels == ["warn"] * 3
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    levels = [one.level for one in doctor_endpoints.check_otlp(limit_s=0.3)]
    assert levels == ["fail", "warn", "warn"]


@pytest.mark.parametrize(
    ("status", "todo"),
    [
        (401, "OTEL_EXPORTER_OTLP_HEADERS"),
        (404, "no such path"),
        (405, "EXPORTER=none"),
        (400, "look"),
    ],
)
def test_a_server_that_does_not_take_them(doctor, monkeypatch, collector, status, todo):
    send_to(monkeypatch, collector(status=status).url, "METRICS")
    _, checks = doctor()
    assert (checks["otlp metrics"]["level"], f"answers {status}" in checks["otlp metrics"]["said"]) == (
        "fail",
        True,
    )
    assert todo in checks["otlp metrics"]["todo"]


@pytest.mark.parametrize(
    "address", ["nonsense", "file:///etc/passwd", "http://", "http://127.0.0.1:port", "http://[::1"]
)
def test_no_address(doctor, monkeypatch, address):
    send_to(monkeypatch, "http://127.0.0.1:9", "TRACES")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address)
    status, checks = doctor()
    assert (status, checks["otlp traces"]["level"]) == (1, "fail")
    assert "report it" not in checks["otlp traces"]["todo"]


def test_a_server_that_is_silent_costs_a_short_time(monkeypatch):
    from ragtrace.cli.doctor.endpoints import check_otlp

    with socket.create_server(("127.0.0.1", 0)) as silent:
        send_to(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}", "TRACES")
        began = time.monotonic()
        traces = check_otlp(limit_s=0.2)[0]
        assert time.monotonic() - began < 10.0
    assert traces.level == "fail"


def test_a_grpc_endpoint(doctor, monkeypatch):
    import grpc

    class Takes(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            return grpc.unary_unary_rpc_method_handler(lambda _, __: b"")

    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=(Takes(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        send_to(monkeypatch, f"http://127.0.0.1:{port}", "TRACES")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        _, checks = doctor()
        assert checks["otlp traces"]["level"] == "ok", checks
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:pass-word@127.0.0.1:{port}")
        said = doctor()[1]["otlp traces"]
        assert (said["level"], "knows no login" in said["said"]) == ("fail", True), (
            "the exporter finds no host there"
        )
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        _, checks = doctor()
        assert checks["otlp traces"]["level"] == "fail"
    finally:
        server.stop(None)


# -- judge --


def test_a_judge_is_asked_once(doctor, judge_server):
    status, checks = doctor()
    assert (status, checks["judge"]["level"]) == (0, "ok")
    assert "openai:m replied in" in checks["judge"]["said"]
    assert len(judge_server.requests) == 1


def test_no_judge_asks_nobody(doctor, judge_server):
    assert doctor("--no-judge")[0] == 0
    assert judge_server.requests == []


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        (Answer(401, {"error": {"message": "bad key sk-very-secret"}}), "fail", "refuses the API key (401)"),
        (Answer(404, {"error": {"message": "no such model"}}), "fail", "no such model or path"),
        (Answer(200, completion("I would rather not say.")), "fail", ""),
        (
            Answer(200, completion(AUDIT | {"verdicts": [AUDIT["verdicts"][0] | {"verdict": "not_supported"}]})),
            "warn",
            "finds a copied sentence unsupported",
        ),
    ],
)
def test_a_judge_that_does_not_judge(doctor, judge_server, answer, level, words):
    judge_server.always = lambda _: answer
    _, checks = doctor()
    assert checks["judge"]["level"] == level
    assert words in checks["judge"]["said"]
    assert "sk-very-secret" not in json.dumps(checks)


def test_a_judge_that_is_silent(doctor, judge_server, monkeypatch):
    held = threading.Event()
    judge_server.always = lambda _: Answer(200, completion(AUDIT), hold=held)
    monkeypatch.setattr("ragtrace.cli.doctor.setup.JUDGE_LIMIT_S", 0.3)
    try:
        _, checks = doctor()
    finally:
        held.set()
    assert (checks["judge"]["level"], "did not answer" in checks["judge"]["said"]) == ("fail", True)


# -- disk --


def test_a_spool_that_can_be_written_is_left_alone(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGTRACE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("RAGTRACE_SPOOL_BYTES", "1000")
    monkeypatch.setenv("RAGTRACE_GRADE_CACHE", str(tmp_path / "grades"))
    monkeypatch.setenv("RAGTRACE_GRADE_CACHE_BYTES", "70000")
    _, checks = doctor()
    assert (checks["spool"]["level"], checks["grade cache"]["level"]) == ("ok", "ok")
    assert list(tmp_path.iterdir()) == []


def test_a_grade_cache_that_is_another_programs_file_fails(doctor, monkeypatch, tmp_path):
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE theirs (n)")
    other.close()
    monkeypatch.setenv("RAGTRACE_GRADE_CACHE", str(tmp_path / "other"))
    status, checks = doctor()
    assert (status, checks["judge"]["level"]) == (1, "fail")
    assert "use a file of its own" in checks["judge"]["said"]


def test_a_new_grade_cache_may_be_frozen(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGTRACE_GRADE_CACHE", str(tmp_path / "grades"))
    monkeypatch.setenv("RAGTRACE_LABEL_FREEZE", "5")
    assert doctor()[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_spool_whose_folder_is_not_there(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGTRACE_SPOOL", str(tmp_path / "no" / "spool"))
    status, checks = doctor()
    assert (status, checks["spool"]["level"]) == (1, "fail")
    assert "make the folder" in checks["spool"]["todo"]


@pytest.mark.parametrize(("setting", "check"), [("SPOOL", "spool"), ("STORE", "store")])
def test_a_file_that_is_none_of_sqlite_fails_and_stays(doctor, monkeypatch, tmp_path, setting, check):
    notes = tmp_path / "notes"
    notes.write_text("the thesis")
    notes.chmod(0o600)
    monkeypatch.setenv(f"RAGTRACE_{setting}", str(notes))
    status, checks = doctor()
    assert (status, checks[check]["level"]) == (1, "fail")
    assert checks[check]["said"] == "'notes' is not an SQLite file"
    assert "check the path" in checks[check]["todo"]
    assert notes.read_text() == "the thesis"


def test_a_name_that_the_system_refuses_fails_and_the_other_checks_go_on(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGTRACE_STORE", str(tmp_path / ("a" * 300)))
    status, checks = doctor()
    assert (status, checks["store"]["level"]) == (1, "fail")
    assert checks["store"]["said"].endswith("File name too long")
    assert checks["versions"]["level"] == "ok"


def test_a_store_that_others_may_read_is_a_warning(doctor, monkeypatch, tmp_path):
    store = tmp_path / "store"
    store.touch()
    store.chmod(0o644)
    monkeypatch.setenv("RAGTRACE_STORE", str(store))
    status, checks = doctor()
    assert (status, checks["store"]["level"]) == (0, "warn")
    assert checks["store"]["todo"] == f"chmod 600 {store}"
    store.chmod(0o600)
    monkeypatch.setenv("RAGTRACE_STORE_BYTES", "2000000")
    assert doctor()[1]["store"]["level"] == "ok"


def test_less_room_than_the_limit_is_a_warning(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGTRACE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("RAGTRACE_SPOOL_BYTES", str(10**18))
    _, checks = doctor()
    assert (checks["spool"]["level"], "may grow by" in checks["spool"]["said"]) == ("warn", True)


# -- packages: real metadata, in a folder that is put before the others --


@pytest.fixture
def install(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name, version):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")

    return put


def test_the_other_project_of_our_name_is_found(doctor, install):
    install("ragtrace", "0.3.1")
    status, checks = doctor()
    assert (status, checks["conflicts"]["level"]) == (1, "fail")
    assert "ragtrace 0.3.1 is installed beside ragtrace-otel" in checks["conflicts"]["said"]
    assert checks["conflicts"]["todo"].startswith("pip uninstall ragtrace ragtrace-otel")


@pytest.mark.parametrize("package", ["langchain-core", "llama-index-core", "opentelemetry-sdk"])
def test_a_package_below_our_floor(doctor, install, package):
    install(package, "0.9.9" if package != "llama-index-core" else "0.13.9")
    status, checks = doctor()
    assert (status, checks["versions"]["level"]) == (1, "fail")
    assert f"{package} 0." in checks["versions"]["said"]
    assert f'"{package}>=' in checks["versions"]["todo"]


def test_the_floors_are_those_of_our_own_metadata():
    floors = {(floor.package, floor.extra): floor.version for floor in own_floors()}
    assert floors["opentelemetry-sdk", ""] == "1.45"
    assert floors["langchain-core", "langchain"] == "1.0"
    assert floors["llama-index-core", "llamaindex"] == "0.14"
    assert not [extra for _, extra in floors if extra == "all"]
    assert own_floors("a-package-that-nobody-made") is None


@pytest.mark.parametrize(
    ("port", "level", "said"),
    [("9999", "ok", "served at http://127.0.0.1:9999/metrics"), ("x", "fail", "OTEL_EXPORTER_PROMETHEUS_PORT='x'")],
)
def test_metrics_for_prometheus_are_served(doctor, monkeypatch, port, level, said):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "prometheus")
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", port)
    check = doctor()[1]["otlp metrics"]
    assert (check["level"], check["said"].startswith(said)) == (level, True)
