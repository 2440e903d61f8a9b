"""Passages in an application's values: lists of documents, states that hold them, search results, texts.

An application holds what it found in many forms. Which lists are passages is told by their items, else by the name
of the field or the function that holds them.
"""

from __future__ import annotations

import ast
import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.capture.evidence import Rows, rows_in
from ragtrace.capture.messages import ROLES
from ragtrace.capture.passages import ID_KEYS, RERANK_SCORE_KEYS, number_of, read_mapping, text_key
from ragtrace.capture.values import HOLDERS, LISTS, Doc, Fields, Turn, fields_of, identity_of, text_of
from ragtrace.text import MAX_LITERAL_CHARS, MAX_NAME_CHARS, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DEPTH = 3  # of lists in lists, for cyclic ones
_LONGEST_READ_CHARS = 1_000_000  # of a tool's text, to find documents in it
# Names of a state's field, or of a function, whose list holds passages.
_HOLDS_PASSAGES = re.compile(  # of at most 256 characters
    r"(?:^|[_\W])(?:docs?|documents?|contexts?|chunks?|passages?|sources?|results?|hits|matches|snippets?|excerpts?"
    r"|evidence|retriev\w*|search\w*|lookup\w*|fetch\w*)(?:$|[_\W])",
    re.IGNORECASE,
)
# Names of a field whose text is a context, its passages joined.
_HOLDS_CONTEXT = re.compile(  # of at most 256 characters
    r"^(?:\w+_)?(?:contexts?|docs|documents|passages|chunks|snippets|excerpts|evidence|knowledge)$"
    r"|^(?:search|web|retriev\w*|sql|cypher|query|db|database)_(?:results?|text|contents?)$"
    r"|^(?:\w+_)?(?:rows|records|dataframe)$",
    re.IGNORECASE,
)
_MARKDOWN_TABLE = re.compile(r"\s*\|[^\n]*\|[ \t]*\n[ \t]*\|[-:| \t]+\|")
_TABLE_HEAD_CHARS = 2_000
_TABLE_HEAD_LINES = 5
_SHORTEST_CONTEXT_CHARS = 40
_SHORTEST_PART_CHARS = 16  # of a passage; a shorter text stands in many another
_LINK = re.compile(r"[^.!?。]{0,160}\bhttps?://\S++[\W\d]*")  # a title and its address
_ADDRESS = re.compile(r"https?://\S+")
# Names of a field whose text the program wrote for its model.
_WRITTEN = re.compile(  # of at most 256 characters
    "prompt|instruct|system|persona|role|style|tone|format|anweisung|vorgabe", re.IGNORECASE
)
# Names of a field whose list holds something else, though it may look alike: turns, plans, examples.
_HOLDS_OTHERS = re.compile(  # of at most 256 characters
    r"messages?|histor|conversation|chat|todo|tasks?|plan|steps?|quer|question|example|section|feedback|comment"
    r"|tool_calls?|events?|terms?|keyword|topic|title|generat|expan|rewrit",
    re.IGNORECASE,
)
_SIGNS = frozenset(
    (
        *ID_KEYS,
        *RERANK_SCORE_KEYS,
        "metadata",
        "payload",
        "_source",
        "url",
        "link",
        "source",
        "title",
        "file",
        "page",
    )
)


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
        return documents_in(outputs.artifact, name) if type(outputs) is Turn else None
    given = fields_of(inputs)
    return documents_in(made, name) if given is None else _new_in(made, given)


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
    if isinstance(first, tuple) and all(isinstance(one, str) and not _is_long(one) for one in first):  # a row
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

    Texts count where `name`, of the field or function that holds them, says what they are. Mappings and objects
    need a text and, under another name, a sign of a search result: an id, a score, a source.

    Example:
        >>> results_in([{"id": "d1", "text": "Oslo."}])
        [Doc(text='Oslo.', metadata={'id': 'd1'})]
        >>> results_in(["The lab is in Oslo."], "context"), results_in(["Where is the lab?"], "queries")
        ([Doc(text='The lab is in Oslo.')], [])
    """
    first = parts[0] if parts else None
    if isinstance(first, str):
        return _texts(parts) if holds_passages(name) else []
    fields = _fields(first)
    if fields is None or _HOLDS_OTHERS.search(name[:MAX_NAME_CHARS]):
        return []
    is_named = holds_passages(name)
    made = (document_of(found, is_named=is_named) for part in parts if (found := _fields(part)) is not None)
    return [document for document in made if document is not None]


def _is_link(text: str) -> bool:
    """Tell whether a text consists of titles with addresses, which say nothing themselves.

    Example:
        >>> _is_link("* Layers : https://layer.example"), _is_link("See https://a.example. It is 4 m deep.")
        (True, False)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_LINK.fullmatch(line.strip()) for line in lines)


def holds_passages(name: str) -> bool:
    """Tell whether a name of a field or a function says that its list holds passages.

    Example:
        >>> [holds_passages(name) for name in ("retrieved_docs", "web_results", "plan", "sub_queries")]
        [True, True, False, False]
    """
    name = name[:MAX_NAME_CHARS]
    return _HOLDS_PASSAGES.search(name) is not None and _HOLDS_OTHERS.search(name) is None


def contexts_in(value: object, name: str, given: object) -> list[tuple[str, str]]:
    """Return the joined contexts in what a step gave out, each with its name: of the field, else of the step.

    Example:
        >>> contexts_in("The lab is in Oslo, at Karl Johans gate 22.", "retrieve", None)
        [('retrieve', 'The lab is in Oslo, at Karl Johans gate 22.')]
    """
    if isinstance(value, str):
        return [(name, value)] if _is_long(value) and holds_passages(name) else []
    if not isinstance(value, dict):
        return []
    before = given if isinstance(given, dict) else {}
    texts = ((key, text) for key, text in value.items() if isinstance(text, str) and isinstance(key, str))
    return [
        (key, text)
        for key, text in texts
        if _HOLDS_CONTEXT.search(key[:MAX_NAME_CHARS]) and _is_long(text) and before.get(key) is not text
    ]


def pages_in(value: object, name: str, given: object) -> list[tuple[str, str]]:
    """Return the texts that a step gave out which was given an address, each with its name: pages that it read.

    Example:
        >>> pages_in({"body": "The lab is in Oslo, at Karl Johans gate 22."}, "load", {"site": "https://lab.example"})
        [('body', 'The lab is in Oslo, at Karl Johans gate 22.')]
        >>> pages_in({"body": "The lab is in Oslo, at Karl Johans gate 22."}, "load", {"site": "the lab's"})
        []
    """
    before = fields_of(given) or {}
    if not any(map(_is_address, before.values() if before else (given,))):
        return []
    made = {name: value} if isinstance(value, str) else fields_of(value) or {}
    known = [one for one in before.values() if isinstance(one, str) and _is_long(one)]
    return [
        (str(key), text)
        for key, part in made.items()
        if part is not before.get(key)
        and not any(words.search(str(key)[:MAX_NAME_CHARS]) for words in (_HOLDS_OTHERS, _WRITTEN))
        for text in _texts_held(part)
        if _is_long(text) and not _is_link(text) and not any(one in text for one in known)
    ]


def _is_address(part: object) -> bool:
    """Tell whether a value is an address, or a list of some."""
    parts = part if isinstance(part, LISTS) and part else [part]
    return all(isinstance(one, str) and _ADDRESS.fullmatch(one.strip()) is not None for one in parts)


def _texts_held(part: object) -> list[str]:
    """Return a text, or the texts of a list or of a mapping, as of pages by their addresses."""
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, LISTS) else [part]
    return [one for one in parts if isinstance(one, str)]


def _is_long(text: str) -> bool:
    return len(text) >= _SHORTEST_CONTEXT_CHARS and " " in text


def rows_held(part: object, name: str) -> list[Rows]:
    """Return the rows of databases in a field of a state, or in a function's output; [] where they are passages.

    Example:
        >>> rows_held("[('Oslo', 12)]", "result")[0].forms[0]
        "[('Oslo', 12)]"
    """
    if isinstance(part, str):
        if _is_table(part):
            return [Rows(name, (part.strip(),), (), is_named=False)]
        if not part.lstrip().startswith(("[(", "[{", "[[")):
            return []
        value = value_of_text(part)
        if value is None:  # a date among the values, for instance
            return [Rows(name, (part,), (), is_named=True)] if part.lstrip().startswith("[(") else []
        return [rows._replace(forms=(part, *rows.forms)) for rows in rows_held(value, name)]
    if isinstance(part, list | tuple):
        first = part[0] if part else None
        if not isinstance(first, dict | list | tuple) or (isinstance(first, dict) and results_in(part, name)):
            return []
        return rows_in(part, name)
    return rows_in(part, name) if isinstance(part, dict) else []


def _is_table(text: str) -> bool:
    """Tell whether a text writes out a table: in Markdown, or as comma, semicolon or tab separated values."""
    if _MARKDOWN_TABLE.match(text):
        return True
    lines = [
        line
        for line in text[:_TABLE_HEAD_CHARS].strip().split("\n", _TABLE_HEAD_LINES)[:_TABLE_HEAD_LINES]
        if line.strip()
    ]
    return len(lines) > 1 and any(
        lines[0].count(mark) > 0
        and len({line.count(mark) for line in lines}) == 1
        and not any(f"{mark} " in line or line.rstrip().endswith(mark) for line in lines)
        for mark in ",;\t"
    )


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
    if not is_named and not any(sign in fields for sign in _SIGNS):
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
    """Return texts as documents, [] where they are names, addresses or titles with addresses."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts) or not any(len(text.split(None, 1)) > 1 for text in texts):
        return []
    return [] if all(map(_is_link, texts)) else [Doc(text) for text in texts if text.strip()]


def _fields(part: object) -> Mapping[Any, Any] | None:
    """Return the fields of a mapping, or of an object that has a text."""
    if type(part) is Fields and text_key(part) is None:
        return None
    return part if isinstance(part, dict) else None
