"""Passages in an application's values: lists of documents, states that hold them, search results, texts.

An application holds what it found in many forms. Which lists are passages is told by their items, of texts by the
name that the frameworks' own chains give such a field.
"""

from __future__ import annotations

import ast
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.capture.content_blocks import text_of
from ragtrace.capture.names import PASSAGE_LISTS, ROLES, SIGNS_OF_RESULTS
from ragtrace.capture.passages import number_of, read_mapping, text_key
from ragtrace.capture.values import HOLDERS, LISTS, Doc, Fields, Turn, fields_of, identity_of
from ragtrace.text import MAX_LITERAL_CHARS, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DEPTH = 3  # of lists in lists, for cyclic ones
_LONGEST_READ_CHARS = 1_000_000  # of a tool's text, to find documents in it
_SHORTEST_PART_CHARS = 16  # of a passage; a shorter text stands in many another


def documents_in(value: object, name: str = "") -> list[Doc] | None:
    """Return the documents in a chain's value: a list of them, or a state that holds such lists.

    The list may hold lists, one for each query, or pairs of a document and its score. Search results that are no
    documents are read as such (see `results_in`); `name` says of which function the value is. None when there are
    no documents; a value that is an empty list says nothing about documents.

    Example:
        >>> documents_in({"question": "?", "docs": [Doc("a")]})
        [Doc(text='a')]
        >>> documents_in([[Doc("a")], []])
        [Doc(text='a')]
        >>> documents_in("text") is None
        True
    """
    if isinstance(value, LISTS):
        return _listed(value, name) or None
    state = fields_of(value)
    return (_held(state, name) or None) if state else None


def lists_in(value: object, name: object = "", depth: int = 0) -> list[list[Doc]]:
    """Return the lists of documents in a chain's value, one by one; `name` is the field's.

    Example:
        >>> one, other = Doc("a"), Doc("b")
        >>> [len(part) for part in lists_in({"question": "?", "found": [[one, other], [one]], "web": [other]})]
        [2, 1, 1]
    """
    if isinstance(value, LISTS):
        parts = [part for part in value if isinstance(part, LISTS)] if is_nested(value) else [value]
        return [documents for part in parts if (documents := _listed(part, name))]
    state = None if depth > _DEPTH else fields_of(value)
    held = ((key, part) for key, part in (state or {}).items() if isinstance(part, HOLDERS))
    return [documents for key, part in held for documents in lists_in(part, key, depth + 1)]


def is_nested(value: object) -> bool:
    """Tell whether a value, or a field of a state, is a list of several lists: one for each query or retriever."""
    if isinstance(value, LISTS):
        return len(value) > 1 and isinstance(value[0], LISTS) and not _is_pair(value[0])
    return any(is_nested(part) for part in (fields_of(value) or {}).values() if isinstance(part, LISTS))


def new_documents(outputs: object, inputs: object, name: str = "") -> list[Doc] | None:
    """Return the documents that a chain gave out, less the lists that it merely handed on from its input.

    An output list that is empty where the input had documents is an empty choice: ``[]``. A tool's message hands on
    its artifact.

    Example:
        >>> docs = [Doc("a"), Doc("b")]
        >>> new_documents({"docs": docs, "top": docs[:1]}, {"docs": docs})
        [Doc(text='a')]
        >>> new_documents([], docs)
        []
    """
    if isinstance(outputs, LISTS):
        is_empty_choice = not outputs and isinstance(inputs, LISTS) and _listed(inputs)
        return [] if is_empty_choice else documents_in(outputs, name)
    made = fields_of(outputs)
    if made is None:
        return _of_artifact(outputs.artifact, name) if type(outputs) is Turn else None
    given = fields_of(inputs)
    return documents_in(made, name) if given is None else _new_in(made, given)


def _of_artifact(artifact: object, name: str) -> list[Doc] | None:
    """Return the documents that a tool gave beside its text; [] of an empty list, which is an empty search."""
    return [] if isinstance(artifact, LISTS) and not artifact else documents_in(artifact, name)


def _new_in(outputs: Mapping[object, object], inputs: Mapping[object, object]) -> list[Doc] | None:
    found: list[Doc] | None = None
    for key, part in outputs.items():
        given = inputs.get(key)
        if part is given:  # as it was: what a step changed in place is another value
            continue
        documents = _held(part, key)
        if documents or (isinstance(part, HOLDERS) and not part and _held(given, key)):
            found = [*(found or ()), *documents]
    return found


def is_documents_only(value: object) -> bool:
    """Tell whether a value consists of documents alone: nothing a reader could take for an answer.

    Example:
        >>> is_documents_only({"docs": [Doc("a")], "answer": "b"})
        False
    """
    state = fields_of(value)
    if state is None:
        return isinstance(value, LISTS) and (not value or bool(_listed(value)))
    return all(isinstance(part, LISTS) and (not part or bool(_listed(part, key))) for key, part in state.items())


def _held(part: object, name: object = "", depth: int = 0) -> list[Doc]:
    """Return the documents in a list, or in the lists that a dict holds; `name` is the field's."""
    if isinstance(part, LISTS):
        return _listed(part, name)
    if not isinstance(part, dict) or depth > _DEPTH:
        return []
    inner = [_held(value, key, depth + 1) for key, value in part.items() if isinstance(value, HOLDERS)]
    return inner[0] if len(inner) == 1 else [document for documents in inner for document in documents]


def _listed(parts: Sequence[Any], name: object = "", depth: int = 0) -> list[Doc]:
    """Return the documents that a list consists of, as its first part tells."""
    first = parts[0] if parts else None
    if type(first) is Doc:
        is_pair = len(parts) == 2 and _is_pair(parts)
        return [] if is_pair else [part if type(part) is Doc else Doc(text_of(part)) for part in parts]
    if not isinstance(first, LISTS):
        return [] if type(first) is Turn else results_in(parts, name if isinstance(name, str) else "")
    if depth > _DEPTH:
        return []
    if _is_pair(first):
        return _scored([pair for pair in parts if _is_pair(pair)])
    if len(first) == 2 and number_of(first[1]) is not None:
        return [] if _are_rows(parts) else _scored_results(parts, name)
    if isinstance(first, tuple) and all(isinstance(one, str) for one in first):  # a row
        return []
    return [document for part in parts if isinstance(part, LISTS) for document in _listed(part, name, depth + 1)]


def _are_rows(parts: Sequence[Any]) -> bool:
    """Tell whether pairs of a text and a number are rows of a database: whole numbers are no scores."""
    pairs = [pair for pair in parts if isinstance(pair, LISTS) and len(pair) == 2]
    return all(isinstance(one, str) and type(number) is int for one, number in pairs)


def _scored_results(parts: Sequence[object], name: object) -> list[Doc]:
    """Return the passages of pairs of a text or mapping and its score."""
    pairs = [pair for pair in parts if isinstance(pair, LISTS) and len(pair) == 2]
    documents = results_in([pair[0] for pair in pairs], name if isinstance(name, str) else "")
    scored = list(zip(documents, (pair[1] for pair in pairs), strict=False))
    return _scored(scored) if len(documents) == len(parts) else documents


def _is_pair(parts: object) -> bool:
    """Tell whether a value is a document and its score, as ``similarity_search_with_score`` returns them."""
    if not isinstance(parts, LISTS) or len(parts) != 2:
        return False
    document, score = parts
    return type(document) is Doc and type(score) is not Doc and number_of(score) is not None


def _scored(pairs: Sequence[tuple[Doc, object]]) -> list[Doc]:
    """Return the documents of pairs, scored where their numbers fall: those that rise are distances."""
    numbers = [number_of(score) or 0.0 for _, score in pairs]
    documents = [document for document, _ in pairs]
    if not (numbers[0] > numbers[-1] and all(one >= other for one, other in pairwise(numbers))):
        return documents
    return [
        replace(document, metadata={**document.metadata, "score": number})
        for document, number in zip(documents, numbers, strict=True)
    ]


def as_documents(items: Iterable[object]) -> list[Doc]:
    """Return what an application names as its documents: documents, scored pairs, mappings, objects or texts.

    Example:
        >>> as_documents(["a", {"id": "d1", "text": "b"}])
        [Doc(text='a'), Doc(text='b', metadata={'id': 'd1'})]
    """
    listed = list(items)
    if listed and all(isinstance(item, LISTS) for item in listed):
        return _listed(listed, "documents")
    return [found for item in listed for found in _named(item)]


def _named(item: object) -> list[Doc]:
    if isinstance(item, str):
        return [Doc(item)]
    return [item] if type(item) is Doc else results_in([item], "documents")


def results_in(parts: Sequence[object], name: str = "") -> list[Doc]:
    """Return the passages that a list of mappings, objects or texts consists of, as documents; [] for other lists.

    Texts count in a field of the name that the frameworks' own chains give it. Mappings and objects need a text
    and, under another name, a sign of a search result: an id, a score, a source.

    Example:
        >>> results_in([{"id": "d1", "text": "Oslo."}])
        [Doc(text='Oslo.', metadata={'id': 'd1'})]
        >>> results_in(["The lab is in Oslo."], "context"), results_in(["Where is the lab?"], "queries")
        ([Doc(text='The lab is in Oslo.')], [])
    """
    first, is_named = parts[0] if parts else None, name in PASSAGE_LISTS
    if isinstance(first, str):
        return _texts(parts) if is_named else []
    if _fields(first) is None:
        return []
    made = (document_of(found, is_named=is_named) for part in parts if (found := _fields(part)) is not None)
    return [document for document in made if document is not None]


def results_met(value: object, seen: Mapping[str, object], texts: Sequence[str] = ()) -> list[Doc] | None:
    """Return a list of texts that were all met before as passages, or stand in one; None for others.

    Example:
        >>> results_met(["Oslo."], {"Oslo.": ()}), results_met(["Rome."], {"Oslo.": ()})
        ([Doc(text='Oslo.')], None)
        >>> results_met(["The lab is in Oslo."], {}, ["Yes. The lab is in Oslo."])
        [Doc(text='The lab is in Oslo.')]
    """
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        return None
    if not all(
        identity_of(one) in seen or (len(one) >= _SHORTEST_PART_CHARS and any(one in text for text in texts))
        for one in value
    ):
        return None
    return [Doc(text) for text in value]


def document_of(fields: Mapping[Any, object], *, is_named: bool = True) -> Doc | None:
    """Return a search result as a document, None where it has no text or is a turn of a conversation.

    Example:
        >>> document_of({"_id": "d1", "_score": 2.5, "_source": {"text": "Oslo."}})
        Doc(text='Oslo.', metadata={'_id': 'd1', '_score': 2.5})
        >>> document_of({"role": "user", "content": "Where?"}) is None
        True
    """
    if "role" in fields or "tool_call_id" in fields or fields.get("type") in ROLES:
        return None
    if not is_named and not any(sign in fields for sign in SIGNS_OF_RESULTS):
        return None
    text, facts = read_mapping(fields)
    if text is None or not text.strip():
        return None
    metadata = {key: value for key, value in facts.items() if isinstance(key, str)}
    return Doc(text, metadata=metadata)


def value_of_text(text: str) -> object:
    """Return the value that a tool's text writes out: JSON, or the ``repr`` of documents and mappings; else None.

    LangChain makes such a text of a tool's list.

    Example:
        >>> value_of_text('[{"id": 1}]')
        [{'id': 1}]
        >>> value_of_text("[Document(page_content='Oslo.')]")
        [Doc(text='Oslo.')]
        >>> value_of_text("In Oslo.") is None
        True
    """
    if len(text) > _LONGEST_READ_CHARS or not text.lstrip().startswith(("[", "{", "Document(")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > MAX_LITERAL_CHARS:
        return None
    try:
        return _literal(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _literal(node: ast.expr) -> object:
    """Return the value of a literal in which calls of ``Document`` may stand."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(part) for part in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _literal(value) for key, value in pairs if key is not None}
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Document":
        facts: dict[str | None, Any] = {part.arg: _literal(part.value) for part in node.keywords}
        return Doc(shown(facts.get("page_content")), facts.get("id"), facts.get("metadata") or {})
    if isinstance(node, ast.Call):  # np.float32(0.5), UUID('...'), datetime.date(2026, 1, 1)
        only = node.args[0] if len(node.args) == 1 and not node.keywords else None
        return only.value if isinstance(only, ast.Constant) else ast.unparse(node)
    return ast.literal_eval(node)


def _texts(parts: Sequence[object]) -> list[Doc]:
    """Return texts as documents; [] where a part is no text."""
    texts = [part for part in parts if isinstance(part, str)]
    return [Doc(text) for text in texts if text.strip()] if len(texts) == len(parts) else []


def _fields(part: object) -> Mapping[Any, Any] | None:
    """Return the fields of a mapping, or of an object that has a text."""
    if type(part) is Fields and text_key(part) is None:
        return None
    return part if isinstance(part, dict) else None
