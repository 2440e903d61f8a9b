"""Spans of Arize Phoenix, as its client's ``get_spans_dataframe`` gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.batch.fields import nested
from ragtrace.batch.readers import Reader
from ragtrace.batch.rows import json_text
from ragtrace.batch.spans import raw_span, records_by
from ragtrace.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.ingest.base import RawSpan

_TRACE, _SPAN, _PREFIX = "context.trace_id", "context.span_id", "attributes."
_COLUMNS = {_TRACE, _SPAN, "parent_id", "name", "span_kind", "start_time", "end_time", "status_code"}
_LISTS = re.compile(r"(?:documents|messages|prompts|choices|tools|tags)$")
_NUMBERS = re.compile(r"\.token_count\.|\.top_k$|\.score$")


def _spans(row: Mapping[str, Any]) -> Iterator[RawSpan]:
    if not row.get(_TRACE) or not row.get(_SPAN):
        raise InputError(f"no {_TRACE} or no {_SPAN}")
    given = {name.removeprefix(_PREFIX): _value(name, row[name]) for name in row if name.startswith(_PREFIX)}
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


def _value(name: str, value: Any) -> Any:
    """Return an attribute; its lists are values, and metadata are the text of an object, as in OpenInference."""
    if name == f"{_PREFIX}{semconv.METADATA}":
        found = nested(name, value)
        return json_text(found) if isinstance(found, dict) else found
    return nested(name, value) if _LISTS.search(name) else value


READER = Reader(
    about="Spans of Phoenix: the dataframe of get_spans_dataframe as Parquet, JSON lines or CSV.",
    reads={_TRACE, "span_kind"}.issubset,
    records=records_by(_spans),
    is_read=lambda name: name in _COLUMNS or name.startswith(_PREFIX),
    is_number=lambda name: _NUMBERS.search(name) is not None,
)
