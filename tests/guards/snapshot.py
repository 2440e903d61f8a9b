"""Turns the records, spans and scores of runs into JSON that a person reads in a diff, and compares it with a file.

Ids are names, and times are left out. A JSON text is a value with sorted keys, under its attribute's name with
``(JSON)``. The text of a passage is in ``texts``, and its name is wherever the text was.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

from ragtrace.testing.comparing import facts_of
from tests.guards.setting_up import scores_of

FOLDER = Path(__file__).parent / "snapshots"
WRITES = "RAGTRACE_WRITE_SNAPSHOTS"
WIDTH = 140
MOST_TEXT = 2_000  # characters; a longer text is shown by its beginning and the hash of all of it
MOST_ITEMS = 16  # of a list; a longer one is shown by its first two, its last and the hash of all of it
MOST_RUNS = 6  # likewise
LEAST_NAMED = 16  # characters of a passage that has a name in other texts
TIMES = {"gen_ai.response.time_to_first_chunk"}
SHOWN_OF_SCORES = ("state", "value", "passed", "reason", "k", "universe", "label_scale", "details")
EMPTY = (None, (), {})
# Facts of a record that are shown only where they are not as usual.
USUAL = {
    "is_answer_given": True,
    "is_answer_expected": True,
    "is_refused": False,
    "head_probability": 1.0,
    "revision": 0,
}
ABSENT = "(absent)"
LONG_NUMBER = re.compile(r"\b\d+\.\d{13,}\b")  # its last digits are those of this processor's linear algebra


def holds(name, captured):
    """Compare what was captured in each variant of an application with its file, or write the file.

    Args:
        name: of the file below ``snapshots``, without its ending.
        captured: recordings of each variant, by the variant's name.
    """
    text = shown(_together({variant: _Variant().runs(kept) for variant, kept in captured.items()})) + "\n"
    path = FOLDER / f"{name}.json"
    if os.environ.get(WRITES):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    text, before = (LONG_NUMBER.sub(lambda found: f"{float(found[0]):.12g}", one) for one in (text, before))
    if text != before:
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), "expected", "got", lineterm="", n=1)
        hint = f"{path.relative_to(FOLDER)} differs; if it should, write it with {WRITES}=1 and say why"
        raise AssertionError("\n".join([hint, *list(lines)[:80]]))


def _together(variants):
    """Return what the first variant left, and for the others the places in which they differ from it."""
    (first, base), *others = variants.items()
    texts = {}
    base = _readable(base, texts)
    differing = {}
    for variant, runs in others:
        places = differences(base, _readable(runs, texts), "runs")
        differing.setdefault(json.dumps(places), (places, []))[1].append(variant)
    return {
        "as": first,
        "the same": [variant for places, names in differing.values() if not places for variant in names],
        "texts": {name: _cut(text) for text, name in texts.items()},
        "runs": base,
        "differs": [{"as": names, "at": places} for places, names in differing.values() if places],
    }


def differences(base, other, place):
    """Return the places in which a value differs from another, with what is there."""
    if isinstance(base, dict) and isinstance(other, dict):
        names = [*base, *(name for name in other if name not in base)]
        parts = [(f"{place}.{name}", base.get(name, ABSENT), other.get(name, ABSENT)) for name in names]
    elif isinstance(base, list) and isinstance(other, list) and len(base) == len(other):
        pairs = zip(base, other, strict=True)
        parts = [(f"{place}[{number}]", one, two) for number, (one, two) in enumerate(pairs)]
    else:
        return {} if json.dumps(base) == json.dumps(other) else {place: other}
    found = {at: value for path, one, two in parts for at, value in differences(one, two, path).items()}
    if isinstance(base, dict) and [name for name in base if name in other] != [
        name for name in other if name in base
    ]:
        found[f"{place} in this order"] = list(other)
    return found


def shown(value, indent=0):
    """Return JSON of which each part that fits is on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or indent + len(flat) <= WIDTH:
        return flat
    within, pad = indent + 2, " " * (indent + 2)
    if isinstance(value, list):
        return "[\n" + ",\n".join(pad + shown(one, within) for one in value) + f"\n{' ' * indent}]"
    named = [f"{pad}{json.dumps(name, ensure_ascii=False)}: {shown(one, within)}" for name, one in value.items()]
    return "{\n" + ",\n".join(named) + f"\n{' ' * indent}}}"


class _Variant:
    """What one variant left, with names for its ids: a span's own name, and a number for a trace."""

    def __init__(self):
        self._names = {}

    def runs(self, recordings):
        """Return runs in the order of their questions, each with its record, spans and scores."""
        found = []
        for kept in recordings:
            traces = {}
            for span in kept.spans:
                traces.setdefault(f"{span.context.trace_id:032x}", []).append(span)
            records = sorted(kept.records, key=lambda record: record.query or "")
            for record, scores in zip(records, scores_of(records), strict=True):
                found.append(self._run(len(found) + 1, record, _in_tree(traces.pop(record.trace_id)), scores))
            assert not traces, f"spans without a record: {traces}"
        return found

    def _run(self, number, record, spans, scores):
        counts = Counter()
        for span in spans:
            counts[span.name] += 1
            again = f" #{counts[span.name]}" if counts[span.name] > 1 else ""
            self._names[f"{span.context.span_id:016x}"] = f"{span.name}{again}"
        self._names[record.trace_id] = f"trace-{number}"
        identity = {name: getattr(record, name) for name in ("id", "trace_id", "span_id")}
        return {
            "record": self._plain(identity | _rows(record)),
            "spans": {self._names[f"{span.context.span_id:016x}"]: self._span(span) for span in spans},
            "scores": self._plain({name: _score(score) for name, score in scores.items()}),
        }

    def _span(self, span):
        scope = span.instrumentation_scope.name
        facts = {
            "parent": f"{span.parent.span_id:016x}" if span.parent else None,
            "kind": span.kind.name,
            "status": span.status.status_code.name,
            "description": span.status.description,
            "attributes": _attributes(span.attributes),
            "events": [{"name": one.name, "attributes": _attributes(one.attributes)} for one in span.events],
            "links": [f"{one.context.trace_id:032x} {one.context.span_id:016x}" for one in span.links],
            "dropped": span.dropped_attributes + span.dropped_events + span.dropped_links,
            "scope": None if scope == "ragtrace" else scope,
        }
        return {name: self._plain(value) for name, value in facts.items() if value not in (None, [], 0)}

    def _plain(self, value):
        """Return JSON's values with sorted keys, and names for ids."""
        if isinstance(value, str):
            for one, name in self._names.items():
                value = value.replace(one, name)
            return value
        if is_dataclass(value) or hasattr(value, "__struct_fields__"):
            value = {name: part for name in _fields(value) if (part := getattr(value, name)) not in EMPTY}
        if isinstance(value, Mapping):
            return {name: self._plain(part) for name, part in sorted(value.items())}
        if isinstance(value, list | tuple):
            return [self._plain(part) for part in value]
        assert value is None or isinstance(value, bool | int | float), repr(value)
        return value


def _fields(value):
    return [one.name for one in fields(value)] if is_dataclass(value) else value.__struct_fields__


def _rows(record):
    """Return the facts of a record that are not empty or as usual, with a row for each passage."""
    found = {}
    for name, value in facts_of(record).items():
        of_passage = re.fullmatch(r"(\w+)\[(\d+)\]\.(\w+)", name)
        if of_passage:
            stage, place, fact = of_passage.groups()
            rows = found.setdefault(stage, [])
            if len(rows) < int(place):
                rows.append({})
            if value not in EMPTY and (fact, value) != ("truncated", 0):
                rows[-1][fact] = value
        elif value not in EMPTY and value != USUAL.get(name, ABSENT) and not name.endswith(".length"):
            found[name] = value
    return found


def _score(score):
    return {name: score[name] for name in SHOWN_OF_SCORES if score.get(name) is not None}


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _attributes(given):
    """Return attributes by name, with JSON texts as values."""
    found = {}
    for name, value in (given or {}).items():
        is_json, value = _read(value)  # noqa: PLW2901 - what it holds
        if isinstance(value, str) and _UUID.fullmatch(value):  # LlamaIndex draws one for a call of a ReAct agent
            value = "(UUID)"  # noqa: PLW2901
        found[f"{name} (JSON)" if is_json else name] = "(time)" if name in TIMES else value
    return found


def _read(value):
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return True, _values(json.loads(value))
        except ValueError:
            return False, value
    return False, value


def _values(value):
    if isinstance(value, dict):
        return _attributes(value)
    return [_values(one) for one in value] if isinstance(value, list) else value


def _in_tree(spans):
    """Return spans with each behind its parent, and siblings in the order in which they began."""
    below = {}
    for span in sorted(spans, key=lambda span: (span.start_time, span.name)):
        below.setdefault(span.parent.span_id if span.parent else None, []).append(span)

    def under(parent):
        for span in below.get(parent and parent.context.span_id, ()):
            is_within = parent is None or parent.start_time <= span.start_time <= span.end_time <= parent.end_time
            assert is_within, f"{span.name} is not within the time of {parent.name}"
            yield span
            yield from under(span)

    found = list(under(None))
    assert len(found) == len(spans), "a span is in no tree"
    return found


def _readable(runs, texts):
    """Return runs with a name in place of each passage's text, and without the middle of long lists and texts.

    Names of new texts are added to `texts`.
    """
    runs = _short(runs, MOST_RUNS)
    for passage in _passages(runs):
        text = passage.get("text", "")
        if len(text) >= LEAST_NAMED and text not in texts:
            name = passage["id"] if len(passage["id"]) < 40 else passage["id"][:16]
            number = sum(one == name or one.startswith(f"{name} #") for one in texts.values())
            texts[text] = f"{name} #{number + 1}" if number else name
    return _named(runs, sorted(texts.items(), key=lambda one: -len(one[0])))


def _passages(runs):
    records = [run["record"] for run in runs if isinstance(run, dict)]
    pools = [record[stage] for record in records for stage in record.get("stages", ()) if stage in record]
    return [passage for pool in pools for passage in pool if isinstance(passage, dict)]


def _named(value, texts):
    if isinstance(value, str):
        for text, name in texts:
            value = value.replace(text, f"<{name}>")
        return _cut(value)
    if isinstance(value, dict):
        return {name: _named(part, texts) for name, part in value.items()}
    return [_named(part, texts) for part in value] if isinstance(value, list) else value


def _cut(text):
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT // 4]}... {len(text)} characters, {_hash(text)}"


def _short(value, most=MOST_ITEMS):
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > most:
        return [*map(_short, value[:2]), f"... {len(value)} items, {_hash(value)}", _short(value[-1])]
    return [_short(part) for part in value]


def _hash(value):
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
