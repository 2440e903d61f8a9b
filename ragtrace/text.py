"""Values of an application, made safe to keep and to send: exact types, valid Unicode, redacted, within limits.

msgspec and orjson refuse lone surrogates, bytes and objects; the SDK drops a whole attribute for one lone surrogate
or an integer beyond 64 bits, and raises into the application for an object whose ``__str__`` raises.

The order in which a text is made safe is that of `kept`: it is decoded and cleaned, redacted as a whole, and cut.
A passage without an id gets one from its whole text before that, with a key where texts are redacted or do not
leave. The budget of a span or a line comes last, and counts what is left. No cut comes before `redact`, which
would not know the half of an address.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from numbers import Number
from operator import index
from typing import Any, TypeVar
from unicodedata import normalize

MAX_RECORD_CHARS = 1_048_576  # of all passages of a run, of a prompt, and of the facts beside them
MAX_TEXT_CHARS = 262_144  # of a question, an answer, a reference, a message, and of the whole history
MAX_MESSAGE_CHARS = 1_024  # of an exception's message, and of an object that has no form of its own
MAX_NAME_CHARS = 256  # of ids, models, tools, sources, tags, sessions, users
MAX_ROLE_CHARS = 32
MAX_LABEL_CHARS = 128  # of a name in a series or a column
MAX_METADATA_KEYS = 24
MAX_METADATA_CHARS = 512
MAX_LITERAL_CHARS = 16_384  # of a text in Python's notation: reading it holds the interpreter's lock
MAX_METADATA_ITEMS = 32  # of a list; a longer list of numbers is a vector, see `is_vector`
MAX_FACTS = 500  # keys of a mapping of facts that are looked at
MAX_REDACTED_CHARS = 1_048_576  # that `redact` is given at once
HALF_CHARS = 65_536  # left out at the end of what `redact` returns of a longer text: half of a secret may be there
MAX_GROWTH = 10  # times its text that `redact` may return; a mark or a hash in place of a word may be longer
MAX_MARK_CHARS = 128
_MAX_DEPTH = 8  # of lists and mappings inside each other; cycles end there
_INT64 = 1 << 63
_OF_CONTAINERS = ("__iter__", "__getitem__", "__next__", "__call__")
_MOST_COUNT = 1 << 53
_CUT_MARK = re.compile(r"…\[cut, (\d{1,12}) characters\]\Z")
_MOST_MARK_CHARS = 32
_NUMBERS = {int, float}
_ARRAYS = {array, deque}
_MOST_TRIES = 3
_AT_ONCE = 8_192  # characters with halves of pairs among them
_MOST_BYTES = 4 * MAX_REDACTED_CHARS  # that are read as a text: the bytes of as many characters
_MOST_NESTED = 6  # lists in lists of a vector
_WIDE_NESTED = 2  # of these all are looked at, of deeper ones the first
T = TypeVar("T")


def shown(value: object) -> str:
    """Return the text of anything; None is "", and an object whose ``str`` raises is shown by its type's name.

    Example:
        >>> shown(7), shown(None), shown("Zoë".encode())
        ('7', '', 'Zoë')
    """
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        return value[:_MOST_BYTES].decode("utf-8", "replace")
    try:
        return str.__str__(str(value))  # a subclass's own text may be one of a subclass
    except Exception:  # a __str__ that raises is the application's defect, and must not reach it through us
        return f"<{type(value).__name__}>"


def valid(text: str) -> str:
    r"""Return a text in valid Unicode: half of a surrogate pair is U+FFFD, and a split pair its character again.

    Example:
        >>> valid("a\ud800"), valid("\ud83d\ude00") == "\U0001f600"
        ('a�', True)
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        encoded = [piece.encode("utf-16-le", "surrogatepass") for piece in _pieces(text)]
        return "".join([piece.decode("utf-16-le", "replace") for piece in encoded])
    return text


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that split no pair; each half of one costs a call, under the interpreter's lock."""
    start, length = 0, len(text)
    while start < length:
        end = start + _AT_ONCE
        if end < length and "\ud800" <= text[end - 1] <= "\udbff" and "\udc00" <= text[end] <= "\udfff":
            end -= 1
        yield text[start:end]
        start = end


_INVISIBLE = "\u00ad\u034f\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff"  # soft hyphens, joiners, selectors of a form
_DROPPED = re.compile(f"[\u0300-\u036f{_INVISIBLE}]")
# Of Latin ligatures, bold and italic letters of mathematics, and full-width letters and digits.
_OTHER_FORM = re.compile("[\ufb00-\ufb06\U0001d400-\U0001d7ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")
_UNSEEN = re.compile(f"[{_INVISIBLE}]")


def folded(text: str) -> str:
    """Return a text folded: it compares equal in every form of Unicode, in any case, with accents or without.

    Example:
        >>> folded("Zu\u0308rich \ufb01les") == folded("Z\u00dcRICH FI\u00adLES")
        True
    """
    if text.isascii():
        return text.lower()
    return normalize("NFC", _DROPPED.sub("", normalize("NFKD", text).casefold()))


def composed(text: str) -> str:
    """Return a text composed, as models write it: accents in their letters, no ligature, nothing unseen.

    What a reader sees stays, such as case, fractions and exponents.

    Example:
        >>> composed("Zu\u0308rich \ufb01les") == "Z\u00fcrich files"
        True
    """
    if text.isascii():
        return text
    return _UNSEEN.sub("", _OTHER_FORM.sub(lambda found: normalize("NFKC", found[0]), normalize("NFC", text)))


def clean(value: object, depth: int = _MAX_DEPTH) -> Any:
    """Return a value as what JSON has, of exact types: texts, numbers, truth values, None, lists and objects.

    A number that is not finite is None, since encoders write it as null without a word. A whole number beyond 64
    bits is a text. Bytes are read as UTF-8. A typed scalar has its form of `plain`. Any other object is its text,
    up to 1,024 characters of it.

    Example:
        >>> clean({"share": float("nan"), "pages": (1, 1 << 70), 3: b"a"})
        {'share': None, 'pages': [1, '1180591620717411303424'], '3': 'a'}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return valid(value if type(value) is str else str.__str__(value))
    if isinstance(value, int):
        whole = int.__int__(value)
        return whole if -_INT64 <= whole < _INT64 else cut(whole, MAX_MESSAGE_CHARS)[0]
    if isinstance(value, float):
        return float.__float__(value) if math.isfinite(value) else None
    try:
        if depth and isinstance(value, Mapping):
            return {_key(name): clean(item, depth - 1) for name, item in value.items()}
        if depth and isinstance(value, list | tuple | set | frozenset):
            return [clean(item, depth - 1) for item in value]
        if (scalar := plain(value)) is not None:
            return cut(scalar, MAX_MESSAGE_CHARS)[0] if isinstance(scalar, str) else scalar
        if depth and type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            return clean(value.item(), depth - 1)  # type: ignore[attr-defined]
    except Exception:  # noqa: S110 - an application's mapping may raise anything; it is then an object like others
        pass
    return cut(value, MAX_MESSAGE_CHARS)[0]


def plain(value: object) -> str | int | float | bool | None:
    """Return a scalar of any type as the one that JSON has for it; None for what is no scalar.

    Numbers and truth values of numpy's are numbers and truth values. An enum's member is its value. Dates and times
    are texts of ISO 8601. Of any other type that holds one value (UUID, Decimal, Fraction, timedelta, a path, an
    address, a database's id) the text is taken: of one that has a ``str``, an equality and a hash of its own, and
    is no container. A number, a date or a duration that is none (NaN, NaT) is None.

    Example:
        >>> from datetime import date
        >>> from decimal import Decimal
        >>> plain(date(2026, 1, 2)), plain(Decimal("1.50")), plain(b"1"), plain(object())
        ('2026-01-02', '1.50', None, None)
    """
    try:
        if isinstance(value, str):
            return value if type(value) is str else str.__str__(value)
        if isinstance(value, bool | int):
            return clean(value)  # type: ignore[no-any-return]
        if isinstance(value, float):
            return clean_score(value)
        if isinstance(value, Enum):
            return plain(value.value)
        kind = type(value)
        if kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            which = value.dtype.kind  # type: ignore[attr-defined]
            if which == "f":
                return clean_score(value)
            if which not in "mM":
                return plain(value.item()) if which in "biuU" else None  # type: ignore[attr-defined]
        elif kind.__hash__ in {None, object.__hash__} or any(hasattr(value, name) for name in _OF_CONTAINERS):
            return None
        if value != value or kind.__str__ is object.__str__:  # noqa: PLR0124 - NaN and NaT are not equal to themselves
            return None
        return value.isoformat() if hasattr(kind, "isoformat") else str(value)  # type: ignore[attr-defined]
    except Exception:  # an application's object may raise anything; it is then no scalar
        return None


def _key(name: object) -> str:
    """Return the name that `json` gives a field."""
    if name is None or isinstance(name, bool):
        return json.dumps(name)
    return cut(name, MAX_MESSAGE_CHARS)[0]


def cut(value: object, most: int) -> tuple[str, int]:
    """Return the text of anything as at most `most` characters, and its original length where it was cut, else 0.

    Characters, so that every language is cut alike.

    Example:
        >>> cut("refund", 3), cut(None, 3)
        (('ref', 6), ('', 0))
    """
    text = value if type(value) is str else shown(value)
    if len(text) > most:
        return valid(text[:most]), len(text)
    return valid(text), 0


def ends(text: str, most: int) -> str:
    r"""Return the beginning and the end of a text that a pattern looks for a sign in, `most` characters together.

    A pattern holds the interpreter's lock for as long as it looks. A text that is not longer is itself.

    Example:
        >>> ends("Judge this: a long answer. Is it true?", 22), ends("In Oslo.", 20)
        ('Judge this:\nIs it true?', 'In Oslo.')
    """
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"


def kept(value: object, most: int, redact: Callable[[str], str] | None = None) -> tuple[str, int]:
    """Return a text as it is kept, and its length before the cut where it was cut, else 0.

    It is decoded and cleaned, redacted as a whole, and cut to `most` characters. Of a text beyond 1 Mi characters
    `redact` is given as many; the last 65,536 of what it returns are left out then, since half of a secret may be
    there. A mark or a hash of at most 128 characters stays.

    Example:
        >>> kept("Ada Lovelace asks", 8, lambda text: text.replace("Ada Lovelace", "[name]"))
        ('[name] a', 11)
    """
    if redact is None:
        return cut(value, most)
    text, length = cut(value, MAX_REDACTED_CHARS)
    made = redact(text)
    if not length:
        return cut(made, most)
    is_mark = len(made) <= MAX_MARK_CHARS and made[-1:] != text[-1:]  # what ends as the text does may be its end
    return cut(made if is_mark else made[: max(len(made) - HALF_CHARS, 0)], most)[0], length


def clean_score(value: object) -> float | None:
    """Return a finite float, or None for anything that is not one (NaN, text, None).

    Example:
        >>> clean_score("0.5"), clean_score(float("nan")), clean_score(1)
        (None, None, 1.0)
    """
    if type(value) is float:
        return value if math.isfinite(value) else None
    kind = type(value)
    if not (
        hasattr(kind, "__float__") or hasattr(kind, "__index__")
    ):  # `float` reads a text, and the bytes of an array
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except Exception:  # any object may stand here, numpy scalars and broken ones among them
        return None
    return number if math.isfinite(number) else None


def clean_count(value: object) -> int | None:
    """Return a whole number from 0 to 2^53, or None for anything else; JSON readers keep no larger one exactly.

    Example:
        >>> clean_count(7), clean_count(True), clean_count(-1), clean_count(10**5000)
        (7, None, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        number = index(value)  # type: ignore[arg-type]
    except Exception:  # any object may stand here
        return None
    return number if 0 <= number <= _MOST_COUNT else None


def clean_metadata(
    metadata: Mapping[Any, Any] | None, redact: Callable[[str], str] | None = None, *, are_names_known: bool = False
) -> dict[str, Any]:
    """Return the facts of a mapping: at most 24 keys; texts and lists of scalars of at most 512 characters.

    Scalars of other types than JSON's have their form of `plain`. Other nested values are left out (they may be
    cyclic or huge); integers beyond 64 bits become text.

    Args:
        metadata: of a passage or a request.
        redact: applied to texts and keys before they are cut.
        are_names_known: the keys are those of a setting, and are no texts of the application; a vector that a
            setting names is kept like other lists.

    Example:
        >>> clean_metadata({"page": 3, "authors": ["Ada", "Bo"], "nested": {"a": 1}})
        {'page': 3, 'authors': ['Ada', 'Bo']}
    """
    if not metadata:
        return {}
    found: dict[str, Any] = {}
    of_key = None if are_names_known else redact
    # A copy in one call: the application may write a score into a shared document meanwhile, in another thread.
    for key, value in first_items(metadata, MAX_FACTS).items():
        if len(found) >= MAX_METADATA_KEYS:
            break
        # Nearly every value is a short text or a number, of a pool's hundreds: 0.2 us each here, 0.5 us by calls.
        kind = type(value)
        if (kind is str and redact is None and len(value) <= MAX_METADATA_CHARS and value.isascii()) or (
            kind is int and -_INT64 <= value < _INT64
        ):
            scalar = value
        elif kind is list or kind is tuple:
            scalar = None if is_vector(value) and not are_names_known else _scalars(value, redact)
        else:
            scalar = _scalar(value, redact)
        if scalar is not None:
            is_short = type(key) is str and of_key is None and len(key) <= MAX_METADATA_CHARS and key.isascii()
            found[key if is_short else kept(key, MAX_METADATA_CHARS, of_key)[0]] = scalar
    return found


def is_vector(parts: Sequence[object]) -> bool:
    """Tell whether a list begins with more than 32 numbers, as an embedding does, or with as many such lists.

    Example:
        >>> is_vector([0.5] * 33), is_vector([0.5] * 32), is_vector([7, "Oslo"] * 40), is_vector([[0.5] * 33] * 33)
        (True, False, False, True)
    """
    return _is_vector(parts, 0)


def _is_vector(parts: Sequence[object], depth: int) -> bool:
    if len(parts) <= MAX_METADATA_ITEMS or depth > _MOST_NESTED:
        return False
    head = parts[: MAX_METADATA_ITEMS + 1]
    if set(map(type, head)) <= _NUMBERS:
        return True
    if isinstance(head[0], str | Mapping):
        return False
    return all(_is_numbers(part, depth + 1) for part in (head if depth < _WIDE_NESTED else head[:1]))


def _is_numbers(part: object, depth: int) -> bool:
    kind = type(part)
    if kind is list or kind is tuple:
        return _is_vector(part, depth)  # type: ignore[arg-type]
    return isinstance(part, Number) or kind in _ARRAYS or (hasattr(kind, "__array__") and not isinstance(part, str))


def first_items(mapping: Mapping[Any, T], most: int) -> dict[Any, T]:
    """Return the first items of a mapping as they are now; another thread may be writing into it.

    Raises:
        RuntimeError: others wrote at every try.

    Example:
        >>> first_items({"page": 1, "by": "Ada"}, 1)
        {'page': 1}
    """
    kind = type(mapping)
    if kind is dict and len(mapping) <= most:
        return dict(mapping)
    for tries in range(1, _MOST_TRIES + 1):
        try:
            if isinstance(mapping, dict) and kind.__iter__ is dict.__iter__:  # in one call of the interpreter's
                return dict(islice(dict.items(mapping), most))
            return {key: mapping[key] for key in islice(iter(mapping), most)}
        except RuntimeError:
            if tries == _MOST_TRIES:
                raise
    return {}


def _scalars(value: Sequence[object], redact: Callable[[str], str] | None) -> list[str | int | float | bool] | None:
    """Return the first scalars of a list; None where it holds none."""
    scalars = [_scalar(item, redact) for item in value[:MAX_METADATA_ITEMS]]
    return [one for one in fit(scalars, lambda one: len(str(one)), MAX_METADATA_CHARS) if one is not None] or None


def _scalar(value: object, redact: Callable[[str], str] | None) -> str | int | float | bool | None:
    scalar = plain(value)
    return kept(scalar, MAX_METADATA_CHARS, redact)[0] if isinstance(scalar, str) else scalar


def size_bytes(text: str) -> int:
    """Return the size of a text in UTF-8; a lone surrogate counts as the U+FFFD that replaces it.

    Example:
        >>> size_bytes("año")
        4
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut_bytes(text: str, most: int, size: Callable[[str], int] = size_bytes) -> str:
    """Return the text in at most `most` bytes of UTF-8; a cut says so and how long the text was.

    Args:
        text: valid or not.
        most: bytes; the mark of the cut stays whole where it takes more.
        size: ``len`` counts characters in their place.

    Example:
        >>> cut_bytes("a" * 100, 40), cut_bytes("short", 40)
        ('aaaaaaaaaaaaaaaa…[cut, 100 characters]', 'short')
    """
    if size(text) <= most:
        return text
    mark = f"…[cut, {len(text)} characters]"
    room = max(most - size(mark), 0)
    # A character is at least one byte, so that the slice bounds the work; "ignore" drops a split last one.
    head = text[:room]
    if size is not len:
        head = head.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    return f"{head}{mark}"


def length_before_cut(text: str) -> int:
    """Return how long a text was that `cut_bytes` cut; 0 for one that is whole.

    Example:
        >>> length_before_cut(cut_bytes("a" * 100, 40)), length_before_cut("short")
        (100, 0)
    """
    found = _CUT_MARK.search(text[-_MOST_MARK_CHARS:])
    return int(found[1]) if found else 0


def fit(items: Sequence[T], size: Callable[[T], int], room: int) -> tuple[T, ...]:
    """Return as many of the first items as fit together.

    Example:
        >>> fit(["ab", "cd", "e"], len, 4)
        ('ab', 'cd')
    """
    count = 0
    for item in items:
        room -= size(item)
        if room < 0:
            break
        count += 1
    return tuple(items[:count])


def share_of(sizes: Sequence[int], room: int) -> int:
    """Return the size to which the largest are cut so that all fit; small ones leave their room to large ones.

    Example:
        >>> share_of([10, 50, 90], 100)
        45
    """
    count = len(sizes)
    for size in sorted(sizes):
        if size * count > room:
            break
        room -= size
        count -= 1
    return room // max(count, 1)
