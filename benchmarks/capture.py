"""What capture adds to a LangChain run, against the bare chain and a minimal three-span handler.

The chain retrieves 50 passages of 800 characters, reranks to 8, renders a prompt and calls a fake model. The
minimal handler opens a span each for run, retriever and model and writes every document once. All forms run
interleaved in one process, content on, with a null exporter; nothing is drawn for scoring. The figure is CPU
time of
the process, since LangChain runs the branches of a parallel step in threads of its own: the median over rounds of
the difference to the bare chain of the same round. The issue's bound: ours adds at most 4 times what the minimal
handler adds.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import set_span_in_context

import ragtrace
from ragtrace_langchain import RagtraceHandler

ROUNDS, RUNS = 25, 30
WORDS = "refund parcel invoice account address delivery warehouse password contract payment".split()


class NullExporter(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def documents() -> list[Document]:
    rng = random.Random(0)
    texts = (" ".join(rng.choices(WORDS, k=120))[:800].ljust(800, ".") for _ in range(50))
    return [Document(id=f"doc-{i}", page_content=t, metadata={"score": 1 - i / 100}) for i, t in enumerate(texts)]


class Retriever(BaseRetriever):
    docs: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.docs


def chain() -> Runnable:
    prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
    model = FakeListChatModel(responses=["The parcel is refunded within five days."])
    rerank = RunnableLambda(lambda docs: docs[40:48], name="rerank")
    join = RunnableLambda(lambda docs: "\n".join(d.page_content for d in docs), name="join")
    context = Retriever(docs=documents()) | rerank | join
    return {"context": context, "question": RunnablePassthrough()} | prompt | model


class MinimalHandler(BaseCallbackHandler):
    """Three spans, every document written once: what anybody would write in half an hour."""

    run_inline = True

    def __init__(self, tracer: Any) -> None:
        self.tracer, self.spans = tracer, {}

    def _start(self, name: str, run_id: Any, parent: Any) -> Any:
        context = set_span_in_context(self.root) if parent else None
        self.spans[run_id] = span = self.tracer.start_span(name, context=context)
        return span

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        if parent_run_id is None:
            self.root = self._start("chain", run_id, None)
            self.root.set_attribute("input", str(inputs))

    def on_chain_end(self, outputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any) -> None:
        if parent_run_id is None:
            span = self.spans.pop(run_id)
            span.set_attribute("output", outputs.content)
            span.end()

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: Any, **_: Any) -> None:
        self._start("retriever", run_id, True).set_attribute("query", query)

    def on_retriever_end(self, documents: Any, *, run_id: Any, **_: Any) -> None:
        span = self.spans.pop(run_id)
        rows = [{"id": d.id, "score": d.metadata["score"], "content": d.page_content} for d in documents]
        span.set_attribute("documents", json.dumps(rows))
        span.end()

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **_: Any) -> None:
        self._start("chat", run_id, True)

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        span = self.spans.pop(run_id)
        span.set_attribute("output", response.generations[0][0].text)
        span.end()


def provider() -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(NullExporter()))
    return provider


def round_of(run: Runnable, config: Callable[[], dict]) -> tuple[float, list[float]]:
    walls = []
    start = time.process_time()
    for i in range(RUNS):
        began = time.perf_counter()
        run.invoke(f"What about number {i}?", config=config())
        walls.append(time.perf_counter() - began)
    return (time.process_time() - start) / RUNS, walls


def forms() -> dict[str, Callable[[], dict]]:
    minimal = MinimalHandler(provider().get_tracer("minimal"))
    ragtrace.configure(
        content="full",
        sample_rate=0.0,
        judge="overlap",
        tracer_provider=provider(),
        meter_provider=MeterProvider(),
        logger_provider=LoggerProvider(),
    )
    ours = RagtraceHandler()
    return {
        "bare": dict,
        "empty handler": lambda: {"callbacks": [BaseCallbackHandler()]},
        "minimal three-span handler": lambda: {"callbacks": [minimal]},
        "ragtrace": lambda: {"callbacks": [ours]},
    }


def main() -> None:
    run, configs = chain(), forms()
    cpu: dict[str, list[float]] = {name: [] for name in configs}
    wall: dict[str, list[float]] = {name: [] for name in configs}
    for turn in range(ROUNDS + 2):
        for name, config in configs.items():
            mean, walls = round_of(run, config)
            if turn >= 2:  # the first two rounds warm caches up
                cpu[name].append(mean)
                wall[name] += walls
        ragtrace.flush(30)
    ragtrace.shutdown(10)
    base = statistics.median(cpu["bare"])
    base99 = quantile(wall["bare"], 0.99)
    minimal = added_by("minimal three-span handler", cpu)
    print(f"bare chain: {base * 1e3:.3f} ms CPU a run; p99 wall {base99 * 1e3:.3f} ms")
    for name in list(configs)[1:]:
        added = added_by(name, cpu)
        p99 = quantile(wall[name], 0.99) - base99
        print(
            f"{name:<28} +{added * 1e3:6.3f} ms CPU a run  {added / minimal:5.2f} x minimal"
            f"   p50 wall +{(statistics.median(wall[name]) - statistics.median(wall['bare'])) * 1e3:6.3f} ms"
            f"   p99 wall +{p99 * 1e3:6.3f} ms"
        )
    print(f"ratio {added_by('ragtrace', cpu) / minimal:.2f} (bound: 4)")


def added_by(name: str, cpu: dict[str, list[float]]) -> float:
    """The median over rounds of what a form adds to the bare chain of its round: the machine's speed drifts."""
    return statistics.median(form - bare for form, bare in zip(cpu[name], cpu["bare"], strict=True))


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[int(q * (len(values) - 1))]


if __name__ == "__main__":
    main()
