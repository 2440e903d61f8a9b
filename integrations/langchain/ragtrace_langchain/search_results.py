"""Search results that are not LangChain documents: mappings, objects with fields, texts."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from ragtrace.capture import ID_KEYS, RERANK_SCORE_KEYS, read_mapping, text_key
from ragtrace.capture.evidence import Rows, rows_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LONGEST_READ_CHARS = 1_000_000  # of a tool's text, to find documents in it
# Names of a state's field, or of a function, whose list holds passages.
_HOLDS_PASSAGES = re.compile(
    r"(?:^|[_\W])(?:docs?|documents?|contexts?|chunks?|passages?|sources?|results?|hits|matches|snippets?|excerpts?"
    r"|evidence|retriev\w*|search\w*|lookup\w*|fetch\w*)(?:$|[_\W])",
    re.IGNORECASE,
)
# Names of a field whose text is a context, its passages joined.
_HOLDS_CONTEXT = re.compile(
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
# Names of a field whose list holds something else, though it may look alike: turns, plans, examples.
_HOLDS_OTHERS = re.compile(
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
_TURNS = frozenset(("human", "ai", "system", "tool", "user", "assistant", "function", "developer"))


class SearchResult(Document):
    """A passage that the application holds as a mapping, an object or a text."""


def results_in(parts: Sequence[object], name: str = "") -> list[Document]:
    """Return the passages that a list of mappings, objects or texts consists of, as documents; [] for other lists.

    Texts count where `name`, of the field or function that holds them, says what they are. Mappings and objects
    need a text and, under another name, a sign of a search result: an id, a score, a source.

    Example:
        >>> results_in([{"id": "d1", "text": "Oslo."}])
        [SearchResult(metadata={'id': 'd1'}, page_content='Oslo.')]
        >>> results_in(["The lab is in Oslo."], "context"), results_in(["Where is the lab?"], "queries")
        ([SearchResult(metadata={}, page_content='The lab is in Oslo.')], [])
    """
    first = parts[0] if parts else None
    if isinstance(first, str):
        return _texts(parts) if holds_passages(name) else []
    fields = _fields(first)
    if fields is None or _HOLDS_OTHERS.search(name):
        return []
    is_named = holds_passages(name)
    made = (document_of(found, is_named=is_named) for part in parts if (found := _fields(part)) is not None)
    return [document for document in made if document is not None]


def holds_passages(name: str) -> bool:
    """Tell whether a name of a field or a function says that its list holds passages.

    Example:
        >>> [holds_passages(name) for name in ("retrieved_docs", "web_results", "plan", "sub_queries")]
        [True, True, False, False]
    """
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
    return [(k, t) for k, t in texts if _HOLDS_CONTEXT.search(k) and _is_long(t) and before.get(k) is not t]


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


def results_met(value: object, seen: Mapping[str, object], texts: Sequence[str] = ()) -> list[Document] | None:
    """Return a list of texts that were all met before as passages, or stand in one; None for others.

    Example:
        >>> results_met(["Oslo."], {"Oslo.": ()}), results_met(["Rome."], {"Oslo.": ()})
        ([SearchResult(metadata={}, page_content='Oslo.')], None)
        >>> results_met(["The lab is in Oslo."], {}, ["Yes. The lab is in Oslo."])
        [SearchResult(metadata={}, page_content='The lab is in Oslo.')]
    """
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        return None
    if not all(
        one in seen or (len(one) >= _SHORTEST_PART_CHARS and any(one in text for text in texts)) for one in value
    ):
        return None
    return [SearchResult(page_content=text) for text in value]


def document_of(fields: Mapping[Any, object], *, is_named: bool = True) -> SearchResult | None:
    """Return a search result as a document, None where it has no text or is a turn of a conversation.

    Example:
        >>> document_of({"_id": "d1", "_score": 2.5, "_source": {"text": "Oslo."}})
        SearchResult(metadata={'_id': 'd1', '_score': 2.5}, page_content='Oslo.')
        >>> document_of({"role": "user", "content": "Where?"}) is None
        True
    """
    if "role" in fields or "tool_call_id" in fields or fields.get("type") in _TURNS:
        return None
    if not is_named and not any(sign in fields for sign in _SIGNS):
        return None
    text, facts = read_mapping(fields)
    if text is None or not text.strip():
        return None
    metadata = {key: value for key, value in facts.items() if isinstance(key, str)}
    return SearchResult(page_content=text, metadata=metadata)


def value_of_text(text: str) -> object:
    """Return the value that a tool's text writes out: JSON, or the ``repr`` of documents and mappings; else None.

    LangChain makes such a text of a tool's list.

    Example:
        >>> value_of_text('[{"id": 1}]')
        [{'id': 1}]
        >>> value_of_text(str([Document(page_content="Oslo.")]))
        [Document(metadata={}, page_content='Oslo.')]
        >>> value_of_text("In Oslo.") is None
        True
    """
    if len(text) > _LONGEST_READ_CHARS or not text.lstrip().startswith(("[", "{", "Document(")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
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
        return Document(**{part.arg: ast.literal_eval(part.value) for part in node.keywords if part.arg})
    return ast.literal_eval(node)


def _texts(parts: Sequence[object]) -> list[Document]:
    """Return texts as documents, [] where they are names or addresses: no text of theirs has two words."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts) or not any(len(text.split(None, 1)) > 1 for text in texts):
        return []
    return [SearchResult(page_content=text) for text in texts if text.strip()]


def _fields(part: object) -> Mapping[Any, Any] | None:
    """Return the fields of a mapping, a dataclass or a Pydantic model that is none of LangChain's own."""
    if isinstance(part, dict):
        return part
    kind = type(part)
    if hasattr(kind, "lc_id") or isinstance(part, type):
        return None
    if hasattr(kind, "__pydantic_validator__") or hasattr(kind, "__dataclass_fields__"):
        fields = getattr(part, "__dict__", None)
        return fields if fields and text_key(fields) is not None else None
    return None
