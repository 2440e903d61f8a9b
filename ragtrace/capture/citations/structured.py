"""Read citations out of structured answers: JSON with the ids, numbers or quotes of its sources."""

from __future__ import annotations

import ast
import json
from typing import Any

TEXT_KEYS = (
    "answer",
    "response",
    "text",
    "sentence",
    "statement",
    "claim",
    "content",
    "output",
    "result",
    "summary",
)
CITING_KEYS = (
    "citations", "citation", "cited_ids", "citation_ids", "cited_sources", "sources", "source_ids", "source_id",
    "source", "references", "refs", "reference_ids", "document_ids", "doc_ids", "documents", "chunk_ids",
    "context_ids", "passage_ids", "passages", "evidence", "quotes", "used_documents", "used_ids", "ids",
)  # fmt: skip
_ID_KEYS = (
    "source_id", "doc_id", "document_id", "chunk_id", "passage_id", "citation_id", "id", "index", "number", "ref",
    "citation", "source", "document", "file", "name", "title", "url",
)  # fmt: skip
_QUOTE_KEYS = ("quote", "quotes", "excerpt", "evidence")
_MOST_CHARS = 65_536
_DEPTH = 3


def parsed(text: str) -> Any:
    """Return the object that a text holds as JSON or as a Python literal, None where it holds none.

    Example:
        >>> parsed('Answer({"answer": "Oslo", "citations": [1]})')
        {'answer': 'Oslo', 'citations': [1]}
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    end = max(text.rfind("}"), text.rfind("]"))
    if start < 0 or end <= start or len(text) > _MOST_CHARS:
        return None
    inside = text[start : end + 1]
    for read in (json.loads, ast.literal_eval):
        try:
            return read(inside)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def statements(value: Any, depth: int = 0) -> list[tuple[str, list[Any]]]:
    """Return texts with what each of them cites, from an object with such fields.

    Example:
        >>> statements({"answer": "Oslo", "citations": [{"source_id": 2, "quote": "in Oslo"}]})
        [('Oslo', [{'source_id': 2, 'quote': 'in Oslo'}])]
    """
    if depth > _DEPTH:
        return []
    if isinstance(value, list):
        return [one for item in value if isinstance(item, dict) for one in statements(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), None)
    cited = next((value[key] for key in CITING_KEYS if key in value and value[key] is not None), None)
    if text is not None and cited is not None:
        return [(text, cited if isinstance(cited, list) else [cited])]
    return [one for item in value.values() if isinstance(item, list | dict) for one in statements(item, depth + 1)]


def label_and_quote(item: Any) -> tuple[str, str]:
    """Return the label and the quote of one citation, "" for what it has not.

    Example:
        >>> label_and_quote({"source_id": 2, "quote": "in Oslo"}), label_and_quote("faq.md")
        (('2', 'in Oslo'), ('faq.md', ''))
    """
    if isinstance(item, str | int):
        return str(item), ""
    if not isinstance(item, dict):
        return "", ""
    label = next((item[key] for key in _ID_KEYS if isinstance(item.get(key), str | int)), "")
    quote = next((item[key] for key in _QUOTE_KEYS if isinstance(item.get(key), str)), "")
    return str(label), quote
