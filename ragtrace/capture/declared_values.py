"""Values at declared places: a question, an answer, texts, or passages in an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ragtrace.capture.content_blocks import in_plain, json_of, text_of
from ragtrace.capture.documents import as_documents, documents_in
from ragtrace.capture.values import LISTS, Doc, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.capture.declared import Declarations, Place


class Brought(NamedTuple):
    """Evidence of a declared place: passages in an order, or texts without one."""

    documents: list[Doc]
    texts: list[str]

    def __bool__(self) -> bool:
        return bool(self.documents or self.texts)


def text_at(declarations: Declarations, place: Place, values: Mapping[str, Sequence[object]]) -> str:
    """Return the text at a place: of the first value with one; several are joined; "" where there is none.

    Args:
        declarations: of the run; it notes whether something stood there.
        place: where to look.
        values: what its head may mean, the likeliest first.
    """
    for value in values.get(place.head, ()):
        texts = [text for one in declarations.at(place, value) if (text := _text_of(one)).strip()]
        if texts:
            return "\n\n".join(texts)
    return ""


def brought_at(
    declarations: Declarations, place: Place, values: Sequence[object], shown: Iterable[str] = ()
) -> Brought:
    """Return what a place brings: a list is passages in its order, anything else a text.

    Args:
        declarations: of the run; it notes whether something stood there.
        place: where to look.
        values: what its head may mean, the likeliest first.
        shown: prompts, which tell the form of a row.
    """
    for value in values:
        found = declarations.at(place, value)
        is_listed = None in place.steps or len(found) > 1
        brought = [_brought(one, shown, is_listed=is_listed) for one in found]
        documents = [document for one in brought for document in one.documents]
        texts = [text for one in brought for text in one.texts]
        if documents or texts:
            return Brought(documents, texts)
    return Brought([], [])


def _brought(value: object, shown: Iterable[str], *, is_listed: bool) -> Brought:
    if isinstance(value, LISTS):
        documents = documents_in(value) or [_document(one, shown) for one in value]
        return Brought([one for one in documents if one.text.strip()], [])
    if is_listed or type(value) is Doc:
        document = _document(value, shown)
        return Brought([document] if document.text.strip() else [], [])
    text = _text_of(value)
    return Brought([], [text] if text.strip() else [])


def _document(value: object, shown: Iterable[str]) -> Doc:
    """Return an item of a list as a passage; of a row the form in which a prompt shows it."""
    if type(value) is Doc:
        return value
    if isinstance(value, str):
        return Doc(value)
    if (fields := fields_of(value)) is not None and (known := as_documents([fields])):
        return known[0]
    forms = _forms_of(value)
    prompts = list(shown)
    return Doc(next((form for form in forms if any(form in one for one in prompts)), forms[0]))


def _forms_of(row: object) -> list[str]:
    fields = fields_of(row)
    plain = in_plain(row if fields is None else fields)
    parts = (
        list(plain.values()) if isinstance(plain, dict) else list(plain) if isinstance(plain, LISTS) else [plain]
    )
    return [str(plain), json_of(plain), str(tuple(parts)), ", ".join(map(str, parts))]


def _text_of(value: object) -> str:
    return json_of(value) if isinstance(value, dict | list | tuple) else text_of(value)
