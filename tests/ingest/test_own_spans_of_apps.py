"""The spans of small applications after public templates give the records that their authors wrote down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from ragtrace.ingest import RawSpan, read_trace
from ragtrace.testing.recording import Recording
from tests.apps.application import recorded
from tests.apps.test_apps import applications

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

FIRST = list({param.values[0]: param for param in reversed(applications())}.values())  # one form of each


def traces_of(spans: Sequence[ReadableSpan]) -> list[list[RawSpan]]:
    found: dict[bytes, list[RawSpan]] = {}
    for resource in encode_spans(spans).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                found.setdefault(span.trace_id, []).append(RawSpan(span, resource.resource, scope.scope.name))
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form", "way"), FIRST)
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_the_record_read_from_spans_is_what_a_person_says_it_is(kind, form, way):
    kept = Recording()
    with kind().capturing(way, kept.recorder) as given:
        kind().run(form, given)
    runs = [run.finished for spans in traces_of(kept.spans) for run in read_trace(spans)]
    assert [recorded(run) for run in runs] == list(kind.expected)
