"""Runs of a real LangChain application, sent to a real Phoenix."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import ragtrace
from ragtrace_langchain import RagtraceHandler
from tests.e2e.chains import FiftyRetriever, rerank
from tests.phoenix.server import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = "How long does a refund of parcel 7 take?"
INVENTED = "Parcels from Narnia fly first class."
ANSWER = f"As a rule, a refund of parcel 7 takes 17 days. {INVENTED}"


@dataclass
class Kept:
    """A sink that keeps what every other sink was given."""

    seen: list[tuple[Any, list[Any]]] = field(default_factory=list)

    def emit(self, record: Any, scores: Any) -> None:
        self.seen.append((record, list(scores)))


def chain(*, finish_reason: str | None = "stop") -> Any:
    """Retrieve 50, rerank to 8, answer with a sentence of the passages and one that nobody wrote."""
    facts = {"finish_reason": finish_reason, "model_name": "writer-1"} if finish_reason else {}
    usage = {"input_tokens": 90, "output_tokens": 20, "total_tokens": 110}
    message = AIMessage(content=ANSWER, response_metadata=facts, usage_metadata=usage)
    retriever = FiftyRetriever(metadata={"ragtrace.source": "faq", "ragtrace.top_k": 50})
    joined = (
        retriever | RunnableLambda(rerank) | RunnableLambda(lambda docs: "\n".join(d.page_content for d in docs))
    )
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
    steps = {"context": joined, "question": RunnablePassthrough()}
    return (steps | prompt | GenericFakeChatModel(messages=iter([message]))).with_config(run_name="support")


def ask(application: Any) -> None:
    config = {"callbacks": [RagtraceHandler()], "metadata": {"ragtrace.session": "s-1"}}
    assert application.invoke(QUESTION, config=config).content == ANSWER


@contextmanager
def sending(phoenix: Any, project: str, **settings: Any) -> Iterator[Kept]:
    """Configure ragtrace as a user of Phoenix does; spans go to `project`, scores to their spans."""
    kept = Kept()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_TRACES_EXPORTER", "otlp")
        patch.setenv("OTEL_METRICS_EXPORTER", "none")
        patch.setenv("OTEL_LOGS_EXPORTER", "none")
        patch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        patch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{phoenix.url}/v1/traces")
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"Authorization=Bearer%20{KEY}")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"openinference.project.name={project}")
        patch.setenv("PHOENIX_COLLECTOR_ENDPOINT", phoenix.url)
        patch.setenv("PHOENIX_API_KEY", KEY)
        ragtrace.configure(sample_rate=1.0, judge="overlap", sinks=["phoenix", kept], **settings)
        try:
            yield kept
            assert ragtrace.flush(30), "all spans and annotations were taken"
        finally:
            assert ragtrace.shutdown(10)
