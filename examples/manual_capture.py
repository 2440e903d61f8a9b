"""Capture without a framework: a run reported by hand, scored offline, and read back from a sink.

Run it: ``python manual_capture.py``. It needs no key, no network and no collector.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import ragtrace

if TYPE_CHECKING:
    from collections.abc import Sequence

FAQ = {
    "cancel-1": "You can cancel your plan in the settings, under Billing, at any time.",
    "refund-1": "Refunds are paid within five working days.",
    "seats-1": "A plan has as many seats as you pay for.",
}


class Printer:
    """A sink: takes each scored record in the scorer's thread."""

    def emit(self, record: ragtrace.RagRecord, scores: Sequence[ragtrace.Score]) -> None:
        """Print what was delivered and how it scored."""
        print(f"{record.query!r}, delivered {[p.id for p in record.contexts]}")
        for score in scores:
            result = score.result
            print(f"  {result.key:<20} {result.state if result.value is None else round(result.value, 3)}")


def answer(question: str) -> str:
    """Stand for your own pipeline: search, rerank, prompt, generate."""
    with ragtrace.query(question, workflow="support", session="s-42") as run:
        pool = [{"id": name, "text": text, "score": 0.9 - i / 10} for i, (name, text) in enumerate(FAQ.items())]
        run.retrieved(pool, source="faq", top_k=3)
        best = pool[:2]
        run.reranked(best, model="my-reranker")
        run.used(best)
        run.labels({"cancel-1": 5, "refund-1": 2, "seats-1": 1})
        text = "You can cancel your plan in the settings, under Billing. Our office is in Lisbon."
        run.answered(text, model="my-model", usage={"input_tokens": 120, "output_tokens": 18})
        return text


def main() -> None:
    """Configure, answer one question, wait for its scores."""
    for signal in ("TRACES", "METRICS", "LOGS"):  # no collector here; leave this out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    metrics = ("faithfulness", "no_answer", "ra_nwg", "harm")
    ragtrace.configure(judge="overlap", metrics=metrics, sample_rate=1.0, sinks=[Printer()])
    answer("How do I cancel?")
    print("scored and exported:", ragtrace.flush(10))
    ragtrace.shutdown(10)


if __name__ == "__main__":
    main()
