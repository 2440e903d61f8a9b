"""The floor: straight-line code that writes the spans of this one application as ragtrace does, in a second thread.

It knows what each step is, and interprets, bounds, scores and counts nothing. Its spans have the attributes of
ragtrace's; their hashes are compared before anything is measured.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, set_span_in_context

now = time.time_ns


@dataclass(slots=True)
class Run:
    """What the callbacks of one run noted: texts by reference, and of each document (id, text, score)."""

    began: int = field(default_factory=now)
    ended: int = 0
    question: str = ""
    search: tuple[int, int] = (0, 0)
    found: list[tuple[str, str, float]] = field(default_factory=list)
    choice: tuple[int, int] = (0, 0)
    chosen: list[tuple[str, str, float]] = field(default_factory=list)
    model: tuple[int, int] = (0, 0)
    first_chunk: int = 0
    prompt: str = ""
    reply: str = ""
    tokens: tuple[int, int] | None = None


@dataclass(frozen=True)
class Words:
    """What the spans of a framework's application say that no run changes."""

    workflow: str
    source: str
    reranker: str
    operation: str
    provider: str
    is_ranked: bool  # the reranker gives no scores
    more_of_search: dict[str, Any] = field(default_factory=dict)
    more_of_model: dict[str, Any] = field(default_factory=dict)


LANGCHAIN = Words(
    "rag", "chain", "rerank", "chat", "model", is_ranked=True, more_of_model={"llm.provider": "model"}
)
LLAMAINDEX = Words(
    "RetrieverQueryEngine",
    "framework",
    "Reranker",
    "text_completion",
    "unknown",
    is_ranked=False,
    more_of_search={"gen_ai.retrieval.top_k": 50},
)


class Floor:
    """Takes runs in the application's threads and writes their spans in one of its own.

    `ragtrace.flush` waits for the pipeline; the provider's flush does so here.
    """

    def __init__(self, provider: Any, words: Words) -> None:
        schema = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
        self._tracer = provider.get_tracer("ragtrace", "0.1.0", schema)
        self._words = words
        self._runs: queue.Queue[Run] = queue.Queue()
        flush = provider.force_flush

        def force_flush(timeout_millis: int = 30_000) -> bool:
            self._runs.join()
            return bool(flush(timeout_millis))

        provider.force_flush = force_flush
        threading.Thread(target=self._work, daemon=True).start()

    def take(self, run: Run) -> None:
        run.ended = run.ended or now()
        self._runs.put(run)

    def _work(self) -> None:
        while True:
            run = self._runs.get()
            try:
                self._write(run)
            finally:
                self._runs.task_done()

    def _write(self, run: Run) -> None:
        words = self._words
        ranks = {name: rank for rank, (name, _, _) in enumerate(run.found, 1)}
        scores = {name: score for name, _, score in run.found}
        asked = _json([{"role": "user", "parts": [{"type": "text", "content": run.question}]}])
        said = _json(
            [{"role": "assistant", "parts": [{"type": "text", "content": run.reply}], "finish_reason": ""}]
        )
        shown = _json([name for name, text, _ in run.chosen if text in run.prompt])
        own = {} if words.is_ranked else {"ragtrace.selected.scores": _json([one for _, _, one in run.chosen])}
        root = self._tracer.start_span(
            f"invoke_workflow {words.workflow}",
            Context(),
            SpanKind.INTERNAL,
            {
                "gen_ai.operation.name": "invoke_workflow",
                "openinference.span.kind": "CHAIN",
                "gen_ai.workflow.name": words.workflow,
                "ragtrace.run.outcome": "answered",
                "ragtrace.selection.source": words.source,
                "ragtrace.k": len(run.chosen),
                "ragtrace.prompt.ids": shown,
                "ragtrace.pool.ids": _json([name for name, _, _ in run.found]),
                "ragtrace.pool.scores": _json([score for _, _, score in run.found]),
                "ragtrace.selected.ids": _json([name for name, _, _ in run.chosen]),
                "ragtrace.selected.ranks": _json([ranks[name] for name, _, _ in run.chosen]),
                **own,
                "input.value": run.question,
                "output.value": run.reply,
                "gen_ai.input.messages": asked,
                "gen_ai.output.messages": said,
                "ragtrace.sampling.decision": "none",
                "ragtrace.sampling.reason": "not_sampled",
                "ragtrace.sampling.probability": 0.0,
            },
            start_time=run.began,
        )
        within = set_span_in_context(root, Context())
        rows = [
            {"id": name, "score": score, "rank": rank, "content": text}
            for rank, (name, text, score) in enumerate(run.found, 1)
        ]
        search = {
            "gen_ai.retrieval.documents": _json(rows),
            "ragtrace.retrieval.document.count": len(rows),
            "ragtrace.retrieval.document.captured": len(rows),
            "ragtrace.retrieval.document.truncated": 0,
            "gen_ai.operation.name": "retrieval",
            "openinference.span.kind": "RETRIEVER",
            "gen_ai.data_source.id": "Retriever",
            **words.more_of_search,
            "gen_ai.retrieval.query.text": run.question,
            "input.value": run.question,
        }
        self._step("retrieval Retriever", within, SpanKind.CLIENT, run.search, search)
        kind = {"score_kind": "rank"} if words.is_ranked else {}
        best = [
            {
                "id": name,
                "score": 1 / rank if words.is_ranked else score,
                "rank": rank,
                **kind,
                "previous_rank": ranks[name],
                "retrieval_score": scores[name],
            }
            for rank, (name, _, score) in enumerate(run.chosen, 1)
        ]
        choice = {
            "ragtrace.rerank.documents": _json(best),
            "gen_ai.operation.name": "rerank",
            "openinference.span.kind": "RERANKER",
            "ragtrace.rerank.candidate.count": len(rows),
            "gen_ai.request.model": words.reranker,
            "reranker.model_name": words.reranker,
        }
        self._step(f"rerank {words.reranker}", within, SpanKind.INTERNAL, run.choice, choice)
        model: dict[str, Any] = {
            "openinference.span.kind": "LLM",
            "gen_ai.request.model": "offline-1",
            "llm.model_name": "offline-1",
            **words.more_of_model,
            "gen_ai.operation.name": words.operation,
            "gen_ai.provider.name": words.provider,
        }
        if run.first_chunk:
            model["gen_ai.response.time_to_first_chunk"] = (run.first_chunk - run.model[0]) / 1e9
            model["gen_ai.request.stream"] = True
        if run.tokens is not None:
            model["gen_ai.usage.input_tokens"] = model["llm.token_count.prompt"] = run.tokens[0]
            model["gen_ai.usage.output_tokens"] = model["llm.token_count.completion"] = run.tokens[1]
        prompt = [{"role": "user", "parts": [{"type": "text", "content": run.prompt}]}]
        model["gen_ai.input.messages"] = _json(prompt)
        model["gen_ai.output.messages"] = said
        self._step(f"{words.operation} offline-1", within, SpanKind.CLIENT, run.model, model)
        root.end(run.ended)

    def _step(self, name: str, within: Context, kind: SpanKind, times: tuple[int, int], facts: Any) -> None:
        self._tracer.start_span(name, within, kind, facts, start_time=times[0]).end(times[1])


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
