"""Traces as OTLP JSON, a request a line, as the Collector's file exporter writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.batch.readers import Reader
from ragtrace.batch.rows import json_text
from ragtrace.batch.spans import records_of
from ragtrace.ingest.receiving.options import ReceiverLimits
from ragtrace.ingest.receiving.otlp_json import read_spans
from ragtrace.ingest.receiving.refusal import ReceiverRefusal
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ragtrace.batch.readers import PlacedRow
    from ragtrace.ingest.base import RawSpan

_KEYS = {"resourceSpans", "resource_spans"}
_MOST_BYTES = 2**31  # of a file that a person gave, there is no sender to guard against


def _records(rows: Iterable[PlacedRow], broken: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    return records_of(_spans(rows, broken))


def _spans(rows: Iterable[PlacedRow], broken: Callable[[str], None]) -> Iterator[RawSpan]:
    limits = ReceiverLimits(json_bytes=_MOST_BYTES, span_bytes=_MOST_BYTES, items=_MOST_BYTES)
    for place, row in rows:
        try:
            found = read_spans(json_text(dict(row)).encode(), limits, lambda _: True)
        except ReceiverRefusal as error:
            broken(f"{place}: {error}")
            continue
        if found.rejected:
            broken(f"{place}: {count_text(found.rejected, 'span')} without valid ids")
        yield from found.wanted


READER = Reader(
    about="Traces as OTLP JSON, a request a line, of any instrumentation that `ragtrace serve` reads.",
    reads=lambda columns: not _KEYS.isdisjoint(columns),
    records=_records,
    order=0,
)
