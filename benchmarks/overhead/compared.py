"""The spans of two commits side by side: every attribute, JSON texts as values, without ids and times."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

TIMES = {"gen_ai.response.time_to_first_chunk"}


def as_values(spans: Iterable[Any]) -> list[list[dict[str, Any]]]:
    """Return the SDK's spans by trace, each as what two commits must have alike."""
    spans = sorted(spans, key=lambda span: (span.start_time, span.name))
    names = {span.context.span_id: span.name for span in spans}
    traces: dict[int, list[dict[str, Any]]] = {}
    for span in spans:
        shown = {
            "name": span.name,
            "parent": names.get(span.parent.span_id) if span.parent else None,
            "kind": span.kind.name,
            "status": f"{span.status.status_code.name} {span.status.description or ''}",
            "links": len(span.links),
            **{f"event {event.name}: {name}": value for event in span.events for name, value in _facts(event)},
            **dict(_facts(span)),
        }
        traces.setdefault(span.context.trace_id, []).append(shown)
    return sorted(traces.values(), key=json.dumps)


def hash_of(spans: Iterable[Any]) -> str:
    """Return a hash that two candidates have alike whose spans have equal names, parents and attributes."""
    return hashlib.sha256(json.dumps(as_values(spans), sort_keys=True).encode()).hexdigest()


def differences(ours: list[list[dict[str, Any]]], before: list[list[dict[str, Any]]]) -> Iterator[str]:
    """Yield a line for every value that only one side has."""
    for trace, (our_spans, their_spans) in enumerate(zip_longest(ours, before, fillvalue=[])):
        for one, other in zip_longest(our_spans, their_spans, fillvalue={}):
            for name in sorted({*one, *other}):
                if one.get(name) != other.get(name):
                    where = f"trace {trace}, {one.get('name') or other.get('name')}"
                    yield f"{where}, {name}: {str(other.get(name))[:60]} before, {str(one.get(name))[:60]} now"


def _facts(of: Any) -> Iterator[tuple[str, Any]]:
    for name, value in (of.attributes or {}).items():
        yield name, "(time)" if name in TIMES else _value(value)


def _value(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return {"JSON": json.loads(value)}
        except ValueError:
            return value
    return list(value) if isinstance(value, tuple) else value
