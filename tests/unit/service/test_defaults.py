"""Settings that stand in for what a run does not say."""

from __future__ import annotations

import ragtrace
from ragtrace import semconv
from tests import make


def test_workflow_and_corpus_of_the_settings_stand_on_the_root() -> None:
    spans = make.Spans()
    ragtrace.configure(workflow="support", corpus="faq", sample_rate=0.0, tracer_provider=spans.provider)
    try:
        with ragtrace.query("Where?") as run:
            run.answered("Here.")
        with ragtrace.query("Where?", corpus="wiki") as run:
            run.answered("Here.")
        assert ragtrace.flush(10)
    finally:
        ragtrace.shutdown(5)
    roots = [dict(span.attributes or {}) for span in spans.finished]
    assert [root[semconv.CORPUS_NAME] for root in roots] == ["faq", "wiki"]
    assert {root[semconv.GEN_AI_WORKFLOW_NAME] for root in roots} == {"support"}
