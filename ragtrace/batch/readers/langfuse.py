"""Traces and observations of Langfuse: exports of its tables, of its buckets and of its API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.batch.fields import nested
from ragtrace.batch.readers import Reader
from ragtrace.batch.rows import json_text
from ragtrace.batch.spans import raw_span, records_by
from ragtrace.errors import InputError
from ragtrace.ingest.dialects.values import documents_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ragtrace.ingest.base import RawSpan

_KINDS = {"GENERATION": semconv.KIND_LLM, "SPAN": semconv.KIND_CHAIN, "EVENT": semconv.KIND_TOOL}
_ROOT = "trace"  # the span id that stands for the trace itself
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SAME = {"provided_model_name": "model", "start": "start_time", "timestamp": "start_time"}
_NESTED = {"input", "output", "observations"}
_READ = {
    "id", "trace_id", "parent_observation_id", "type", "name", "level", "model", "session_id", "user_id",
    "start_time", "end_time", *_NESTED,
}  # fmt: skip
_TRACE_COLUMNS = {"id", "input", "output"}
_OF_TRACES = {"session_id", "user_id", "bookmarked", "observations", "release"}


def _reads(columns: Collection[str]) -> bool:
    names = {_name(column) for column in columns}
    return {"id", "trace_id", "type"} <= names or ({*_TRACE_COLUMNS} <= names and not names.isdisjoint(_OF_TRACES))


def _spans(given: Mapping[str, Any]) -> Iterator[RawSpan]:
    row = _row(given)
    if not row.get("id"):
        raise InputError("no id")
    yield _span(row)
    for observation in row.get("observations") or ():
        if isinstance(observation, dict) and observation.get("id"):  # a list of ids alone in some exports
            yield _span({"trace_id": row["id"], **_row(observation)})


def _span(row: Mapping[str, Any]) -> RawSpan:
    """Return the span of an observation, or of a trace, which stands above its observations."""
    trace_id = row.get("trace_id")
    shown = row.get("output")
    attributes = {
        semconv.OPENINFERENCE_SPAN_KIND: _kind(row, shown) if trace_id else semconv.KIND_CHAIN,
        semconv.INPUT_VALUE: _plain(row.get("input")),
        semconv.OUTPUT_VALUE: _plain(row.get("output")),
        semconv.SESSION_ID: row.get("session_id"),
        semconv.USER_ID: row.get("user_id"),
        semconv.LLM_MODEL_NAME: row.get("model"),
    }
    return raw_span(
        str(trace_id or row["id"]),
        str(row["id"]) if trace_id else _ROOT,
        (row.get("parent_observation_id") or _ROOT) if trace_id else None,
        attributes,
        name=str(row.get("name") or ""),
        started=row.get("start_time"),
        ended=row.get("end_time"),
        is_error=row.get("level") == "ERROR",
    )


def _kind(row: Mapping[str, Any], output: object) -> str:
    """Return the kind of OpenInference; a span whose output is documents is a search, as in SDKs before 3."""
    kind = str(row.get("type") or "SPAN").upper()
    if kind == "SPAN" and isinstance(output, list) and any(isinstance(item, dict) for item in output):
        documents, malformed = documents_in(output)
        if documents and not malformed and not any("role" in item for item in output if isinstance(item, dict)):
            return semconv.KIND_RETRIEVER
    return _KINDS.get(kind, kind)


def _plain(value: object) -> object:
    """Return a text as it is, and JSON as text: the dialect reads it."""
    return json_text(value) if isinstance(value, dict | list) else value


def _row(given: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column, value in given.items():
        name = _SAME.get(_name(column), _name(column))
        row.setdefault(name, _nested(name, value) if name in _NESTED else value)
    return row


def _nested(name: str, value: object) -> object:
    """Return the list or object of a text; a prompt or an answer may be a text that only begins like one."""
    try:
        return nested(name, value)
    except InputError:
        return value


def _name(column: str) -> str:
    """Return a column in the spelling of exports; the API has capitals, and CSV files of the page have blanks."""
    return _CAMEL.sub("_", column.strip().replace(" ", "_")).lower()


READER = Reader(
    about="Traces and observations of Langfuse: JSON lines, CSV or Parquet of its tables, buckets and API.",
    reads=_reads,
    records=records_by(_spans),
    is_read=lambda column: _SAME.get(_name(column), _name(column)) in _READ,
)
