"""Lists and objects that a cell of a table holds as text: JSON, or as Python prints them."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Final

from ragtrace.errors import InputError
from ragtrace.model.file_lines import MOST_PARTS, MOST_VALUES, NotJson, bounded_json

_MOST_DEPTH: Final = 100  # lists in lists, as of JSON
_BLANKS = re.compile(r"\s*")
_TOKEN = re.compile(
    r"""(?P<text>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")
    |(?P<number>[-+]?[\d.][\w.]*(?:(?<=[eE])[-+]\d+)?)
    |(?P<word>[-+]?[^\W\d][\w.]*)
    |(?P<sign>[\[({])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
_WORDS |= dict.fromkeys(("nan", "NaN", "-nan"))  # pandas' sign of a missing value
_ENDS = {"[": "]", "(": ")", "{": "}"}
_NEITHER = "neither JSON nor a list of Python"
_CUT = "it ends too early, or a text in it has no end"
_MOST_DIGITS = 4_300  # Python's own limit


class HoldsObject(InputError):
    """A text holds objects as Python prints them, which are no values of it."""


def is_nested(text: str) -> bool:
    """Say whether a text begins as a list or an object does.

    Example:
        >>> is_nested(" ['Oslo.']"), is_nested("Oslo.")
        (True, False)
    """
    return text.lstrip()[:1] in _ENDS


def nested_value(text: str) -> Any:
    r"""Return the value of a text of JSON, or of lists, tuples and dictionaries as Python prints them.

    It is read as data in one pass, and nothing of it is run. A tuple is a list, and nan is None.

    Raises:
        InputError: it is neither, as numpy's arrays and objects of Python are; or it holds what no record has.

    Example:
        >>> nested_value('["Oslo."]'), nested_value("[{'text': \"It's Oslo.\", 'score': nan}]")
        (['Oslo.'], [{'text': "It's Oslo.", 'score': None}])
        >>> nested_value("['Oslo.' 'Rome.']")
        Traceback (most recent call last):
        ...
        ragtrace.errors.InputError: a list without commas, as numpy prints an array (at character 10)
    """
    try:
        return bounded_json(text.encode("utf-8", "surrogatepass"), takes_nan=True, names_once=True)
    except NotJson:
        return _Reader(text).whole()


class _Reader:
    """Reads one literal from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._parts = self._values = 0

    def whole(self) -> Any:
        """Return the value of the text, behind which nothing stands."""
        found = self._value(0)
        if not self._has_end():
            raise self._refusal(_NEITHER)
        return found

    def _value(self, depth: int) -> Any:
        kind, word = self._next()
        if word not in _ENDS:
            return self._scalar(kind, word)
        self._parts += 1
        if depth >= _MOST_DEPTH or self._parts > MOST_PARTS or self._values > MOST_VALUES:
            raise InputError("nested too deeply" if depth >= _MOST_DEPTH else "too many lists, objects and values")
        end, items, pairs = _ENDS[word], [], {}
        while not self._takes(end):
            self._values += 1
            if word == "{":
                key = self._scalar(*self._next())
                if key in pairs:
                    raise self._refusal(f"the key {key!r} a second time")
                if not self._takes(":"):
                    raise self._refusal("a set, which has no order")
                pairs[key] = self._value(depth + 1)
            else:
                items.append(self._value(depth + 1))
            if not (self._takes(",") or self._text.startswith(end, self._at)):
                raise self._refusal(_CUT if self._has_end() else "a list without commas, as numpy prints an array")
        return pairs if word == "{" else items

    def _scalar(self, kind: str, word: str) -> Any:
        if kind == "text":
            return _ESCAPE.sub(_character, word[1:-1]) if "\\" in word else word[1:-1]
        if kind == "word" and word in _WORDS:
            return _WORDS[word]
        if kind == "word" and self._text.startswith("(", self._at):
            raise HoldsObject(str(self._refusal(f"it holds {word}(...), an object of Python")))
        try:
            number = float(word) if kind == "number" and len(word) <= _MOST_DIGITS else None
        except ValueError:
            number = None
        if number is None or "_" in word:
            raise self._refusal(_NEITHER)
        return int(word) if word.lstrip("+-").isdecimal() else number if math.isfinite(number) else None

    def _next(self) -> tuple[str, str]:
        """Return the kind and the text of the next token."""
        if self._has_end():
            raise self._refusal(_CUT)
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._refusal(_CUT if self._text[self._at] in "'\"" else _NEITHER)
        self._at = found.end()
        return str(found.lastgroup), found[0]

    def _takes(self, sign: str) -> bool:
        """Go on behind a sign where it is the next one."""
        is_next = not self._has_end() and self._text[self._at] == sign
        self._at += is_next
        return is_next

    def _has_end(self) -> bool:
        """Go on behind blanks, and say whether nothing is left."""
        self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr] # it matches no blanks too
        return self._at == len(self._text)

    def _refusal(self, why: str) -> InputError:
        return InputError(f"{why} (at character {self._at + 1})")


def _character(escape: re.Match[str]) -> str:
    sign = escape[1]
    return chr(min(int(sign[1:], 16), sys.maxunicode)) if len(sign) > 1 else _ESCAPES.get(sign, sign)
