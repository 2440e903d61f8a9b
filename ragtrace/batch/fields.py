"""Makes the fields of a record of a row's named values, whatever file or table the row is from."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from ragtrace.capture.names import ID_KEYS, SCORE_KEYS
from ragtrace.capture.passages import id_in, object_fields, read_mapping, score_in, text_key
from ragtrace.errors import InputError
from ragtrace.model.codec import ALIASES, read_aliases
from ragtrace.model.line import PassageLine, RecordLine
from ragtrace.model.literal import HoldsObject, is_nested, nested_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Kind = Literal["text", "nested", "whole number", "number", "truth"]
SCORES, ERROR = "scores", "score_error"  # columns of an earlier run
_POOLS = ("pool", "selection", "contexts", "unranked_contexts", *ALIASES["contexts"])
_CONVERSATIONS = ("user_input", "question")  # of ragas
_TRUTHS = "ground_truths"  # of earlier ragas
MAY_BE_TEXT = (*_CONVERSATIONS, _TRUTHS, "context")
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}
_KNOWN = {*RecordLine.__struct_fields__, SCORES, ERROR}
_OF_PASSAGE = {*PassageLine.__struct_fields__, "content", "doc_id"}  # as the codec reads them
_NO_VALUE = {"", "nan", "none", "null"}
_BLANKS = " \t\r\n\ufeff\xa0"
WAY_OUT: Final = (
    "write the rows by df.to_json(FILE, orient='records', lines=True), or a list as JSON, [\"...\"] "
    "(of Dask, set dataframe.convert-string to False)"
)


class Fields(NamedTuple):
    """Fields of a row, and the names of those that are not read, as ``documents`` or ``contexts.title``."""

    values: dict[str, Any]
    unread: tuple[str, ...] = ()


def read_fields(row: Mapping[str, Any]) -> Fields:
    """Return the fields of a row in the form that `record_from_json` reads; it is the same for every format.

    Blanks around a name are left out. Where a field is a list or an object, a text of one is read. Passages in the
    forms of LangChain, LlamaIndex and search engines, and conversations of ragas, are those of a record. A value
    that is missing (None, nan) is left out.

    Args:
        row: values by name. It is not changed.

    Raises:
        InputError: two names are one without their blanks, or a field has a wrong form.

    Example:
        >>> read_fields({" contexts": "['Oslo.']", "note": 1})
        Fields(values={'contexts': ['Oslo.'], 'note': 1}, unread=('note',))
    """
    given = _by_name(row)
    kind_of = kinds()
    for name in given.keys() & kind_of.keys():
        value, kind = given[name], kind_of[name]
        if kind == "nested":
            given[name] = plain(nested(name, value))
            if given[name] is None:
                del given[name]
        elif kind == "whole number" and isinstance(value, float) and value.is_integer():
            given[name] = int(value)  # pandas makes floats of whole numbers where one is missing
        elif hasattr(value, "tolist"):  # a number of numpy
            given[name] = value.tolist()
    if len(given) > 1 and all(isinstance(value, dict) for value in given.values()):
        raise InputError(f"every field is an object, as of a table's columns; {WAY_OUT}")
    unread: dict[str, None] = {}
    for name in _POOLS:
        if isinstance(items := given.get(name), list):
            given[name] = [_passage(item, name, unread) for item in items]
    _read_ragas(given)
    known = _KNOWN | read_aliases(given)
    return Fields(given, (*(name for name in given if name not in known and given[name] != ""), *unread))


@cache
def kinds() -> dict[str, Kind]:
    """Return the kind of each field that is no text, by each name that it is read under.

    Example:
        >>> kinds()["retrieved_contexts"], kinds()["k"]
        ('nested', 'whole number')
    """
    inspect = msgspec.inspect
    kind_of: list[tuple[tuple[type, ...], Kind]] = [
        ((inspect.ListType, inspect.DictType, inspect.StructType), "nested"),
        ((inspect.FloatType,), "number"),
        ((inspect.IntType,), "whole number"),
        ((inspect.BoolType,), "truth"),
    ]
    found: dict[str, Kind] = dict.fromkeys(MAY_BE_TEXT, "nested")
    described = inspect.type_info(RecordLine)
    assert isinstance(described, inspect.StructType)  # noqa: S101 - it is one
    for field in described.fields:
        said = field.type.type if isinstance(field.type, inspect.Metadata) else field.type
        types = said.types if isinstance(said, inspect.UnionType) else (said,)
        kind = next((kind for classes, kind in kind_of if any(isinstance(one, classes) for one in types)), None)
        if kind is not None:
            found |= dict.fromkeys((field.name, *ALIASES.get(field.name, ())), kind)
    return found


def names_of(columns: Iterable[object]) -> list[str]:
    """Return the names of columns without blanks around them; one without a name has its number.

    Raises:
        InputError: two have one name; the message says which ones.

    Example:
        >>> names_of(["query", " answer", ""])
        ['query', 'answer', 'column 3']
        >>> names_of(["answer", "query", " answer"])
        Traceback (most recent call last):
        ...
        ragtrace.errors.InputError: the columns 1 and 3 are both named 'answer'; rename or delete one
    """
    found: dict[str, int] = {}
    for place, column in enumerate(columns, start=1):
        name = str(column).strip(_BLANKS) or f"column {place}"
        if (first := found.setdefault(name, place)) != place:
            raise InputError(f"the columns {first} and {place} are both named {name!r}; rename or delete one")
    return list(found)


def nested(name: str, value: Any) -> Any:
    """Return the list or object that a value is, or is the text of; None of a blank text, and others as they are.

    Args:
        name: of the field. A conversation, or DeepEval's one context, may be a text that only begins like a list.
        value: any.

    Raises:
        InputError: the text is none, and the field is not one that may be a text.
    """
    if not isinstance(value, str):
        return value
    if is_missing(value):
        return None
    why, is_list = "", False
    try:
        if is_nested(value):
            return nested_value(value)
    except InputError as error:
        why, is_list = f": {error}", isinstance(error, HoldsObject) and value.rstrip().endswith("]")
    if name in MAY_BE_TEXT and not is_list:
        return value
    raise InputError(f"field {name!r} is a text that is no list{why}; {WAY_OUT}")


def is_missing(text: str) -> bool:
    """Say whether a cell that is to hold no text is blank, or a word of pandas, Python or JSON for no value.

    Example:
        >>> is_missing(" "), is_missing("NaN"), is_missing("0")
        (True, True, False)
    """
    return text.strip(_BLANKS).lower() in _NO_VALUE


def plain(value: Any) -> Any:
    """Return a value of lists and objects without what is missing in the objects; arrays of numpy are lists.

    Example:
        >>> plain({"labels": {"d1": 5, "d2": None}, "answer": None, "score": math.nan})
        {'labels': {'d1': 5}}
    """
    if isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {name: kept for name, item in value.items() if (kept := plain(item)) is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def _by_name(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values that are there by their names without blanks."""
    names = {given: given.strip(_BLANKS) or given if isinstance(given, str) else given for given in row}
    if len(set(names.values())) < len(names):
        name, _ = Counter(names.values()).most_common(1)[0]
        first, second, *_ = (given for given in names if names[given] == name)
        raise InputError(f"the fields {first!r} and {second!r} are both named {name!r}; rename or delete one")
    return {
        names[given]: value
        for given, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def _passage(item: Any, pool: str, unread: dict[str, None]) -> Any:
    """Return a passage in the form of a record, and note which of its fields are not read.

    The other fields of an object that names its class are those of the framework that dumped it, and are not noted.
    """
    item = _document(item)
    if isinstance(item, list) and len(item) == 2 and isinstance(item[1], int | float | None):  # with its score
        whole = _passage(item[0], pool, unread)
        return {**(whole if isinstance(whole, dict) else {"text": whole}), "score": item[1]}
    if not isinstance(item, dict):
        return item
    if isinstance(facts := item.get("metadata"), str) and is_nested(facts):
        item = {**item, "metadata": nested(f"{pool}.metadata", facts)}
    if _OF_PASSAGE.issuperset(item):
        return item
    dumped = item["kwargs"] if isinstance(item.get("kwargs"), dict) else item  # LangChain's `dumpd`
    text, facts = read_mapping(dumped)
    inner = {name: part for name, part in dumped.items() if isinstance(part, dict)}
    metadata = (part.get("metadata") for part in (dumped, *inner.values()))
    found = {
        "id": id_in(facts),
        "text": text,
        "score": score_in(facts),
        "metadata": next((one for one in metadata if isinstance(one, dict)), None),
    }
    if "class_name" not in dumped and dumped.get("type") != "Document":
        holders = {name for name, part in inner.items() if read_mapping(part)[0] is not None}
        read = {*_OF_PASSAGE, *ID_KEYS, *SCORE_KEYS, *holders, text_key(dumped)}
        unread.update((f"{pool}.{name}", None) for name, part in dumped.items() if name not in read and part)
    own = {name: dumped[name] for name in PassageLine.__struct_fields__ if name in dumped}
    return {name: value for name, value in found.items() if value is not None} | own


def _document(item: Any) -> Any:
    """Return the document that an object is, or a text is a dump of; another item as it is."""
    if not isinstance(item, str):
        return object_fields(item) or item
    if not item.startswith("{"):
        return item
    try:
        found = nested_value(item)
    except InputError:
        return item
    return plain(found) if isinstance(found, dict) and read_mapping(found)[0] is not None else item


def _read_ragas(given: dict[str, Any]) -> None:
    """Put what ragas writes in a form of its own into the fields of a record.

    The last question of a conversation is the query, and earlier turns are the history.
    """
    if (truths := given.get(_TRUTHS)) and "reference" not in given:
        given["reference"] = truths[0] if isinstance(truths, list) else truths
        del given[_TRUTHS]
    name = next((name for name in _CONVERSATIONS if isinstance(given.get(name), list)), None)
    if name is None or "query" in given:
        return
    turns = given.pop(name)
    last = next((place for place in reversed(range(len(turns))) if _role(turns[place], name) == "user"), None)
    if last is None:
        raise InputError(f"the conversation in {name!r} has no question of a person")
    said = [turn.get("content") for turn in turns[last + 1 :] if _role(turn, name) == "assistant"]
    given["history"] = [{"role": _role(turn, name), "content": turn.get("content")} for turn in turns[:last]]
    given["query"] = turns[last].get("content")
    if "response" not in given and "answer" not in given and any(said):
        given["response"] = [text for text in said if text][-1]


def _role(turn: object, name: str) -> str:
    if not isinstance(turn, dict):
        raise InputError(f"a turn of {name!r} must be an object with type and content")
    kind = str(turn.get("type") or turn.get("role") or "human")
    return _ROLES.get(kind, kind)
