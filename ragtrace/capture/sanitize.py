"""Makes anything an application hands over safe to keep: bounded, valid Unicode, JSON-ready.

The SDK drops a whole attribute for one lone surrogate or an integer beyond 64 bits, and raises into the
application for an object whose ``__str__`` raises (measured with opentelemetry-sdk 1.45.2).
"""

from __future__ import annotations

import math
from itertools import islice
from operator import index
from typing import TYPE_CHECKING, Any, cast

from ragtrace.capture.guard import kind_of, record_internal_error, record_wrong_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MOST_TAGS = 256
MAX_METADATA_KEYS = 24
MAX_METADATA_CHARS = 512
MAX_METADATA_ITEMS = 32  # of a list; a longer list of numbers is a vector, and left out
_INT64 = 1 << 63
_MOST_COUNT = 1 << 53
_REDACT = "ragtrace.capture.redact"
_TEXT_GONE = "ragtrace: the setting redact {}, so the text is left out; the application is not affected"


def clean_text(value: object, limit: int) -> tuple[str, int]:
    """Return `value` as valid Unicode of at most `limit` characters, and its original length if it was cut.

    Lone surrogates become U+FFFD. None is "". An object is shown through a guarded ``str``.

    Example:
        >>> clean_text("refund", 3)
        ('ref', 6)
        >>> clean_text(None, 3)
        ('', 0)
    """
    text = value if type(value) is str else shown(value)
    original = 0
    if len(text) > limit:
        original, text = len(text), text[:limit]
    if not text.isascii():
        text = _without_surrogates(text)
    return text, original


def shown(value: object) -> str:
    """Return the text of anything; None is "", and an object whose ``str`` raises is shown by its type's name.

    Example:
        >>> shown(7), shown(None)
        ('7', '')
    """
    if value is None:
        return ""
    try:
        return str(value)
    except Exception:  # a __str__ that raises is the application's defect, and must not reach it through us
        return f"<{type(value).__name__}>"


def tags_of(given: object) -> tuple[str, ...]:
    """Return the tags of anything as texts, at most 256; never raises. A text or a number is one tag.

    An iterator that raises gives the tags before that, and is counted as a loss.

    Example:
        >>> tags_of("vip"), tags_of(["vip", "beta"]), tags_of(7), tags_of(None)
        (('vip',), ('vip', 'beta'), ('7',), ())
    """
    if given is None:
        return ()
    if isinstance(given, bytes):
        return (given.decode("utf-8", "replace"),)
    if isinstance(given, str) or not hasattr(type(given), "__iter__"):
        return (shown(given),)
    found: list[str] = []
    try:
        for tag in islice(cast("Iterable[object]", given), MOST_TAGS):
            found.append(shown(tag))  # noqa: PERF401 - what came before an error stays
    except Exception as error:  # the application's iterator may raise anything
        why = f"they cannot be read ({kind_of(error)})"
        record_wrong_call("with tags", why, site="ragtrace.capture.sanitize.tags_of")
    return tuple(found)


def is_equal(one: object, other: object) -> bool:
    """Tell whether two values of an application are equal; what cannot be compared is not.

    Metadata may hold arrays, and a copied array has no truth value when it is compared.

    Example:
        >>> is_equal({"page": 1}, {"page": 1})
        True
    """
    try:
        return bool(one == other)
    except Exception:  # an application's object may raise anything here
        return False


def safe_redact(redact: Callable[[str], str] | None) -> Callable[[str], str] | None:
    """Return `redact` so that a failure drops the text and is counted; None stays None.

    A redaction that raises, or returns anything but text, must never let the original through.

    Example:
        >>> safe_redact(lambda text: text.replace("Ada", "[name]"))("Ada asked")
        '[name] asked'
        >>> safe_redact(lambda text: 1 / 0)("Ada asked")
        ''
    """
    if redact is None:
        return None

    def redacted(text: str) -> str:
        if not text:
            return text
        try:
            clean = redact(text)
        except Exception as error:
            record_internal_error(_REDACT, error, line=_TEXT_GONE.format(f"raised {kind_of(error)}"))
            return ""
        if type(clean) is not str:
            said = _TEXT_GONE.format(f"returned a {type(clean).__name__}, not a text")
            record_internal_error(_REDACT, line=said)
            return ""
        return clean

    return redacted


def clean_score(value: object) -> float | None:
    """Return a finite float, or None for anything that is not one (NaN, text, None).

    Example:
        >>> clean_score("0.5"), clean_score(float("nan")), clean_score(1)
        (None, None, 1.0)
    """
    if type(value) is float:
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bytes):
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
    metadata: Mapping[Any, Any] | None, redact: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Return the facts of a mapping: at most 24 keys; texts and lists of scalars of at most 512 characters.

    Other nested values are left out (they may be cyclic or huge); integers beyond 64 bits become text. `redact` is
    applied to texts and keys before they are cut, since it may not know the half of an address.

    Example:
        >>> clean_metadata({"page": 3, "authors": ["Ada", "Bo"], "nested": {"a": 1}})
        {'page': 3, 'authors': ['Ada', 'Bo']}
    """
    if not metadata:
        return {}
    kept: dict[str, Any] = {}
    # A copy in one call: the application may write a score into a shared document meanwhile, in another thread.
    for key, value in dict(metadata).items():
        if len(kept) >= MAX_METADATA_KEYS:
            break
        if redact is not None:
            key, value = redact(shown(key)), redact(value) if isinstance(value, str) else value  # noqa: PLW2901 - from here on only these exist
        # Nearly every value is a short text or a number, of a pool's hundreds: 0.2 us each here, 0.5 us by calls.
        kind = type(value)
        if (kind is str and len(value) <= MAX_METADATA_CHARS and value.isascii()) or (
            kind is int and -_INT64 <= value < _INT64
        ):
            scalar = value
        elif kind is list or kind is tuple:
            scalar = _list(value, redact)
        else:
            scalar = _scalar(value)
        if scalar is not None:
            is_short = type(key) is str and len(key) <= MAX_METADATA_CHARS and key.isascii()
            kept[key if is_short else clean_text(key, MAX_METADATA_CHARS)[0]] = scalar
    return kept


def _list(value: Sequence[object], redact: Callable[[str], str] | None) -> list[str | int | float | bool] | None:
    """Return the first scalars of a list; None where it holds none, and for a vector."""
    if len(value) > MAX_METADATA_ITEMS and isinstance(value[0], int | float):
        return None
    kept: list[str | int | float | bool] = []
    room = MAX_METADATA_CHARS
    for item in value[:MAX_METADATA_ITEMS]:
        scalar = _scalar(redact(item) if redact is not None and isinstance(item, str) else item)
        room -= len(str(scalar))
        if room < 0:
            break
        if scalar is not None:
            kept.append(scalar)
    return kept or None


def _scalar(value: object) -> str | int | float | bool | None:
    if type(value) is float:  # exact types first: they are nearly all
        return value if math.isfinite(value) else None
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value, MAX_METADATA_CHARS)[0]
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else clean_text(value, MAX_METADATA_CHARS)[0]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return None


def _without_surrogates(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # By UTF-16, where one lone surrogate is one U+FFFD and a split pair becomes its character again.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
