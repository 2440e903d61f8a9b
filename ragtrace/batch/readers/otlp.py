"""Traces as OTLP JSON, a request a line, as the Collector's file exporter writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.batch.readers import Reader
from ragtrace.batch.rows import json_text
from ragtrace.batch.spans import records_by
from ragtrace.errors import InputError
from ragtrace.ingest.receiving.options import ReceiverLimits
from ragtrace.ingest.receiving.otlp_json import read_spans
from ragtrace.ingest.receiving.refusal import ReceiverRefusal
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.ingest.base import RawSpan

_KEYS = {"resourceSpans", "resource_spans"}
_MOST_BYTES = 2**31  # of a file that a person gave, there is no sender to guard against
_LIMITS = ReceiverLimits(json_bytes=_MOST_BYTES, span_bytes=_MOST_BYTES, items=_MOST_BYTES)


def _spans(row: Mapping[str, Any]) -> Iterator[RawSpan]:
    try:
        found = read_spans(json_text(dict(row)).encode(), _LIMITS, lambda _: True)
    except ReceiverRefusal as error:
        raise InputError(str(error)) from None
    yield from found.wanted
    if found.rejected:
        raise InputError(f"{count_text(found.rejected, 'span')} without valid ids")


READER = Reader(
    about="Traces as OTLP JSON, a request a line, of any instrumentation that `ragtrace serve` reads.",
    reads=lambda columns: not _KEYS.isdisjoint(columns),
    records=records_by(_spans),
    is_read=_KEYS.__contains__,
    order=0,
)
