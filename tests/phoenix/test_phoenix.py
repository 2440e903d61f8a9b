"""What a real Phoenix (arize-phoenix, another project's software) shows of our spans and scores."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import ragtrace
from ragtrace.capture import internal_errors
from ragtrace.model import RagRecord
from ragtrace.sinks import PhoenixSink, span_annotations
from tests import make
from tests.phoenix.runs import ANSWER, INVENTED, QUESTION, ask, chain, sending
from tests.phoenix.server import KEY, Phoenix, phoenix_python, wait_for

phoenix_python()  # one skip for the file where there is none
pytestmark = pytest.mark.slow

DIALECTS = ("genai", "openinference", "both")
METRICS = ("faithfulness", "answer_relevancy", "no_answer", "citations", "mrr")
ROWS = """query ($id: ID!) { node(id: $id) { ... on Project {
    spanAnnotationNames
    spanAnnotationSummary(annotationName: "faithfulness") { count scoreCount meanScore labelFractions { label fraction } }
    spans(first: 100) { edges { node { name spanKind input { value } output { value }
        spanAnnotations { name score label annotatorKind } } } } } } }"""


@pytest.fixture(scope="module")
def shown(phoenix: Phoenix) -> dict[str, Any]:
    """One run in each dialect: our own record and scores, and what Phoenix says of them."""
    kept = {}
    for dialect in DIALECTS:
        with sending(phoenix, dialect, content="full", dialect=dialect, metrics=METRICS) as seen:
            ask(chain())
        ((record, scores),) = seen.seen
        kept[dialect] = (record, scores, len(span_annotations(record, scores, has_content=True)))
    found = {}
    for dialect, (record, scores, sent) in kept.items():
        spans = wait_for(lambda name=dialect: len(rows := phoenix.spans(name)) == 5 and rows)
        annotated = wait_for(
            lambda name=dialect, span=record.span_id, number=sent: (
                len(rows := phoenix.annotations(name, span)) >= number and rows
            )
        )
        assert spans, f"five spans of dialect {dialect}"
        assert annotated, f"annotations of dialect {dialect}"
        found[dialect] = (record, scores, {span["span_kind"]: span for span in spans}, annotated)
    return found


def listed(value: Any) -> list[Any]:
    """Phoenix shows a JSON text as what it holds, or as the text."""
    return json.loads(value) if isinstance(value, str) else value


def documents(span: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents that the page lists: Phoenix flattens them into numbered attributes."""
    rows: dict[int, dict[str, Any]] = {}
    for name, value in span["attributes"].items():
        if name.startswith("retrieval.documents."):
            _, _, place, _, fact = name.split(".", 4)
            rows.setdefault(int(place), {})[fact] = value
    return [rows[place] for place in sorted(rows)]


def _is_output_id(name: str) -> bool:
    return name.startswith("reranker.output_documents.") and name.endswith(".document.id")


@pytest.mark.parametrize("dialect", DIALECTS)
class TestDialect:
    def test_the_kinds_and_the_tree(self, shown: dict[str, Any], dialect: str) -> None:
        record, _, spans, _ = shown[dialect]
        assert {kind: span["name"] for kind, span in spans.items()} == {
            "CHAIN": "invoke_workflow support",
            "RETRIEVER": "retrieval faq",
            "RERANKER": "rerank rerank",
            "LLM": spans["LLM"]["name"],
            "EVALUATOR": "evaluation support",
        }
        assert spans["CHAIN"]["context"]["span_id"] == record.span_id
        assert {span["context"]["trace_id"] for span in spans.values()} == {record.trace_id}
        assert {span["parent_id"] for span in spans.values()} == {None, record.span_id}

    def test_all_fifty_documents_with_ids_scores_and_text_in_order(self, shown, dialect) -> None:
        _, _, spans, _ = shown[dialect]
        assert documents(spans["RETRIEVER"]) == [
            {
                "id": f"doc-{i}",
                "score": (100 - i) / 100,
                "content": f"A refund of parcel {i} takes {i + 10} days.",
            }
            for i in range(50)
        ]
        assert spans["RETRIEVER"]["attributes"]["input.value"] == QUESTION

    def test_question_answer_and_session_are_on_the_root(self, shown, dialect) -> None:
        attributes = shown[dialect][2]["CHAIN"]["attributes"]
        assert (attributes["input.value"], attributes["output.value"]) == (QUESTION, ANSWER)
        assert attributes["session.id"] == "s-1"
        assert listed(attributes["ragtrace.pool.ids"]) == [f"doc-{i}" for i in range(50)]
        assert listed(attributes["ragtrace.selected.ranks"])[0] == 8

    def test_the_model_call_with_its_tokens_and_both_messages(self, shown, dialect) -> None:
        attributes = shown[dialect][2]["LLM"]["attributes"]
        assert attributes["llm.token_count.prompt"] == 90
        assert attributes["llm.token_count.completion"] == 20
        assert attributes["llm.model_name"]
        assert attributes["llm.input_messages.0.message.role"] == "user"
        assert attributes["llm.input_messages.0.message.content"].endswith(f"Question: {QUESTION}")
        assert attributes["llm.output_messages.0.message.content"] == ANSWER

    def test_the_rerankers_choice_is_one_attribute_and_documents_in_dialect_openinference(
        self, shown, dialect
    ) -> None:
        # Phoenix reads a reranker's documents from one attribute a field alone.
        attributes = shown[dialect][2]["RERANKER"]["attributes"]
        rows = json.loads(attributes["ragtrace.rerank.documents"])
        assert [row["id"] for row in rows] == [f"doc-{i}" for i in (7, 3, 1, 20, 5, 2, 9, 11)]
        listed_ids = [value for name, value in attributes.items() if _is_output_id(name)]
        assert listed_ids == ([row["id"] for row in rows] if dialect == "openinference" else [])
        assert attributes.get("reranker.model_name") == (None if dialect == "genai" else "rerank")

    def test_every_score_stands_as_an_annotation_of_the_root(self, shown, dialect) -> None:
        record, scores, _, annotated = shown[dialect]
        facts = ("span_id", "name", "annotator_kind", "metadata", "identifier")
        got = {row["name"]: ({f: row[f] for f in facts}, row["result"]) for row in annotated}
        sent = {row["name"]: row for row in span_annotations(record, scores, has_content=True)}
        assert got.keys() == sent.keys()
        assert len(annotated) == len(sent)
        for name, row in sent.items():
            assert got[name][0] == {f: row[f] for f in facts}
            assert got[name][1] == {"score": None, "label": None, "explanation": None} | row["result"]

    def test_a_low_score_says_why(self, shown, dialect) -> None:
        record, scores, _, annotated = shown[dialect]
        row = next(row for row in annotated if row["name"] == "faithfulness")
        value = next(score.result.value for score in scores if score.result.name == "faithfulness")
        assert row["result"]["score"] == value
        assert 0.2 < value < 0.5, "one of two sentences is invented"
        assert row["result"]["label"] == "fail"
        assert INVENTED in row["result"]["explanation"]
        assert row["annotator_kind"] == "CODE", "the overlap judge is no language model"
        wanted = {
            "judge": "overlap",
            "state": "ok",
            "stratum": "random",
            "weight": 1.0,
            "workflow": record.workflow,
        }
        assert wanted.items() <= row["metadata"].items()
        assert row["metadata"]["details"]["n_claims"] == 2
        assert len(row["metadata"]["version"]) == 8

    def test_what_the_page_itself_asks_for(self, phoenix: Phoenix, shown, dialect) -> None:
        project = phoenix.get(f"/v1/projects/{dialect}")["data"]["id"]
        page = phoenix.graphql(ROWS, id=project)["node"]
        assert "faithfulness" in page["spanAnnotationNames"]
        summary = page["spanAnnotationSummary"]
        value = next(row["result"]["score"] for row in shown[dialect][3] if row["name"] == "faithfulness")
        assert (summary["count"], summary["scoreCount"], summary["meanScore"]) == (1, 1, value)
        rows = {edge["node"]["spanKind"]: edge["node"] for edge in page["spans"]["edges"]}
        root = rows["chain"]
        assert (root["input"]["value"], root["output"]["value"]) == (QUESTION, ANSWER)
        row = {"name": "faithfulness", "score": value, "label": "fail", "annotatorKind": "CODE"}
        assert row in root["spanAnnotations"]


def test_a_score_that_could_not_be_is_a_label_and_never_a_number(phoenix: Phoenix) -> None:
    metrics = ("faithfulness", "mrr")
    with sending(phoenix, "empty", content="none", metrics=metrics) as kept, ragtrace.query(QUESTION) as run:
        run.retrieved([], source="faq")
        run.answered("It takes 17 days.")
    ((record, scores),) = kept.seen
    states = {score.result.name: (score.result.state, score.result.reason) for score in scores}
    assert states["faithfulness"] == ("na", "no_contexts")
    assert states["mrr"][0] == "na", "nobody gave labels"
    (row,) = wait_for(lambda: phoenix.annotations("empty", record.span_id), 15)
    assert (row["name"], row["result"]) == (
        "faithfulness",
        {"score": None, "label": "na", "explanation": "no_contexts"},
    )
    assert (row["metadata"]["state"], row["metadata"]["reason"]) == ("na", "no_contexts")


def test_without_content_phoenix_gets_ids_and_scores_and_no_text(phoenix: Phoenix) -> None:
    with sending(phoenix, "quiet", content="none", metrics=("faithfulness",)) as kept:
        ask(chain())
    ((record, _),) = kept.seen
    spans = wait_for(lambda: len(rows := phoenix.spans("quiet")) == 5 and rows)
    retriever = next(span for span in spans if span["span_kind"] == "RETRIEVER")
    assert documents(retriever) == [{"id": f"doc-{i}", "score": (100 - i) / 100} for i in range(50)]
    (row,) = wait_for(lambda: phoenix.annotations("quiet", record.span_id))
    assert (row["result"]["label"], row["result"]["explanation"]) == ("fail", None)
    everything = json.dumps([spans, row])
    assert "refund of parcel" not in everything
    assert INVENTED not in everything


def test_a_thousand_documents_all_arrive_in_order(phoenix: Phoenix) -> None:
    pool = [{"id": f"d{i}", "text": f"Passage {i} of many.", "score": 1 - i / 1_000} for i in range(1_000)]
    with sending(phoenix, "large", content="full", metrics=("faithfulness",)), ragtrace.query(QUESTION) as run:
        run.retrieved(pool, source="faq", top_k=1_000)
        run.answered("Passage 3 of many.")
    spans = wait_for(lambda: [s for s in phoenix.spans("large") if s["span_kind"] == "RETRIEVER"])
    found = documents(spans[0])
    assert [(row["id"], row["score"]) for row in found] == [(p["id"], p["score"]) for p in pool]


@pytest.fixture(scope="module")
def target(phoenix: Phoenix) -> RagRecord:
    """A root span that Phoenix has, without annotations."""
    with sending(phoenix, "target", content="none", metrics=("mrr",)) as kept:
        ask(chain())
    ((record, _),) = kept.seen
    assert wait_for(lambda: phoenix.spans("target"))
    return record


@pytest.fixture
def sink(phoenix: Phoenix):
    sink = PhoenixSink(phoenix.url, api_key=KEY, content="full")
    yield sink
    sink.close(5)


def test_the_same_score_again_replaces_and_another_version_stands_beside(phoenix, sink, target) -> None:
    def rows() -> list[tuple[Any, ...]]:
        found = [row for row in phoenix.annotations("target", target.span_id) if row["name"] == "again"]
        return sorted((row["metadata"]["version"], row["result"]["score"]) for row in found)

    sink.emit(target, [make.score(target, metric="again", value=0.25, version="aaaa0000")])
    assert sink.flush(10)
    assert wait_for(rows) == [("aaaa0000", 0.25)]
    sink.emit(target, [make.score(target, metric="again", value=0.75, version="aaaa0000")])
    sink.emit(target, [make.score(target, metric="again", value=0.5, version="aaaa0000")])
    assert sink.flush(10)
    assert wait_for(lambda: rows() == [("aaaa0000", 0.5)]), rows()
    sink.emit(target, [make.score(target, metric="again", value=1.0, version="bbbb1111")])
    assert sink.flush(10)
    assert wait_for(lambda: rows() == [("aaaa0000", 0.5), ("bbbb1111", 1.0)]), rows()


def test_a_failure_takes_the_number_back(phoenix, sink, target) -> None:
    def results() -> list[dict[str, Any]]:
        rows = phoenix.annotations("target", target.span_id)
        return [row["result"] for row in rows if row["name"] == "judged"]

    sink.emit(target, [make.score(target, metric="judged", value=0.25, passed=False)])
    assert sink.flush(10)
    assert wait_for(results)
    details = {"message": "the judge's server is away"}
    sink.emit(
        target, [make.score(target, metric="judged", state="error", reason="judge_unavailable", details=details)]
    )
    assert sink.flush(10)
    said = "judge_unavailable: the judge's server is away"
    wanted = [{"score": None, "label": "error", "explanation": said}]
    assert wait_for(lambda: results() == wanted), results()


def test_text_that_would_lose_an_annotation_is_mended(phoenix, sink, target) -> None:
    """Phoenix answers 200 to a lone surrogate, and loses the annotation; PostgreSQL refuses U+0000."""
    details = {"explanation": "lone \ud800, zero \0, end"}
    sink.emit(target, [make.score(target, metric="odd", value=1.0, details=details)])
    assert sink.flush(10)
    rows = wait_for(lambda: [r for r in phoenix.annotations("target", target.span_id) if r["name"] == "odd"])
    assert rows[0]["result"]["explanation"] == "lone �, zero �, end"


def test_one_refused_annotation_does_not_take_its_batch_along(phoenix, sink, target) -> None:
    """Phoenix reserves the name ``note`` and refuses every batch that holds it."""
    before = internal_errors().get("ragtrace.sinks.phoenix.refused", 0)
    names = [f"part-{i}" for i in range(9)]
    scores = [make.score(target, metric=name, value=1.0) for name in (*names[:4], "note", *names[4:])]
    sink.emit(target, scores)
    assert not sink.flush(10), "a loss is said"
    assert sink.flush(10), "once"
    assert internal_errors()["ragtrace.sinks.phoenix.refused"] == before + 1

    def arrived() -> list[str]:
        return sorted(r["name"] for r in phoenix.annotations("target", target.span_id) if r["name"] in names)

    assert wait_for(lambda: arrived() == names), arrived()


def test_an_annotation_may_come_before_its_span(phoenix: Phoenix, sink: PhoenixSink) -> None:
    """Phoenix looks again after 10 s: the scorer may be faster than the exporter of spans."""
    with sending(phoenix, "late", content="none", metrics=("mrr",), attach="child"):
        run = ragtrace.query(QUESTION)
        with run:
            run.retrieved([{"id": "a", "text": "Oslo.", "score": 0.9}], source="faq")
            record = RagRecord(id="x", trace_id=run.trace_id, span_id=run.span_id)
            sink.emit(record, [make.score(record, metric="early", value=1.0)])
            assert sink.flush(10), "Phoenix takes it"
            time.sleep(0.5)  # Phoenix looks for the span every 0.1 s at first; nothing shows that it has looked
            assert phoenix.annotations("late", record.span_id) == []
            run.answered("Oslo.")
    assert wait_for(lambda: phoenix.spans("late"))
    started = time.monotonic()
    (row,) = wait_for(lambda: phoenix.annotations("late", record.span_id))
    assert (row["name"], row["result"]["score"]) == ("early", 1.0)
    assert 5 < time.monotonic() - started < 15, "it looks again after 10 s"


def test_a_wrong_key_is_said_and_counted_and_never_shown(phoenix, target, caplog) -> None:
    before = internal_errors().get("ragtrace.sinks.phoenix.refused", 0)
    wrong = "a-wrong-key-9876543210"
    sink = PhoenixSink(phoenix.url, api_key=wrong)
    sink.emit(target, [make.score(target, metric="keyed", value=1.0)])
    assert not sink.close(10)
    assert internal_errors()["ragtrace.sinks.phoenix.refused"] == before + 1
    assert "refuses the API key (401): check api_key (PHOENIX_API_KEY)" in caplog.text
    assert wrong not in caplog.text


def test_phoenixs_mean_leaves_scores_without_a_number_out(phoenix: Phoenix, sink: PhoenixSink) -> None:
    with sending(phoenix, "mean", content="none", metrics=("mrr",)) as kept:
        for _ in range(3):
            ask(chain())
    records = [record for record, _ in kept.seen]
    assert wait_for(lambda: len(phoenix.spans("mean")) == 15)
    results = (
        {"value": 0.5, "passed": True},
        {"value": 1.0, "passed": True},
        {"state": "error", "reason": "judge_timeout"},
    )
    for record, facts in zip(records, results, strict=True):
        sink.emit(record, [make.score(record, metric="faithfulness", **facts)])
    assert sink.flush(10)
    project = phoenix.get("/v1/projects/mean")["data"]["id"]

    def summary() -> dict[str, Any]:
        return phoenix.graphql(ROWS, id=project)["node"]["spanAnnotationSummary"] or {}

    assert wait_for(lambda: summary().get("count") == 3), summary()
    assert (summary()["scoreCount"], summary()["meanScore"]) == (2, 0.75)
    fractions = {row["label"]: round(row["fraction"], 4) for row in summary()["labelFractions"]}
    assert fractions == {"pass": 0.6667, "error": 0.3333}


def test_a_reply_without_a_finish_reason_is_shown(phoenix: Phoenix) -> None:
    with sending(phoenix, "unfinished", content="full", metrics=("mrr",)):
        ask(chain(finish_reason=None))
    spans = wait_for(lambda: [s for s in phoenix.spans("unfinished") if s["span_kind"] == "LLM"])
    assert spans[0]["attributes"]["llm.output_messages.0.message.content"] == ANSWER
