"""What an application reports by hand is in the file of events, and makes the same run again."""

from __future__ import annotations

import inspect

import pytest

from ragtrace.capture.draft import REPORTS, Draft
from ragtrace.capture.masks import Masker
from ragtrace.capture.run import Run
from ragtrace.model import Message
from tests.apps.test_recorded import lines, recorded, replay, told, words_of

LEFT_OUT = {"add_metadata", "feedback"}  # metadata of a request, and what a person said of an answer
OUT_OF_MODEL = {
    "answer": "Pack it within thirty days [1].",
    "question": "How long may I send it back?",
}
PASSAGES = [
    {"id": "faq-7", "text": "Pack it within thirty days of delivery.", "score": 0.9, "metadata": {"page": "seven"}},
    {"id": "faq-9", "text": "Shipping to islands costs eleven.", "score": 0.4},
]


class ByHand:
    """An application of plain functions that reports all that can be reported."""

    def capturing(self, way, recorder):
        return recorder.start(
            query=OUT_OF_MODEL["question"], user="zebedee", session="monday", corpus="handbook", tags=("beta",)
        )

    def run(self, form, run):
        run.set_history([Message(role="user", content="Hello"), Message(role="assistant", content="Good morning")])
        run.add_metadata({"tenant": "acme"})
        run.retrieved(PASSAGES, source="handbook", top_k=20, key="hop", query="return period")
        run.retrieved(PASSAGES[:1], parent_key="hop")
        run.reranked(PASSAGES[:1], model="shortest", top_n=1)
        run.label_passages({"1": "faq-7"})
        run.add_prompt(f"[1] {PASSAGES[0]['text']} Answer the customer.")
        run.used(PASSAGES[:1])
        run.tool_called("clock", arguments={"zone": "Oslo"}, result="noon", call_id="c1")
        run.generated(
            model="gpt-small",
            inputs=[Message(role="user", content="Answer the customer.")],
            outputs=[Message(role="assistant", content=OUT_OF_MODEL["answer"])],
            finish_reasons=["stop"],
            request={"temperature": 0.5},
        )
        run.answered(
            OUT_OF_MODEL["answer"],
            model="gpt-small",
            usage={"prompt_tokens": 120, "completion_tokens": 9},
            parts=[{"text": OUT_OF_MODEL["answer"], "citations": ["faq-7"]}],
        )
        run.reference("Thirty days.")
        run.labels({"faq-7": 5, "faq-9": 1}, label_scope="gold", version="march")
        run.set_k(3)
        run.feedback(1.0, "Splendid")


class Failing(ByHand):
    """One whose search fails, and that has no answer to give."""

    def run(self, form, run):
        run.retrieved(None, error=TimeoutError("the index is away"))
        run.answered(object())
        run.failed(ValueError("no answer was made"))


@pytest.mark.parametrize("kind", [ByHand, Failing])
@pytest.mark.parametrize("is_masked", [False, True], ids=["plain", "masked"])
def test_a_file_makes_the_same_run_again(kind, is_masked, caplog):
    kept, runs = recorded(kind, "ask", "query")
    written = lines(runs, Masker() if is_masked else None)
    (before,), (after,) = kept.runs, replay(written)
    assert told([after]) == told([before])
    assert after.record.labels and before.record.labels if kind is ByHand else after.record.labels is None
    for one in (before, after):
        assert (one.record.k, one.record.usage and one.record.usage.input_tokens) == (
            (3, 120) if kind is ByHand else (None, None)
        )
    if kind is ByHand:
        graded = [
            [one.record.labels.grades.get(passage.id) for passage in one.record.pool("retrieved")]
            for one in (before, after)
        ]
        assert graded == [[5, 1], [5, 1]]
    if not is_masked:
        assert after.steps == before.steps


def test_a_file_holds_no_person_and_no_word_that_is_masked():
    _, runs = recorded(ByHand, "ask", "query")
    plain, masked = lines(runs, None), lines(runs, Masker())
    assert words_of(plain) & words_of(masked) == set()
    for written in (b"".join(plain), b"".join(masked)):
        assert not any(word in written for word in (b"zebedee", b"monday", b"acme", b"Splendid"))


def test_each_report_is_recorded_or_left_out_by_name():
    reports = {
        name
        for name, method in inspect.getmembers(Run, inspect.isfunction)
        if not name.startswith("_") and name != "finish"
    }
    assert reports < REPORTS
    assert LEFT_OUT < REPORTS
    assert all(callable(getattr(Draft, name)) for name in REPORTS)
