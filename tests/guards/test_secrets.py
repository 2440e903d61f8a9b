"""A secret in every text field, looked for everywhere that ragtrace writes: docs/concepts/threat-model.md.

Each text is ``secret_NAME.``, so that what is found is told by its name.
"""

from __future__ import annotations

import asyncio
import base64
import html
import logging
import re
import sys
import urllib.request
from types import SimpleNamespace
from urllib.parse import urljoin

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
import ragtrace_llamaindex
from ragtrace.testing.otlp import OtlpReceiver
from ragtrace_langchain import RagtraceHandler
from tests.guards import setting_up
from tests.guards.judge_server import SUPPORTED, Answer, JudgeServer, completion, refusal
from tests.guards.processes import (
    ROOT,
    closed_port,
    command,
    environment,
    exported,
    ran,
    started,
    until,
)

pytestmark = pytest.mark.slow

UNREACHED = {
    "passage_id", "workflow", "reranker_model", "chat_model", "provider", "tool_name", "call_id",
    "metadata_key", "exception_type",
}  # fmt: skip
FRAMEWORKS = {"chain", "index"}
SAID = {f"{framework}_{name}" for framework in FRAMEWORKS for name in ("session", "user", "tag")}
EXPORTED = UNREACHED | SAID | {
    "session", "user", "corpus", "corpus_version", "tag", "source", "answer_model", "metadata_value", "description",
}  # fmt: skip
STORED = {"workflow", "session", "user", "corpus", "answer_model", "source", "tag", "rater", "run_rater"} | SAID
NEVER_KEPT = {"chain_note", "rendered_prompt"}  # metadata without a place; the prompt that was sent is kept


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self):
        self.texts = []

    def emit(self, record, scores):
        self.texts += [repr(record), repr(scores)]


class secret_exception_type(Exception):  # noqa: N801 - its name is looked for
    """Named as the other secrets are."""


PLANTED = set()


def s(name):
    PLANTED.add(name)
    return f"secret_{name}."


def secrets_in(text):
    return set(re.findall(r"secret_([a-z_]+)", text))


def message(role, text):
    return SimpleNamespace(role=role, content=text)


def capture():
    with ragtrace.query(
        s("query"), workflow=s("workflow"), session=s("session"), user=s("user"), corpus=s("corpus"),
        corpus_version=s("corpus_version"), tags=[s("tag")],
    ) as run:  # fmt: skip
        run.add_metadata({s("metadata_key"): s("metadata_value")})
        passage = {
            "id": s("passage_id"),
            "text": s("text"),
            "score": 0.5,
            "metadata": {s("passage_key"): s("field")},
        }
        run.set_history([message("user", s("history"))])
        run.retrieved([passage, {"text": s("text_without_id")}], source=s("source"), query=s("search"))
        run.reranked([passage], model=s("reranker_model"))
        run.used([s("text")])
        run.tool_called(
            s("tool_name"), arguments={"a": s("argument")}, result=s("result"), call_id=s("call_id"),
            description=s("description"), error=secret_exception_type(s("exception_message")),
        )  # fmt: skip
        run.add_prompt(s("rendered_prompt"))
        run.generated(
            model=s("chat_model"), provider=s("provider"), inputs=[message("user", s("prompt"))],
            outputs=[message("assistant", s("reply"))],
        )  # fmt: skip
        run.answered(s("answer"), model=s("answer_model"), parts=[{"text": s("part"), "citations": []}])
        run.reference(s("reference"))
        run.labels({s("passage_id"): 5})
        run.feedback(0.0, s("run_comment"), source=s("run_rater"))
    with ragtrace.query(s("failing_query")) as run:
        run.retrieved(None, error=ConnectionError(s("retriever_error")))
        run.failed(ConnectionError(s("run_error")))
    ragtrace.feedback(run.trace_id, 0.0, s("comment"), rater=s("rater"))
    return run.trace_id


class Search(BaseRetriever):
    is_broken: bool = False

    def _get_relevant_documents(self, query, *, run_manager):
        if self.is_broken:
            raise ConnectionError(s("chain_error"))
        return [Document(s("chain_text"), metadata={s("chain_key"): s("chain_field"), "source": s("chain_source")})]


@tool
def look_up(name: str) -> str:
    """Look something up."""
    return s("chain_tool_result")


def capture_chain():
    """Ask a LangChain application: once well, once with a retriever that fails."""
    prompt = ChatPromptTemplate.from_messages(
        [("system", s("chain_system") + " {context}"), ("human", "{question} {looked_up}")]
    )
    model = FakeListChatModel(responses=[s("chain_answer")])

    for search in (Search(), Search(is_broken=True)):
        looked_up = RunnablePassthrough() | (lambda _: {"name": s("chain_tool_argument")}) | look_up
        given = {"context": search, "question": RunnablePassthrough(), "looked_up": looked_up}
        chain = given | prompt | model | StrOutputParser()
        about = {"ragtrace.session": s("chain_session"), "ragtrace.user": s("chain_user"), "note": s("chain_note")}
        config = {"callbacks": [RagtraceHandler()], "metadata": about, "tags": [s("chain_tag")]}
        try:
            chain.invoke(s("chain_query"), config=config)
        except ConnectionError:
            assert search.is_broken


class Nodes(LlamaRetriever):
    is_broken = False

    def _retrieve(self, query_bundle):
        if self.is_broken:
            raise ConnectionError(s("index_error"))
        node = TextNode(text=s("index_text"), metadata={s("index_key"): s("index_field")})
        return [NodeWithScore(node=node, score=0.5)]


def capture_index():
    """Ask a LlamaIndex application: once well, once with a retriever that fails."""
    synthesizer = get_response_synthesizer(llm=MockLLM())
    about = {"session": s("index_session"), "user": s("index_user"), "tags": [s("index_tag")]}
    with ragtrace_llamaindex.instrumented(**about):
        for is_broken in (False, True):
            nodes = Nodes()
            nodes.is_broken = is_broken
            try:
                RetrieverQueryEngine(nodes, response_synthesizer=synthesizer).query(s("index_query"))
            except ConnectionError:
                assert is_broken


def page(url):
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own page on loopback
        return answer.read().decode()


def bytes_of(folder):
    return {f"file {path.name}": path.read_bytes().decode("latin-1") for path in folder.iterdir()}


def left_by(folder, caplog, **settings):
    """Return what a service leaves in each place that it writes to, by its name."""
    spans, kept, reader, events = (
        InMemorySpanExporter(),
        Kept(),
        InMemoryMetricReader(),
        InMemoryLogRecordExporter(),
    )
    tracing, logs = TracerProvider(), LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    ports = {"metrics_port": closed_port(), "health_port": closed_port()}
    caplog.set_level(logging.INFO)
    ragtrace.configure(
        **setting_up.watched(folder, s("metadata_key"), **ports, **settings), sinks=[kept],
        tracer_provider=tracing, meter_provider=MeterProvider([reader]), logger_provider=logs,
    )  # fmt: skip
    places = {}
    try:
        capture()
        capture_chain()
        capture_index()
        assert ragtrace.flush(30)
        places["spans"] = "\n".join(span.to_json() for span in spans.get_finished_spans())
        places["events"] = "\n".join(event.to_json() for event in events.get_finished_logs())
        places["metrics"] = reader.get_metrics_data().to_json()
        for path, port in (("/metrics", "metrics_port"), ("/healthz", "health_port"), ("/readyz", "health_port")):
            places[path] = page(f"http://127.0.0.1:{ports[port]}{path}")
    finally:
        ragtrace.shutdown(5)
    return places | {"sink": "\n".join(kept.texts), "log": caplog.text} | bytes_of(folder)


# -- what commands show of a store --


def shown_of(folder, *names):
    """Return what commands show of the store, by their names; all of them without a name."""
    store = folder / setting_up.FILE
    traces = sorted({row["trace_id"] for row in exported(store)})
    assert len(traces) >= 5
    report = folder.with_suffix(".html")
    commands = {
        "export": ["export", "--store", store, "--out", "-"],
        "worst": ["worst", store],
        "investigate": ["investigate", store, "--json"],
        "report": ["report", store, "--out", report],
        "baseline": ["baseline", "show", "--store", store],
        "anchors": ["anchors", "list", "--store", store],
        "worker": ["worker", "--once"],
        **{f"show {number}": ["show", store, trace, "--full"] for number, trace in enumerate(traces)},
    }
    env = setting_up.variables(setting_up.watched(folder, s("metadata_key"), content="none"))
    shown = {}
    for name, args in commands.items():
        if not names or name in names:
            done = command(*args, **env)
            shown[name] = done.stdout + done.stderr
            assert shown[name].strip()
            assert "Traceback" not in shown[name]
    shown["report's file"] = report.read_text(encoding="utf-8")
    shown["mcp --content"] = asyncio.run(told(store, traces, "--content"))
    if not names:
        shown["mcp"] = asyncio.run(told(store, traces))
    return shown | {"ui": pages_of(store)}


async def told(store, traces, *more):
    """Return what `ragtrace mcp` tells an agent."""
    mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
    given = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "ragtrace", "mcp", str(store), *more], env=environment()
    )
    calls = [("overview", {}), ("worst_runs", {}), ("diagnosis", {}), *(("run", {"id": it}) for it in traces)]
    async with mcp.Client(mcp.stdio_client(given)) as client:
        results = [await client.call_tool(*call) for call in calls]
    assert not any(result.is_error for result in results)
    return "\n".join(result.model_dump_json() for result in results)


PAGES = 40


def pages_of(store):
    """Return the pages that `ragtrace ui` links to, the nearest first, and what it says itself."""
    port = closed_port()
    root = f"http://127.0.0.1:{port}/"
    server = started("-m", "ragtrace", "ui", store, "--port", port)
    read = {}
    try:
        until(lambda: is_answered(root), running=server)
        waiting = [root]
        while waiting and len(read) < PAGES:
            url = waiting.pop(0)
            read[url] = page(url)
            links = [urljoin(url, html.unescape(link)) for link in re.findall(r'href="([^"#]+)', read[url])]
            waiting += [it for it in dict.fromkeys(links) if it.startswith(root) and it not in {*read, *waiting}]
    finally:
        server.terminate()
        said = server.communicate(timeout=30)
    assert len(read) > 5
    return "\n".join([*read.values(), *said])


def is_answered(url):
    try:
        return bool(page(url))
    except OSError:
        return False


def found_in(places):
    """Return the names of the secrets by place, and those that are anywhere."""
    found = {place: secrets_in(text) for place, text in places.items()}
    return found, set().union(*found.values())


# -- the walk --


def test_without_content_names_and_ids_alone_are_exported_and_stored(tmp_path, caplog):
    folder = tmp_path / "files"
    folder.mkdir()
    found, _ = found_in(left_by(folder, caplog, content="none"))
    assert found["spans"] | found["metrics"] == EXPORTED
    assert found[f"file {setting_up.FILE}"] == STORED
    assert {"query", "answer", "text", "chain_text", "index_text"} <= found["sink"]  # a sink gets the record
    assert found["metrics"] == found["/metrics"] == {"workflow", "chat_model", "provider", "answer_model"}
    assert found["events"] | found["log"] | found["/healthz"] | found["/readyz"] == set()
    shown, anywhere = found_in(shown_of(folder))
    assert anywhere <= STORED
    assert shown["mcp"] | shown["mcp --content"] <= STORED - SAID - {"session", "user", "rater", "run_rater"}


def test_what_a_redaction_of_everything_leaves(tmp_path, caplog):
    folder = tmp_path / "files"
    folder.mkdir()
    _, anywhere = found_in(left_by(folder, caplog, redact=lambda _: "[redacted]", content="full"))
    assert anywhere == UNREACHED
    _, anywhere = found_in(shown_of(folder, "export", "worst", "report"))
    assert anywhere <= UNREACHED


def test_with_content_all_is_found(tmp_path, caplog):
    """The walk sees what is there: without `redact` every text is found, and each command shows texts."""
    folder = tmp_path / "files"
    folder.mkdir()
    found, anywhere = found_in(left_by(folder, caplog, content="full"))
    assert PLANTED - anywhere == NEVER_KEPT
    assert {"query", "answer", "text", "reference", "run_comment", "comment"} <= found[f"file {setting_up.FILE}"]
    shown, _ = found_in(shown_of(folder, "export", "worst", "report"))
    assert {name for name, texts in shown.items() if not texts & {"answer", "chain_answer"}} == {"report"}


def waiting_in(folder, **settings):
    """Return the bytes of a file and its journal in which captured runs wait for a worker."""
    ragtrace.configure(**setting_up.watched(folder, s("metadata_key"), **settings), **setting_up.HANDED_OVER)
    try:
        capture()
        capture_chain()
        capture_index()
        assert ragtrace.flush(30)
        return "".join(bytes_of(folder).values())
    finally:
        ragtrace.shutdown(5)


def test_runs_that_wait_are_redacted_in_the_file_and_its_journal(tmp_path):
    waiting = waiting_in(tmp_path, content="full", redact=lambda _: "[redacted]")
    assert {"passage_id", "workflow"} <= secrets_in(waiting) <= UNREACHED


def test_texts_of_runs_that_wait_are_gone_when_they_are_scored(tmp_path):
    waiting = waiting_in(tmp_path, content="none")
    assert {"query", "answer", "text", "chain_answer", "index_text"} <= secrets_in(waiting)
    env = setting_up.variables(setting_up.watched(tmp_path, s("metadata_key"), content="none"))
    done = command("worker", "--once", **env)
    assert (done.returncode, secrets_in(done.stdout + done.stderr)) == (0, set())
    assert secrets_in("".join(bytes_of(tmp_path).values())) == STORED


# -- keys --


class Keys:
    """Keys and passwords by name, as texts that are looked for; also as HTTP writes a login."""

    def __init__(self):
        self.made = {}

    def __call__(self, name, login=None):
        self.made[name] = f"hush-{name}-9f31c0"
        if login is not None:
            self.made[f"{name} as a login"] = base64.b64encode(f"{login}:{self.made[name]}".encode()).decode()
        return self.made[name]

    def found_in(self, text):
        return {name for name, key in self.made.items() if key in text}


UNSUPPORTED = SUPPORTED | {"verdicts": [{"id": 1, "sources": [], "reason": "", "verdict": "not_supported"}]}
BY_LOGIN = {"judge-token", "judge as a login"}
BY_KEY = {
    "judge-token", "judge-key", "langfuse as a login", "mlflow as a login", "phoenix", "webhook-path", "webhook-query",
}  # fmt: skip


@pytest.mark.parametrize(("refusing", "sent"), [("the judge", BY_LOGIN), ("the sinks", BY_KEY)])
def test_no_key_is_written_anywhere(tmp_path, refusing, sent):
    """Who refuses answers with an error that repeats everything that was sent."""
    keys = Keys()

    heads = []

    def reply(request):
        heads.append(f"{request.path}\n{request.headers}")
        if "/health" in request.path or ("/chat/completions" in request.path) == (refusing == "the sinks"):
            return Answer(body=completion(UNSUPPORTED))
        return refusal(401, f"{heads[-1]} {request.text}")

    with JudgeServer(reply) as judge, OtlpReceiver() as receiver:
        given = setting_up.with_keys(judge.url, keys, is_login=refusing == "the judge")
        env = {
            **setting_up.variables(given | setting_up.waiting_in("spool and store", tmp_path)),
            "FOLDER": str(tmp_path), "NOTES": str(tmp_path), "LOGGED": "INFO",
            "OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={keys('otlp')}",
        }  # fmt: skip
        done = ran("-m", "tests.guards.ends_app", "hand-over", **env)
        places = {"application": done.stdout + done.stderr}
        for name in ("doctor", "settings", "worker --once --deadline 5"):
            done = command(*name.split(), **env)
            places[name] = done.stdout + done.stderr
        places["telemetry"] = "".join(map(str, receiver.requests))
    for name, said in places.items():
        assert said.strip() or name == "application", name  # which may end before it is refused
        assert "Traceback" not in said
    assert keys.found_in("".join(heads)) == sent
    found = {place: keys.found_in(text) for place, text in (places | bytes_of(tmp_path)).items()}
    assert not any(found.values()), found


def test_the_page_names_what_is_not_reached():
    page = (ROOT / "docs" / "concepts" / "threat-model.md").read_text(encoding="utf-8")
    section = page.partition("## Redaction")[2].partition("\n## ")[0]
    assert [name for name in UNREACHED if name.replace("_", " ") not in section] == []
