"""The tests that every sink of ragtrace passes.

An author subclasses `SinkConformance`, returns a sink from `make`, and pytest or unittest runs the rest.
"""

# ruff: noqa: PT009 - pytest does not rewrite the asserts of an installed package
from __future__ import annotations

import threading
import time
import unittest
from typing import TYPE_CHECKING

from ragtrace.model import JudgeInfo, MetricResult, RagRecord, Score, ScoreKey
from ragtrace.sinks.base import sinks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.sinks.base import Sink

_LONGEST_EMIT_S = 1.0
_TIMEOUT_S = 5.0


def scored_record(name: str = "a", text: str = "Where?") -> tuple[RagRecord, list[Score]]:
    """Return a record and a score of each state, as the scorer gives them.

    Args:
        name: of the record.
        text: its question, answer and the words among its scores' details.
    """
    trace = name.encode().hex().ljust(32, "0")[:32]
    record = RagRecord(id=name, trace_id=trace, span_id="b" * 16, query=text, answer=text, user="ada")
    judge = JudgeInfo(model="judge", prompt_hash="0" * 8, label_scale=None)
    results = [
        MetricResult(name="faithfulness", state="ok", value=0.5, version="v1", judge=judge, details={"why": text}),
        MetricResult(name="mrr", state="ok", value=1.0, version="v1", k=3),
        MetricResult(name="answer_relevance", state="na", reason="no_answer", version="v1"),
        MetricResult(name="citation_recall", state="error", reason="judge_timeout", version="v1"),
    ]
    keys = (ScoreKey(trace_id=trace, span_id="b" * 16, metric=result.key, version="v1") for result in results)
    return record, [Score(key=key, result=result) for key, result in zip(keys, results, strict=True)]


class SinkConformance(unittest.TestCase):
    """Checks a `ragtrace.sinks.base.Sink`; subclass it and write `make`.

    A sink that tells in `received` how many records arrived is checked for losses too.
    """

    __test__ = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__test__ = True

    def make(self) -> Sink:
        """Return a sink that has taken nothing."""
        raise NotImplementedError

    def received(self, sink: Sink) -> int | None:
        """Return the number of records that arrived; None where the test cannot tell."""

    def setUp(self) -> None:
        self.sink = self.make()
        self.addCleanup(self.end, "close")

    def end(self, method: str) -> bool:
        """Call ``flush`` or ``close`` where the sink has it; return whether nothing was lost."""
        found = getattr(self.sink, method, None)
        if found is None:
            return True
        began = time.monotonic()
        is_whole = found(_TIMEOUT_S) is not False
        self.assertLess(time.monotonic() - began, _TIMEOUT_S + 1.0)
        return is_whole

    def emitted(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Emit a record; a sink must not hold the scorer up."""
        began = time.monotonic()
        self.sink.emit(record, scores)
        self.assertLess(time.monotonic() - began, _LONGEST_EMIT_S)

    def test_an_application_may_give_it(self) -> None:
        self.assertEqual(sinks_of([self.sink]), (self.sink,))

    def test_scores_of_every_state_arrive(self) -> None:
        for name in "abc":
            self.emitted(*scored_record(name))
        self.assertTrue(self.end("flush"))
        self.assertIn(self.received(self.sink), (3, None))

    def test_any_text_is_taken(self) -> None:
        for text in ("", "\x00\x1b[31m", "\ud800", "x" * 100_000):
            self.emitted(*scored_record(text=text))
        self.assertTrue(self.end("flush"))

    def test_a_record_without_scores_or_texts_is_taken(self) -> None:
        self.emitted(RagRecord(id="1"), [])
        self.assertTrue(self.end("flush"))

    def test_the_same_scores_are_taken_twice(self) -> None:
        record, scores = scored_record()
        self.emitted(record, scores)
        self.emitted(record, scores)
        self.assertTrue(self.end("flush"))

    def test_it_does_not_change_what_it_takes(self) -> None:
        record, scores = scored_record()
        self.emitted(record, scores)
        self.assertEqual((record, scores), scored_record())

    def test_flush_beside_emit_loses_nothing(self) -> None:
        flusher = threading.Thread(target=self.end, args=("flush",))
        flusher.start()
        for number in range(20):
            self.emitted(*scored_record(str(number)))
        flusher.join(_TIMEOUT_S)
        self.assertTrue(self.end("flush"))
        self.assertIn(self.received(self.sink), (20, None))

    def test_it_closes_twice(self) -> None:
        self.emitted(*scored_record())
        self.assertTrue(self.end("close"))
        self.end("close")
