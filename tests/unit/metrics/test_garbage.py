"""Every metric is total on garbage: a state with a reason, never NaN, an exception or a made-up number."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.metrics.eval_context import EvalContext, Options
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import all_metrics, output
from ragtrace.model import AnswerPart, Labels, MetricResult, Passage, Pool, RagRecord

SCALARS = st.none() | st.booleans() | st.integers(-3, 60) | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from(["attempted", "claims", "verdicts", "grades", "id", "sources", "part", "cites", "relevant"])
SUPPORTS = st.sampled_from(["full", "partial", "none", "p1", ""])
IDS = ["p1", "p2", "3", ""]
JUNK = st.recursive(
    SCALARS | SUPPORTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


def rows(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return rows that are numbered rightly, or with ids at random."""
    row = st.fixed_dictionaries(fields)
    sound = st.lists(row, max_size=4).map(lambda made: [{"id": n, **one} for n, one in enumerate(made, start=1)])
    return sound | st.lists(st.fixed_dictionaries({"id": st.integers(0, 4), **fields}), max_size=4)


SOURCES = st.lists(st.integers(0, 3), max_size=2)
TEXTS = st.lists(st.text(max_size=5), max_size=4)
# Of the right form for every task, so that the metrics' own arithmetic is reached, with contents at random.
FITTING = st.fixed_dictionaries(
    {
        "attempted": st.booleans(),
        "noncommittal": st.booleans(),
        "claims": TEXTS,
        "facts": TEXTS,
        "answer_claims": TEXTS,
        "reference_claims": TEXTS,
        "reference_entities": TEXTS,
        "context_entities": TEXTS,
        "table": rows(sources=SOURCES),
        "nuggets": TEXTS | st.just(["not enough information"]),
        "labels": rows(importance=st.sampled_from(["vital", "okay"])),
        "assignments": rows(support=st.sampled_from(["support", "partial_support", "not_support"])),
        "attributions": rows(sources=SOURCES),
        "grades": rows(grade=st.integers(0, 5)),
        "grade": st.integers(0, 6),
        "reason": st.text(max_size=5),
        "questions": st.lists(
            st.fixed_dictionaries({"question": st.text(max_size=5), "noncommittal": st.booleans()}), max_size=4
        ),
        "citations": st.lists(
            st.fixed_dictionaries(
                {"part": st.integers(0, 3), "cites": st.sampled_from([*IDS, 1, 2]), "support": SUPPORTS}
            ),
            max_size=4,
        ),
        "verdicts": rows(
            verdict=st.sampled_from(["supported", "not_supported", "contradicted"]),
            sources=SOURCES,
            relevant=st.booleans(),
        ),
    }
)
REPLIES = st.lists(st.text(max_size=30) | JUNK.map(json.dumps), max_size=2)

# "x" leads the alphabet, since an example that is blank ends in a gate.
TEXT = st.text("xyz \u00e9\n\ud800", max_size=6)
PASSAGES = st.lists(st.tuples(st.sampled_from(IDS), TEXT), min_size=1, max_size=4).map(
    lambda made: tuple(Passage(id=i, text=text, rank=n) for n, (i, text) in enumerate(made, start=1))
)
GRADES = st.dictionaries(st.sampled_from(IDS), st.integers(1, 5)) | st.fixed_dictionaries(
    dict.fromkeys(IDS, st.integers(1, 5))
)
RECORDS = st.builds(
    RagRecord,
    id=st.just("1"),
    query=TEXT,
    answer=TEXT,
    reference=st.none() | TEXT,
    k=st.none() | st.integers(-1, 5),
    pools=st.lists(
        st.builds(Pool, stage=st.sampled_from(["retrieved", "used"]), passages=PASSAGES), max_size=2
    ).map(tuple),
    answer_parts=st.lists(
        st.builds(
            AnswerPart, text=TEXT, citations=st.lists(st.sampled_from([*IDS, "gone"]), max_size=3).map(tuple)
        ),
        max_size=3,
    ).map(tuple),
    labels=st.none()
    | st.builds(
        Labels,
        grades=GRADES | st.dictionaries(st.sampled_from(IDS), SCALARS, max_size=4),
        label_scope=st.sampled_from(["gold", "cache", "pool", "shadow", "stratified"]),
    ),
)


class Garbage:
    """An embedder whose rows may be zero, huge, infinite or of another number."""

    name = "garbage"

    def __init__(self, rows: list[list[float]]) -> None:
        self._rows = rows

    async def embed(self, texts: Any) -> Any:
        return (
            np.array([(self._rows[n % len(self._rows)]) for n in range(len(texts))]) if self._rows else np.array([])
        )


def check(result: MetricResult) -> None:
    assert result.reason != "internal_error", result.details
    if result.value is not None:
        bounds = output(result.name)
        assert math.isfinite(result.value)
        assert bounds.low <= result.value <= bounds.high
    json.dumps(dict(result.details), allow_nan=False)


ROWS = st.lists(
    st.lists(st.floats(-2, 2), min_size=2, max_size=2) | st.lists(st.floats(), min_size=2, max_size=2), max_size=4
)


FORMS: list[dict[str, Any]] = [{}, {}, {"fused": False, "batch_size": 1, "claim_batch": 2}, {"scale": "umbrela"}]

OPTIONS = [Options(), Options(nuggets_from_graded=True, entities_in_text=True)]


@given(RECORDS, REPLIES, FITTING, ROWS, st.sampled_from(FORMS), st.sampled_from(OPTIONS))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_reply_and_no_record_breaks_a_metric(
    record: RagRecord,
    replies: list[str],
    fitting: dict[str, Any],
    vectors: list[list[float]],
    form: dict[str, Any],
    options: Options,
) -> None:
    judge = LLMJudge(ScriptedChat(replies, always=fitting), **form)
    case = EvalContext(record, judge=judge, embedder=Garbage(vectors), options=options)
    metrics = list(all_metrics().values())
    results = asyncio.run(evaluate(metrics, case))
    assert len(results) == sum(len(metric.spec.outputs) for metric in metrics)
    for result in results:
        check(result)
