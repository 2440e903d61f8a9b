"""The JSON Schema of one line of a record file, as ``ragtrace schema`` prints it."""

from __future__ import annotations

from typing import Any, get_args

from ragtrace.model.codec import ALIASES, SCHEMA_ID
from ragtrace.model.record import LabelScale, LabelScope, Outcome


def _text(doc: str) -> dict[str, Any]:
    return {"type": "string", "description": doc}


def _passages(doc: str) -> dict[str, Any]:
    return {"type": "array", "description": doc, "items": {"$ref": "#/$defs/passage"}}


_PASSAGE: dict[str, Any] = {
    "description": "A passage: its text alone, or an object.",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "id": {"type": ["string", "number"], "description": "Stable id; default a hash of the text."},
                "text": _text("The passage (also read as 'content')."),
                "score": {"type": ["number", "null"], "description": "Score of the stage the passage stands in."},
                "source": _text("The index it came from."),
                "metadata": {"type": "object", "description": "Facts the application attached."},
                "truncated": {"type": "integer", "description": "Original length in characters if text was cut."},
            },
        },
    ],
}
_GRADES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 5},
}

_STRATA: dict[str, Any] = {
    "type": "array",
    "description": "The parts of the corpus behind the universe 'stratified', of each of which some were graded.",
    "items": {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 0, "description": "Passages in it."},
            "labelled": {"type": "integer", "minimum": 0, "description": "Passages of it that were graded."},
            "counts": {"type": "object", "description": "How many of these have each grade, 5 to 1."},
        },
        "required": ["size", "labelled", "counts"],
    },
}


def _aliases() -> dict[str, Any]:
    """Return the fields that ragas and DeepEval write, each described by the field it is read as."""
    kinds = {"contexts": {"type": ["array", "string"]}}
    return {
        alias: {**kinds.get(field, {"type": "string"}), "description": f"Read as {field!r} where that is missing."}
        for field, aliases in ALIASES.items()
        for alias in aliases
    }


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": SCHEMA_ID,
    "title": "One RAG run, as one line of JSON",
    "description": "Every field is optional; a metric that needs a missing one is 'na' with the reason.",
    "type": "object",
    "properties": {
        "schema": {"const": SCHEMA_ID, "description": "Version of this form; this one where it is missing."},
        "id": {"type": ["string", "number"], "description": "The caller's id; default the line number."},
        "query": _text("The question."),
        "answer": _text("The whole answer; a blank one is of an application that answered nothing."),
        "is_answer_expected": {
            "type": "boolean",
            "description": "False for a retrieval alone, where no model spoke; default true.",
        },
        "is_refused": {
            "type": "boolean",
            "description": "True where the provider declined to answer, or its filter stopped the answer.",
        },
        "contexts": _passages("What the model was given, in its order."),
        "pool": _passages("The candidates that were retrieved, best first."),
        "selection": _passages("What a reranker chose of them, best first."),
        "reference": _text("A reference answer."),
        "labels": {
            "description": "Relevance grades 1 to 5 by passage id: a plain object (gold), or with their universe.",
            "anyOf": [
                _GRADES,
                {
                    "type": "object",
                    "properties": {
                        "grades": _GRADES,
                        "universe": {"enum": list(get_args(LabelScope))},
                        "scale": {"enum": list(get_args(LabelScale))},
                        "version": _text("Version of the label set."),
                        "query": _text("The query that was graded for, where it may be another than this one."),
                        "strata": _STRATA,
                    },
                    "required": ["grades"],
                },
            ],
        },
        "answer_parts": {
            "type": "array",
            "description": "Sentences of the answer with the passage ids they cite.",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "citations": {"type": "array"}},
            },
        },
        "history": {
            "type": "array",
            "description": "Turns before the question, oldest first.",
            "items": {
                "type": "object",
                "properties": {"role": {"type": "string"}, "content": {"type": "string"}},
            },
        },
        "k": {"type": "integer", "description": "Cut-off of @K metrics; default the number of contexts."},
        "workflow": _text("Name of the application or chain."),
        "session": _text("Conversation id."),
        "user": _text("End user's id."),
        "environment": _text("Deployment name."),
        "corpus": _text("Name of the index."),
        "corpus_version": _text("Its version."),
        "model": _text("The model that answered."),
        "usage": {
            "type": "object",
            "description": "Its tokens.",
            "properties": {
                "input_tokens": {"type": "integer", "description": "All input, cached tokens included."},
                "output_tokens": {"type": "integer", "description": "All output, reasoning included."},
                "cache_read_tokens": {"type": "integer"},
                "cache_write_tokens": {"type": "integer"},
                "reasoning_tokens": {"type": "integer"},
            },
        },
        "feedback": {
            "type": "array",
            "description": "What people said of the answer.",
            "items": {
                "type": "object",
                "properties": {
                    "value": {"type": "number", "minimum": 0, "maximum": 1},
                    "comment": {"type": ["string", "null"]},
                    "source": {"type": "string"},
                },
                "required": ["value"],
            },
        },
        "outcome": {
            "enum": list(get_args(Outcome)),
            "description": "How the run ended; answers of other outcomes are not judged.",
        },
        "interrupt": _text("What an interrupted run waits for."),
        "started": {"type": "number", "description": "Unix seconds."},
        "ended": {"type": "number", "description": "Unix seconds."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Free labels."},
        "metadata": {"type": "object", "description": "Facts of the request that `span_metadata` names."},
        "trace_id": _text("32 hex digits, where the record was a trace."),
        "span_id": _text("16 hex digits of its root span."),
        "head_probability": {"type": ["number", "null"], "description": "Probability with which it reached us."},
        "selection_source": _text("explicit, framework, retriever, chain or prompt."),
        "revision": {"type": "integer", "description": "Counts late changes of the same trace."},
        "lossy": {"type": "object", "description": "What was cut or lost, by kind."},
        **_aliases(),
    },
    "$defs": {"passage": _PASSAGE},
}
