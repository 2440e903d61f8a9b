"""No span holds more bytes than its budget, whatever an application or a provider reports."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from ragtrace import semconv
from ragtrace.capture import Recorder
from ragtrace.model import JudgeInfo, Message, Usage
from ragtrace.telemetry import Budget, EvaluationWriter, SpanWriter
from tests.unit.telemetry.runs import Taken, score

SCRIPTS = ["plain ", "Привет ", "仓库", "📦", '"\\', "\x00\x1b"]


def size_of(value):
    if isinstance(value, str):
        return len(value.encode())
    return sum(map(size_of, value)) if isinstance(value, tuple) else 8


def bytes_of(span):
    return sum(len(name) + size_of(value) for name, value in span.attributes.items())


def hostile_run(recorder, rng):
    """Report a run with every kind of step, in which everything is as long as it gets."""
    long = rng.choice(SCRIPTS) * rng.choice([10, 5_000])
    metadata = {f"{n}{long[:300]}": long for n in range(rng.choice([0, 30]))}
    pool = [
        {"id": f"{n}{long[:250]}", "text": f"{n}{long[:2_000]}", "score": rng.random() * 1e9, "metadata": metadata}
        for n in range(rng.choice([1, 50, 1_000]))
    ]
    said = [Message(role=long, content=long)] * 40
    run = recorder.start(
        query=long, workflow=long, session=long, user=long, corpus=long, corpus_version=long, tags=[long] * 99
    )
    run.add_metadata({"a": long, "b": [long] * 9})
    run.retrieved(pool, source=long, query=long, top_k=10**5000)
    run.retrieved(pool[::-1], source=long, error=type("E" * 5_000, (Exception,), {})(long))
    run.reranked(pool, model=long, top_n=-1)
    run.used(pool)
    run.tool_called(long, arguments=long, result=long, call_id=long, description=long)
    run.generated(
        model=long, provider=long, response_model=long, response_id=long, inputs=said, outputs=said,
        usage=Usage(input_tokens=10**5000, output_tokens=-1), finish_reasons=itertools.repeat(long),
        first_chunk_s=float("nan"), error=ValueError(long),
    )  # fmt: skip
    run.generated(operation="embeddings", model=long, inputs=said)
    run.answered(long, model=long)
    run.interrupted(long)
    run.failed(ValueError(long))
    run.finish()


@pytest.mark.parametrize("dialect", ["both", "genai", "openinference"])
@pytest.mark.parametrize("seed", [0, 3, 5, 8])  # each budget, with content and without
def test_no_span_is_over_its_budget(spans, dialect, seed):
    rng = random.Random(seed)
    budget = rng.choice([4_096, 40_000, 262_144])
    content = rng.choice(["none", "full"])
    writer = SpanWriter(spans.tracer, content=content, dialect=dialect, max_span_bytes=budget)
    taken = Taken(writer)
    hostile_run(Recorder(taken, span_metadata=["a", "b"]), rng)
    ((root, captured),) = taken.runs
    writer.write(root, captured, decision="random", reason=None, probability=1.0)
    details = {"explanation": "仓" * 9_000, "unsupported": ["仓" * 9_000] * 9}
    judge = JudgeInfo(model="m" * 9_000, prompt_hash="p")
    scores = [score(f"metric_{n}", details=details, judge=judge, root=root) for n in range(30)]
    root.end(captured.ended_ns)
    EvaluationWriter(spans.tracer, None, content=content, max_span_bytes=budget).write(
        captured.record, scores, is_root_sampled=True, decision="random", probability=1.0, started_ns=0, ended_ns=1
    )
    assert len(spans.finished) == 8
    over = {span.name[:20]: bytes_of(span) for span in spans.finished if bytes_of(span) > budget}
    assert over == {}
    for span in spans.finished:
        for name in ("ragtrace.pool.ids", "ragtrace.rerank.documents", "gen_ai.retrieval.documents"):
            if name in span.attributes:
                json.loads(span.attributes[name])


def test_a_pool_of_5000_long_ids_is_cut_from_its_lowest_ranks_and_the_spans_say_so(spans):
    writer = SpanWriter(spans.tracer)
    taken = Taken(writer)
    pool = [{"id": f"{n:05d}{'x' * 150}", "text": f"Passage {n}.", "score": 1 - n / 10_000} for n in range(5_000)]
    run = Recorder(taken).start(query="q")
    run.retrieved(pool)
    run.reranked(pool[:8])
    run.finish()
    ((root, captured),) = taken.runs
    writer.write(root, captured, decision="random", reason=None, probability=1.0)
    root.end(captured.ended_ns)
    found, top = spans.one("retrieval").attributes, spans.one("invoke_workflow").attributes
    ids, scores = (json.loads(top[name]) for name in (semconv.POOL_IDS, semconv.POOL_SCORES))
    assert 1_000 < len(ids) < 5_000
    assert ids == [p["id"] for p in pool[: len(ids)]]
    assert scores == [p["score"] for p in pool[: len(ids)]]
    assert len(json.loads(top[semconv.SELECTED_IDS])) == 8
    assert top[semconv.SPAN_CUT] == (semconv.POOL_IDS, semconv.POOL_SCORES)
    documents = json.loads(found[semconv.GEN_AI_RETRIEVAL_DOCUMENTS])
    assert found[semconv.RETRIEVAL_DOCUMENT_COUNT] == 5_000
    assert found[semconv.RETRIEVAL_DOCUMENT_CAPTURED] == len(documents) < 5_000
    assert found[semconv.SPAN_CUT] == (semconv.GEN_AI_RETRIEVAL_DOCUMENTS,)


def test_what_a_provider_replies_of_itself_is_bounded(spans):
    writer = SpanWriter(spans.tracer)
    taken = Taken(writer)
    run = Recorder(taken).start(query="q")
    reasons = ["stop" * 999, None, 7, object()] * 99
    run.generated(response_id="r" * 10**6, response_model="m" * 10**6, finish_reasons=reasons, model="仓" * 10**6)
    run.finish()
    ((root, captured),) = taken.runs
    writer.write(root, captured, decision="random", reason=None, probability=1.0)
    found = spans.one("chat").attributes
    assert [len(found[f"gen_ai.response.{name}"]) for name in ("id", "model", "finish_reasons")] == [256, 256, 64]
    assert max(map(len, found["gen_ai.response.finish_reasons"])) == 256
    assert len(found["gen_ai.request.model"]) == 256
    assert bytes_of(spans.one("chat")) < 262_144


def test_attributes_within_the_budget_stay_as_they_are():
    attributes = {"user.id": "仓" * 100, "ragtrace.run.tags": ("a", "b"), "ragtrace.k": 3}
    assert Budget(360).fit(attributes) == attributes
