"""The Langfuse sink against a RECORDED contract on loopback, and not against a Langfuse server.

No Langfuse server installs from the registry. The contract is what langfuse 5.0.4, Langfuse's own Python client, sends
and accepts: its pydantic models read what we send and write what the server on loopback answers, and the client itself
sends a score to the same server. The older ingestion API, which that client no longer has, is recorded by hand from
the API definition in Langfuse's repository.
"""

from __future__ import annotations

import base64
import logging
import socket
from typing import Any

import pytest
from langfuse import Langfuse
from langfuse.api.commons.types.score_data_type import ScoreDataType
from langfuse.api.core.serialization import convert_and_respect_annotation_metadata as with_python_names
from langfuse.api.scores.types import CreateScoreBatchResponse, CreateScoreBatchResults, CreateScoreRequest
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace.capture import internal_errors
from ragtrace.errors import ConfigError
from ragtrace.model import JudgeInfo
from ragtrace.sinks import LangfuseSink, langfuse_scores, sinks_of
from ragtrace.sinks.langfuse import HEALTH, INGESTION, SCORES
from tests.unit.sinks.scores import RECORD, lost_at, score

PUBLIC, SECRET = "pk-lf-1234", "sk-lf-very-secret"
SDK_FIELDS = {"id", "traceId", "observationId", "name", "value", "dataType", "comment", "metadata", "timestamp"}


class Recorded:
    """Answers as the contract says, of one server version; keeps scores as Langfuse does: by id, name and day."""

    def __init__(self, version: str = "4.60.1", refused: tuple[str, ...] = (), later: tuple[str, ...] = ()) -> None:
        self.version, self.refused, self.later = version, refused, list(later)
        self.kept: dict[tuple[str, str, str], Any] = {}
        self.calls: list[str] = []

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.calls.append(f"{method} {path}")
        if path == HEALTH:
            return 200, {"status": "OK", "version": self.version}
        return self._taken(body) if path == SCORES else self._ingested(body["batch"])

    def _taken(self, body: Any) -> tuple[int, Any]:
        if not isinstance(body, list):
            return 400, {"message": "Invalid request data"}
        rows = with_python_names(object_=body, annotation=list[CreateScoreRequest], direction="read")
        scores = [CreateScoreRequest.model_validate(row) for row in rows]
        assert not any(score.model_extra for score in scores), "only fields that Langfuse knows"
        bad = [score for score in scores if score.name in self.refused]
        for row in body:
            self._keep(row, row["timestamp"])
        if not bad:
            return 202, CreateScoreBatchResponse().model_dump()
        errors = [{"message": f"{score.name} is refused"} for score in bad]
        results = CreateScoreBatchResults(accepted=len(body) - len(bad), rejected=len(bad), errors=errors)
        return 207, results.model_dump()

    def _ingested(self, batch: list[Any]) -> tuple[int, Any]:
        successes, errors = [], []
        for event in batch:
            assert event.keys() == {"id", "type", "timestamp", "body"}
            assert event["type"] == "score-create"
            name = event["body"]["name"]
            if name in self.refused:
                errors.append({"id": event["id"], "status": 400, "message": "Invalid request data"})
            elif name in self.later:
                self.later.remove(name)
                errors.append({"id": event["id"], "status": 500, "error": "Internal server error"})
            else:
                self._keep(event["body"], event["timestamp"])
                successes.append({"id": event["id"], "status": 201})
        return 207, {"successes": successes, "errors": errors}

    def _keep(self, row: dict[str, Any], timestamp: str) -> None:
        if row["name"] not in self.refused:
            self.kept[row["id"], row["name"], timestamp[:10]] = row


def sink_at(url: str, **options: Any) -> LangfuseSink:
    return LangfuseSink(url, public_key=PUBLIC, secret_key=SECRET, **options)


def test_what_we_send_is_what_langfuses_own_client_sends(serve) -> None:
    server = serve(replies=Recorded())
    ours = sink_at(server.url, content="full")
    ours.emit(RECORD, [score(passed=False, details={"explanation": "It says otherwise."})])
    assert ours.close(20)
    own = TracerProvider(shutdown_on_exit=False)  # else the client makes one and sets it for the whole process
    client = Langfuse(public_key=PUBLIC, secret_key=SECRET, base_url=server.url, tracer_provider=own)
    client.create_score(
        name="faithfulness", value=0.5, trace_id=RECORD.trace_id, observation_id=RECORD.span_id, score_id="s-1",
        data_type="NUMERIC", comment="It says otherwise.", metadata={"state": "ok"},
    )  # fmt: skip
    client.flush()
    client.shutdown()
    posts = [request for request in server.requests if request[0] == SCORES]
    (_, our_headers, (mine,)), (_, their_headers, (theirs,)) = posts
    assert our_headers["Authorization"] == their_headers["Authorization"]
    assert base64.b64decode(our_headers["Authorization"].removeprefix("Basic ")) == f"{PUBLIC}:{SECRET}".encode()
    assert mine.keys() == SDK_FIELDS
    assert mine.keys() - {"timestamp"} <= theirs.keys()
    for name in ("traceId", "observationId", "name", "value", "dataType", "comment"):
        assert mine[name] == theirs[name], name


def test_a_score_of_each_state() -> None:
    judge = JudgeInfo(model="openai:m", prompt_hash="07903802")
    rows = langfuse_scores(
        RECORD,
        [
            score(judge=judge, passed=True, details={"unsupported": ["The answer said so."], "n_claims": 4}),
            score("mrr", state="error", reason="judge_timeout"),
            score("recall", state="na", reason="no_contexts"),
            score("ndcg", state="na", reason="no_labels"),
            score("precision", state="skipped", reason="not_sampled"),
        ],
        has_content=False,
    )
    said = [(row["name"], row["value"], row["dataType"]) for row in rows]
    assert said == [
        ("faithfulness", 0.5, "NUMERIC"), ("mrr", "error", "CATEGORICAL"), ("recall", "na", "CATEGORICAL"),
    ]  # fmt: skip
    assert {row["dataType"] for row in rows} <= {kind.value for kind in ScoreDataType}
    assert rows[0]["metadata"]["judge"] == "openai:m"
    assert rows[0]["metadata"]["label"] == "pass"
    assert rows[0]["timestamp"] == "2023-11-14T22:13:20.250Z"
    assert "comment" not in rows[0]
    assert "The answer said so." not in str(rows)
    with_content = langfuse_scores(
        RECORD, [score(details={"unsupported": ["The answer said so."]})], has_content=True
    )
    assert "The answer said so." in str(with_content[0]["comment"])


@pytest.mark.parametrize("version", ["4.60.1", "4.59.0", "v5.1.0", "3.174.1", "4.58.9", "2.95.0"])
def test_a_score_sent_twice_is_kept_once_and_a_new_version_beside_it(version: str, serve) -> None:
    langfuse = Recorded(version)
    server = serve(replies=langfuse)
    for value in (0.25, 0.75):  # two processes
        sink = sink_at(server.url)
        sink.emit(RECORD, [score(value=value)])
        assert sink.close(20)
    assert [row["value"] for row in langfuse.kept.values()] == [0.75]
    sink = sink_at(server.url)
    sink.emit(RECORD, [score(value=1.0, version="aaaa0000")])
    assert sink.close(20)
    assert sorted(row["value"] for row in langfuse.kept.values()) == [0.75, 1.0]
    path = SCORES if version in {"4.60.1", "4.59.0", "v5.1.0"} else INGESTION
    assert langfuse.calls == [f"GET {HEALTH}", f"POST {path}"] * 3
    event_ids = [event["id"] for call, _, body in server.requests if call == INGESTION for event in body["batch"]]
    assert len(set(event_ids)) == len(event_ids), "Langfuse drops an event with an id that it has seen"


def test_refused_scores_of_a_list_are_counted_and_the_others_taken(serve, caplog) -> None:
    before = lost_at("langfuse", "refused")
    langfuse = Recorded(refused=("bad", "worse"))
    sink = sink_at(serve(replies=langfuse).url)
    sink.emit(RECORD, [score("good"), score("bad"), score("worse")])
    assert not sink.flush(20), "a loss is said"
    assert sink.close(20)
    assert lost_at("langfuse", "refused") == before + 2
    assert [name for _, name, _ in langfuse.kept] == ["good"]
    assert "refused scores of a batch" in caplog.text
    assert langfuse.calls.count(f"POST {SCORES}") == 1, "Langfuse asks that a 207 is not sent again"


def test_of_an_older_server_refused_events_are_counted_and_late_ones_sent_again(serve) -> None:
    before = lost_at("langfuse", "refused")
    langfuse = Recorded("3.174.1", refused=("bad",), later=("late", "late"))
    server = serve(replies=langfuse)
    sink = sink_at(server.url)
    sink.emit(RECORD, [score("good"), score("bad"), score("late")])
    assert not sink.flush(20)
    assert sink.close(20)
    assert lost_at("langfuse", "refused") == before + 1
    assert [name for _, name, _ in langfuse.kept] == ["good", "late"]
    batches = [[event["body"]["name"] for event in body["batch"]] for _, _, body in server.requests[1:]]
    assert batches == [["good", "bad", "late"], ["late"], ["late"]]


def test_an_event_that_never_passes_is_counted_as_unreachable(serve) -> None:
    before = lost_at("langfuse", "unreachable")
    langfuse = Recorded("3.174.1", later=("late",) * 9_999)
    sink = sink_at(serve(replies=langfuse).url, attempts=3)
    sink.emit(RECORD, [score("late"), score("good")])
    assert not sink.flush(20)
    assert lost_at("langfuse", "unreachable") == before + 1
    assert [name for _, name, _ in langfuse.kept] == ["good"]
    sink.close(1)


@pytest.mark.parametrize("status", [0, 408, 429, 500, 503])
def test_what_may_pass_is_tried_again(status: int, serve) -> None:
    langfuse = Recorded()
    sink = sink_at(serve(status, status, replies=langfuse).url)  # while it asks for the version
    sink.emit(RECORD, [score()])
    assert sink.close(20)
    assert len(langfuse.kept) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "check public_key (LANGFUSE_PUBLIC_KEY)"), (404, "check endpoint (LANGFUSE_BASE_URL)")],
)
def test_what_cannot_pass_is_said_once_and_counted_and_no_key_is_shown(status, words, serve, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    before = lost_at("langfuse", "refused")
    server = serve(status, status, replies=Recorded())
    sink = sink_at(server.url)
    for _ in range(2):
        sink.emit(RECORD, [score()])
        assert not sink.flush(20)
    assert lost_at("langfuse", "refused") == before + 2
    assert caplog.text.count(words) == 1
    told = caplog.text + repr(sink) + str(internal_errors())
    assert SECRET not in told
    assert base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode() not in told
    sink.close(1)


@pytest.mark.parametrize("endpoint", ["langfuse:3000", "", "http://h/api/public", "http://h/api/public/otel", None])
def test_a_wrong_endpoint_is_one_clear_line(endpoint: Any) -> None:
    with pytest.raises(ConfigError, match="LANGFUSE_BASE_URL"):
        sink_at(endpoint)


def test_a_missing_or_broken_key_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match=r"needs public_key .LANGFUSE_PUBLIC_KEY. and secret_key"):
        LangfuseSink("http://h", public_key=PUBLIC, secret_key=None)
    with pytest.raises(ConfigError, match=r"secret_key .LANGFUSE_SECRET_KEY. holds a character") as caught:
        LangfuseSink("http://h", public_key=PUBLIC, secret_key=f"{SECRET}\n")
    assert SECRET not in str(caught.value)


def test_by_name_it_finds_address_and_keys_where_langfuses_client_does(serve, monkeypatch) -> None:
    langfuse = Recorded()
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", PUBLIC)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)
    monkeypatch.delenv("LANGFUSE_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="LANGFUSE_BASE_URL"):
        sinks_of(["langfuse"])
    monkeypatch.setenv("LANGFUSE_HOST", serve(replies=langfuse).url)
    (sink,) = sinks_of(["langfuse"])
    assert isinstance(sink, LangfuseSink)
    sink.emit(RECORD, [score()])
    assert sink.close(20)
    assert len(langfuse.kept) == 1


@pytest.mark.parametrize(
    ("given", "setting", "is_sent"),
    [(None, "full", True), (None, "none", False), ("none", "full", False), ("full", "none", True)],
)
def test_an_object_that_was_given_no_content_takes_the_settings(
    given: Any, setting: Any, is_sent: Any, serve, own_providers
) -> None:
    langfuse = Recorded()
    sink = sink_at(serve(replies=langfuse).url, content=given)
    ragtrace.configure(metrics=["faithfulness"], content=setting, sinks=sink, **own_providers)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError):
        # It is not told the content of a call that fails.
        ragtrace.configure(content="full", sinks=sink, metrics_port=taken.getsockname()[1])
    with ragtrace.query("Where is the lab?") as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}], source="faq")
        run.answered("The lab is in Oslo. It has a pool on its roof.")
    assert ragtrace.flush(20)
    (row,) = langfuse.kept.values()
    assert ("comment" in row) == is_sent


def test_its_name_makes_one_sink_and_a_variable_of_langfuse_alone_makes_none(
    serve, monkeypatch, own_providers
) -> None:
    langfuse = Recorded()
    url = serve(replies=langfuse).url
    monkeypatch.setenv("LANGFUSE_HOST", url)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", PUBLIC)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)
    for settings, kept in (({}, 0), ({"sinks": "langfuse"}, 1)):
        ragtrace.configure(metrics=["faithfulness"], content="full", **settings, **own_providers)
        with ragtrace.query("Where is the lab?") as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}], source="faq")
            run.answered("The lab is in Oslo. It has a pool on its roof.")
        assert ragtrace.flush(20)
        assert len(langfuse.kept) == kept
    (row,) = langfuse.kept.values()
    assert (row["traceId"], row["observationId"]) == (run.trace_id, run.span_id)
    assert "roof" in row["comment"]
    assert langfuse.calls.count(f"POST {SCORES}") == 1
