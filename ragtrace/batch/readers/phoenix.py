"""Spans of Arize Phoenix, as its client's ``get_spans_dataframe`` gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.batch.readers import Reader
from ragtrace.batch.spans import raw_span, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ragtrace.batch.readers import PlacedRow
    from ragtrace.ingest.base import RawSpan

_TRACE, _SPAN, _PREFIX = "context.trace_id", "context.span_id", "attributes."


def _records(rows: Iterable[PlacedRow], broken: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    return records_of(_spans(rows, broken))


def _spans(rows: Iterable[PlacedRow], broken: Callable[[str], None]) -> Iterator[RawSpan]:
    for place, row in rows:
        if not row.get(_TRACE) or not row.get(_SPAN):
            broken(f"{place}: no {_TRACE} or no {_SPAN}")
            continue
        given = {name.removeprefix(_PREFIX): row[name] for name in row if name.startswith(_PREFIX)}
        given.setdefault(semconv.OPENINFERENCE_SPAN_KIND, row.get("span_kind"))
        yield raw_span(
            str(row[_TRACE]),
            str(row[_SPAN]),
            row.get("parent_id"),
            given,
            name=str(row.get("name") or ""),
            started=row.get("start_time"),
            ended=row.get("end_time"),
            is_error=row.get("status_code") == "ERROR",
        )


READER = Reader(
    about="Spans of Phoenix: the dataframe of get_spans_dataframe as Parquet or JSON lines.",
    reads={_TRACE, "span_kind"}.issubset,
    records=_records,
)
