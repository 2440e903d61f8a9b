"""The texts that `redact` reaches, and the names, ids and keys that it does not: docs/concepts/threat-model.md."""

from __future__ import annotations

import json
import re

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace.model import Message
from ragtrace.model.codec import record_to_json
from tests.process.observing import ROOT, providers

pytestmark = pytest.mark.slow

UNREACHED = {
    "passage_id", "workflow", "reranker_model", "chat_model", "provider", "tool_name", "call_id",
    "metadata_key", "exception_type",
}  # fmt: skip


class Kept:
    def __init__(self):
        self.texts = []

    def emit(self, record, scores):
        self.texts += [json.dumps(record_to_json(record)), repr(scores)]


class secret_exception_type(Exception):  # noqa: N801 - its name is looked for
    """Named as the other secrets are."""


def s(name):
    return f"secret_{name}."


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
        run.set_history([Message(role="user", content=s("history"))])
        run.retrieved([passage, {"text": s("text_without_id")}], source=s("source"), query=s("search"))
        run.reranked([passage], model=s("reranker_model"))
        run.used([s("text")])
        run.tool_called(
            s("tool_name"), arguments={"a": s("argument")}, result=s("result"), call_id=s("call_id"),
            description=s("description"), error=secret_exception_type(s("exception_message")),
        )  # fmt: skip
        run.generated(
            model=s("chat_model"), provider=s("provider"), inputs=[Message(role="user", content=s("prompt"))],
            outputs=[Message(role="assistant", content=s("reply"))],
        )  # fmt: skip
        run.answered(s("answer"), model=s("answer_model"))


def left_by(folder, **settings):
    """Return the names of the secrets on spans and metrics, in the sinks, and in the store's file."""
    spans, kept, reader, store = InMemorySpanExporter(), Kept(), InMemoryMetricReader(), folder / "store.sqlite"
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    ragtrace.configure(
        sample_rate=1.0, sinks=[kept], span_metadata=[s("metadata_key")], store=str(store), **settings,
        **providers(tracer_provider=provider, meter_provider=MeterProvider([reader])),
    )  # fmt: skip
    try:
        capture()
        assert ragtrace.flush(30)
        exported = [span.to_json() for span in spans.get_finished_spans()] + [reader.get_metrics_data().to_json()]
    finally:
        ragtrace.shutdown(5)
    places = "\n".join(exported), "\n".join(kept.texts), store.read_bytes().decode("latin-1")
    return [set(re.findall(r"secret_([a-z_]+)", place)) for place in places]


def test_what_a_redaction_of_everything_leaves(tmp_path):
    exported, taken, stored = left_by(tmp_path, redact=lambda _: "[redacted]", content="full")
    assert exported | taken | stored == UNREACHED


def test_without_content_names_and_ids_alone_are_exported_and_stored(tmp_path):
    exported, taken, stored = left_by(tmp_path, content="none")
    assert exported == UNREACHED | {
        "session", "user", "corpus", "corpus_version", "tag", "source", "answer_model", "metadata_value", "description",
    }  # fmt: skip
    assert stored == {"workflow", "session", "user", "corpus", "answer_model", "tag"}
    assert {"query", "answer", "text"} <= taken  # a sink gets the record


def test_the_page_names_what_is_not_reached():
    page = (ROOT / "docs" / "concepts" / "threat-model.md").read_text(encoding="utf-8")
    section = page.partition("## Redaction")[2].partition("\n## ")[0]
    assert [name for name in UNREACHED if name.replace("_", " ") not in section] == []
