"""The Phoenix sink against a real HTTP server on loopback; tests/phoenix has the real Phoenix."""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from ragtrace.capture import internal_errors
from ragtrace.errors import ConfigError
from ragtrace.model import JudgeInfo
from ragtrace.sinks import Address, PhoenixSink, annotator_kind, span_annotations
from tests.unit.sinks.scores import RECORD, lost_at, score

if TYPE_CHECKING:
    from tests.unit.sinks.server import Scripted

KEY = "sk-phoenix-very-secret"


def one(*, has_content: bool = False, **facts: Any) -> dict[str, Any]:
    (row,) = span_annotations(RECORD, [score(**facts)], has_content=has_content)
    return row


@pytest.fixture
def server(serve):
    return serve()


def test_a_score_becomes_an_annotation_with_what_its_number_needs() -> None:
    judge = JudgeInfo(model="openai:m", prompt_hash="07903802", label_scale="direct5")
    row = one(
        value=0.25, passed=False, judge=judge, k=8, label_scope="gold", details={"n_claims": 4, "claims": ["x"]}
    )
    metadata = row.pop("metadata")
    assert row == {
        "span_id": "b" * 16,
        "name": "faithfulness",
        "annotator_kind": "LLM",
        "result": {"score": 0.25, "label": "fail"},
        "identifier": "ragtrace:faithfulness:dcbbe188",
    }
    assert metadata.pop("evaluator").startswith("ragtrace ")
    assert metadata == {
        "state": "ok", "judge": "openai:m", "judge_version": "07903802", "label_scale": "direct5",
        "version": "dcbbe188", "k": 8, "universe": "gold", "stratum": "random", "weight": 20.0,
        "workflow": "support", "details": {"n_claims": 4},
    }  # fmt: skip


def test_an_at_k_metric_has_a_name_for_each_k_and_without_a_threshold_no_label() -> None:
    row = one(name="p_at_k", variant="10", k=10, value=1.0)
    assert (row["name"], row["identifier"]) == ("p_at_k@10", "ragtrace:p_at_k@10:dcbbe188")
    assert row["result"] == {"score": 1.0}


def test_explanations_leave_in_content_mode_full_alone() -> None:
    details = {"unsupported": ["The answer said so."]}
    assert "explanation" not in one(details=details)["result"]
    assert "The answer said so." in one(details=details, has_content=True)["result"]["explanation"]
    failed = {"state": "error", "reason": "judge_refused", "details": {"message": "no to: The answer"}}
    assert one(**failed)["result"] == {"label": "error", "explanation": "judge_refused"}
    assert one(**failed, has_content=True)["result"]["explanation"] == "judge_refused: no to: The answer"


@pytest.mark.parametrize(
    ("state", "reason", "label"),
    [
        ("error", "judge_timeout", "error"),
        ("na", "no_claims", "na"),
        ("na", "no_contexts", "na"),
        ("na", "missing_input:reference", None),
        ("na", "no_labels", None),
        ("na", "unsupported_by_judge", None),
        ("skipped", "not_sampled", None),
    ],
)
def test_a_state_without_a_number_is_a_label_or_nothing(state: str, reason: str, label: str | None) -> None:
    rows = span_annotations(RECORD, [score(state=state, reason=reason)], has_content=False)
    assert [row["result"] for row in rows] == ([{"label": label, "explanation": reason}] if label else [])


def test_who_annotated() -> None:
    llm = ("openai:gpt-4o-mini", "panel:a+b", "scripted")
    code = ("overlap", "labels", "embedder:overlap", "embedder:openai:text-embedding-3-small")
    assert {annotator_kind(JudgeInfo(model=name)) for name in llm} == {"LLM"}
    assert {annotator_kind(JudgeInfo(model=name)) for name in code} == {"CODE"}
    assert annotator_kind(None) == "CODE"


def test_what_goes_over_the_wire(server: Scripted) -> None:
    sink = PhoenixSink(f"{server.url}/under/a/path/", api_key=KEY, content="full")
    odd = score("mrr", details={"explanation": "half \ud83d, zero \0", "ratio": float("inf"), "huge": 1 << 70})
    sink.emit(RECORD, [score(), odd])
    assert sink.close(30)
    ((path, headers, body),) = server.requests
    assert path == "/under/a/path/v1/span_annotations?sync=false"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    assert [row["name"] for row in body["data"]] == ["faithfulness", "mrr"]
    assert body["data"][1]["result"]["explanation"] == "half �, zero �"
    assert body["data"][1]["metadata"]["details"] == {"huge": str(1 << 70)}


def test_without_a_key_there_is_no_header(server: Scripted) -> None:
    sink = PhoenixSink(server.url)
    sink.emit(RECORD, [score()])
    assert sink.close(30)
    ((_, headers, _),) = server.requests
    assert "Authorization" not in headers


def test_emit_does_not_wait_for_a_server_that_does_not_answer(server: Scripted) -> None:
    before = lost_at("phoenix", "full")
    server.gate.clear()
    sink = PhoenixSink(server.url, queue=3)
    sink.emit(RECORD, [score()])
    assert server.arrived.wait(30)
    started = time.monotonic()
    sink.emit(RECORD, [score(str(n)) for n in range(10)])
    assert time.monotonic() - started < 5
    assert lost_at("phoenix", "full") == before + 7
    server.gate.set()
    sink.close(5)
    assert len(server.rows) == 4


@pytest.mark.parametrize("status", [0, 408, 429, 500, 502, 503, 507])
def test_what_may_pass_is_tried_again(status: int, serve) -> None:
    server = serve(status, status)
    sink = PhoenixSink(server.url)
    sink.emit(RECORD, [score()])
    assert sink.close(20)
    assert [row["name"] for row in server.rows] == ["faithfulness"] * 3


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "check api_key (PHOENIX_API_KEY)"),
        (403, "check api_key (PHOENIX_API_KEY)"),
        (404, "check endpoint (PHOENIX_COLLECTOR_ENDPOINT)"),
        (405, "check endpoint (PHOENIX_COLLECTOR_ENDPOINT)"),
        (302, "check endpoint (PHOENIX_COLLECTOR_ENDPOINT)"),
        (422, "refused an annotation (422)"),
    ],
)
def test_what_cannot_pass_is_said_once_and_counted(status: int, words: str, caplog, serve) -> None:
    before = lost_at("phoenix", "refused")
    server = serve(*[status] * 9, headers={"Location": "http://127.0.0.1:1/stolen"})
    sink = PhoenixSink(server.url, api_key=KEY)
    for _ in range(3):
        sink.emit(RECORD, [score()])
        assert not sink.flush(10)
    assert sink.close(30)
    assert lost_at("phoenix", "refused") == before + 3
    assert len(server.requests) == 3, "not one of them twice, and none at another address"
    said = [record.getMessage() for record in caplog.records if "Phoenix at" in record.getMessage()]
    assert len(said) == 1
    assert words in said[0]
    assert server.url in said[0]


def test_a_server_that_is_away_is_said_and_counted(caplog) -> None:
    before = lost_at("phoenix", "unreachable")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        sink = PhoenixSink(url, attempts=1, timeout_s=1.0)
        sink.emit(RECORD, [score()])
        assert not sink.flush(10)
    sink.close(1)
    assert lost_at("phoenix", "unreachable") == before + 1
    assert f"Phoenix at {url} cannot be reached or broke the connection (ConnectionRefusedError)" in caplog.text


def test_the_key_is_never_shown(caplog, serve) -> None:
    caplog.set_level(logging.DEBUG)
    server = serve(500, 401)
    sink = PhoenixSink(server.url, api_key=KEY)
    sink.emit(RECORD, [score()])
    sink.close(10)
    assert KEY not in caplog.text + repr(sink) + str(internal_errors())
    for wrong in (f"{KEY}\n", f"{KEY} x", f"{KEY}é"):
        with pytest.raises(ConfigError) as caught:
            PhoenixSink(server.url, api_key=wrong)
        assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        "127.0.0.1:6006", "ftp://127.0.0.1", "", "http://", "http://:6006", "http://host:port", "http://host:99999",
        "http://a b", "http://hö", "http://[::1", "http://user:pass-word@host", "http://host?x=1",
        "http://host#x", "http://host/v1/traces", "http://host/v1/", "http://host/graphql", 6006, None,
    ],
)  # fmt: skip
def test_a_wrong_endpoint_is_one_clear_line(endpoint: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        PhoenixSink(endpoint)
    assert "PHOENIX_COLLECTOR_ENDPOINT" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("name", ["timeout_s", "queue", "attempts"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        PhoenixSink("http://127.0.0.1:6006", **{name: 0})


def test_addresses() -> None:
    assert str(Address.parse("https://phoenix.example/", setting="x")) == "https://phoenix.example:443"
    assert str(Address.parse(" http://phoenix:6006\n", setting="x")) == "http://phoenix:6006", (
        "from a file of variables"
    )
    assert str(Address.parse("http://[::1]:6006/p/", setting="x")) == "http://[::1]:6006/p"


def run_once() -> str:
    with ragtrace.query("Where is the lab?") as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}], source="faq")
        run.answered("The lab is in Oslo. It has a pool on its roof.")
    return run.span_id


@pytest.mark.parametrize("path", ["", "/v1/traces"])  # as OpenTelemetry's exporters write it
def test_its_name_and_phoenixs_own_variables_are_enough(
    path: str, server: Scripted, monkeypatch, own_providers
) -> None:
    monkeypatch.setenv("RAGTRACE_SINKS", "phoenix")
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url + path)
    monkeypatch.setenv("PHOENIX_API_KEY", KEY)
    ragtrace.configure(metrics=["faithfulness"], content="full", **own_providers)
    span_id = run_once()
    assert ragtrace.flush(20)
    (row,) = server.rows
    assert (row["span_id"], row["name"], row["result"]["label"]) == (span_id, "faithfulness", "fail")
    assert "roof" in row["result"]["explanation"]
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"


def test_without_its_name_there_is_no_sink_and_no_thread(own_providers, monkeypatch) -> None:
    import threading

    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PHOENIX_API_KEY", KEY)
    ragtrace.configure(metrics=["faithfulness"], **own_providers)
    run_once()
    assert ragtrace.flush(20)
    assert not [thread for thread in threading.enumerate() if thread.name == "ragtrace.sinks.phoenix"]


def test_a_wrong_endpoint_leaves_what_ran_before(server: Scripted, own_providers) -> None:
    ragtrace.configure(metrics=["faithfulness"], sinks=PhoenixSink(server.url), **own_providers)
    with pytest.raises(ConfigError, match=r"PHOENIX_COLLECTOR_ENDPOINT. must begin with"):
        ragtrace.configure(metrics=["faithfulness"], sinks="phoenix:phoenix:6006", **own_providers)
    run_once()
    assert ragtrace.flush(20)
    assert len(server.rows) == 1


def test_shutdown_posts_what_is_there_and_keeps_its_deadline(server: Scripted, own_providers) -> None:
    ragtrace.configure(metrics=["faithfulness"], sinks=PhoenixSink(server.url), **own_providers)
    run_once()
    assert ragtrace.shutdown(20)
    assert len(server.rows) == 1
    server.gate.clear()
    ragtrace.configure(metrics=["faithfulness"], sinks=PhoenixSink(server.url), **own_providers)
    run_once()
    started = time.monotonic()
    assert not ragtrace.shutdown(1.5), "the server does not answer"
    assert time.monotonic() - started < 8  # a post to a silent server would take 10 s


class Ending:
    """A person's own sink with both optional methods."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def emit(self, record: Any, scores: Any) -> None:
        self.calls.append("emit")

    def flush(self, timeout_s: float) -> None:
        self.calls.append("flush")

    def close(self, timeout_s: float) -> bool:
        self.calls.append("close")
        return True


def test_sinks_are_flushed_and_closed_and_a_kept_one_is_not_closed(own_providers) -> None:
    first, kept = Ending(), Ending()
    ragtrace.configure(metrics=["faithfulness"], sinks=[first, kept], **own_providers)
    run_once()
    assert ragtrace.flush(20)
    assert first.calls == kept.calls == ["emit", "flush"]
    ragtrace.configure(metrics=["faithfulness"], sinks=[kept], **own_providers)
    assert first.calls == ["emit", "flush", "close"]
    assert kept.calls == ["emit", "flush", "flush"]
    run_once()
    assert ragtrace.shutdown(20)
    assert kept.calls == ["emit", "flush", "flush", "emit", "close"]


class Broken(Ending):
    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def flush(self, timeout_s: float) -> None:
        raise RuntimeError("inside")

    def close(self, timeout_s: float) -> bool:
        return self.may_go_on.wait(60)


def test_a_sink_that_raises_or_hangs_holds_nothing_up(own_providers) -> None:
    broken = Broken()
    ragtrace.configure(metrics=["faithfulness"], sinks=[broken], **own_providers)
    run_once()
    assert not ragtrace.flush(10)
    started = time.monotonic()
    assert not ragtrace.shutdown(0.5)
    assert time.monotonic() - started < 30
    broken.may_go_on.set()
