"""The application under OpenInference, scored by a real ``ragtrace serve``."""

from __future__ import annotations

import pytest

from ragtrace.testing.otlp import OtlpReceiver
from tests.environments import python_of
from tests.examples.running import EXAMPLES, ragtrace, run
from tests.ingest.serve.serving import evaluations, has_evaluations, serving

pytestmark = pytest.mark.slow


def test_its_traces_are_scored(tmp_path):
    python = python_of("beside", "OpenInference")
    store = tmp_path / "shop.sqlite"
    with (
        OtlpReceiver() as receiver,
        serving(receiver.endpoint, "--store", str(store), RAGTRACE_CONTENT="full") as serve,
    ):
        run(
            tmp_path,
            EXAMPLES / "openinference_serve" / "app.py",
            "--endpoint",
            f"{serve.http}/v1/traces",
            python=python,
        )
        assert receiver.wait_for(has_evaluations(3), 60.0)
        assert {span.name for span in evaluations(receiver)} == {"evaluation shoe-shop"}
    said = ragtrace(tmp_path, "worst", store)
    assert "1 worst of 3 answers by faithfulness" in said
    assert "not supported (0.00): Members of the club never pay for it." in said
