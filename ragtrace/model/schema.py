"""The JSON Schema of one line of a record file, as ``ragtrace schema`` prints it."""

from __future__ import annotations

from typing import Any

import msgspec

from ragtrace.model.codec import ALIASES
from ragtrace.model.line import SCHEMA_ID, RecordLine


def _aliases(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that ragas and DeepEval write, each described by the field it is read as."""
    return {
        alias: {**properties[field], "description": f"Read as {field!r} where that is missing."}
        for field, aliases in ALIASES.items()
        for alias in aliases
    }


def _short(form: Any) -> Any:
    """Return a form with one list in place of forms that are types alone, and without the default null."""
    if isinstance(form, list):
        return [_short(item) for item in form]
    if not isinstance(form, dict):
        return form
    short = {name: _short(item) for name, item in form.items() if (name, item) != ("default", None)}
    kinds = short.get("anyOf", ())
    if kinds and all(kind.keys() == {"type"} for kind in kinds):
        del short["anyOf"]
        short["type"] = [kind["type"] for kind in kinds]
    return short


def _schema() -> dict[str, Any]:
    """Return the schema of a line; what is read before the types see it is added."""
    _, made = msgspec.json.schema_components([RecordLine], ref_template="#/$defs/{name}")
    forms = _short(made)
    line = forms.pop("RecordLine")
    properties = line["properties"]
    grades = forms["LabelsLine"]["properties"]["grades"]
    properties["labels"]["anyOf"].insert(0, grades)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **line,
        "title": "One RAG run, as one line of JSON",
        "properties": properties | _aliases(properties),
        "$defs": forms,
    }


SCHEMA: dict[str, Any] = _schema()
