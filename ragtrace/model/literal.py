"""Lists and objects that a cell of a table holds as text: JSON, or as Python prints them."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from ragtrace.errors import InputError
from ragtrace.model.file_lines import MOST_PARTS, MOST_VALUES, NotJson, bounded_json

MOST_DEPTH: Final = 100  # lists in lists, as of JSON
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    |(?P<word>[-+]?[^\W\d][\w.]*)
    |(?P<sign>[\[\](){},:]))""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
_WORDS |= dict.fromkeys(("nan", "NaN", "-nan"))  # pandas' sign of a missing value
_ENDS = {"[": "]", "(": ")", "{": "}"}
_MOST_DIGITS = 4_300  # Python's own limit


def is_nested(text: str) -> bool:
    """Say whether a text begins as a list or an object does.

    Example:
        >>> is_nested(" ['Oslo.']"), is_nested("Oslo.")
        (True, False)
    """
    return text.lstrip()[:1] in _ENDS


def nested_value(text: str) -> Any:
    """Return the value of a text of JSON, or of lists, tuples and dictionaries as Python prints them.

    It is read as data in one pass, and nothing of it is run. A tuple is a list, and nan is None.

    Raises:
        InputError: it is neither, as numpy's arrays and objects of Python are; or it holds what no record has.

    Example:
        >>> nested_value('["Oslo."]'), nested_value("[{'text': \\"It's Oslo.\\", 'score': nan}]")
        (['Oslo.'], [{'text': "It's Oslo.", 'score': None}])
        >>> nested_value("['Oslo.' 'Rome.']")
        Traceback (most recent call last):
        ...
        ragtrace.errors.InputError: a list without commas, as numpy prints an array (at character 10)
    """
    try:
        return bounded_json(text.encode("utf-8", "surrogatepass"), takes_nan=True, names_once=True)
    except NotJson:
        return _Reader(text).value()


class _Reader:
    """Reads one literal; open lists and dictionaries stand on a stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def value(self) -> Any:
        root: list[Any] = []
        stack: list[tuple[str, Any]] = [("", root)]
        keys: list[Any] = []
        expects, parts, values = "value", 0, 0  # else: "value or end", "colon", "comma or end"
        while stack[-1][0] or not root:
            kind, token = self._next()
            opened, holder = stack[-1]
            if expects == "comma or end":
                if token == _ENDS[opened]:
                    stack.pop()
                elif token == ",":
                    expects = "value or end"
                else:
                    is_item = kind != "sign" or token in _ENDS
                    raise self._refusal("a list without commas, as numpy prints an array" if is_item else "")
                continue
            if expects == "colon":
                if token != ":":
                    raise self._refusal("no dictionary; a set has no order" if token in {",", "}"} else "")
                expects = "value"
                continue
            if expects == "value or end" and opened and token == _ENDS[opened]:
                stack.pop()
                expects = "comma or end"
                continue
            values += 1
            if values > MOST_VALUES:
                raise InputError(f"more than {MOST_VALUES:,} values")
            if opened == "{" and expects == "value or end":
                key = self._scalar(kind, token)
                if key in holder:
                    raise InputError(f"the key {key!r} twice, the second time at character {self._at}")
                holder[key] = None
                keys.append(key)
                expects = "colon"
                continue
            if token in _ENDS:
                parts += 1
                if parts > MOST_PARTS or len(stack) > MOST_DEPTH:
                    raise InputError("nested too deeply" if len(stack) > MOST_DEPTH else "too many lists and objects")
                found: Any = {} if token == "{" else []
                self._put(opened, holder, keys, found)
                stack.append((token, found))
                expects = "value or end"
                continue
            self._put(opened, holder, keys, self._scalar(kind, token))
            expects = "comma or end"
        if self._text[self._at :].strip():
            self._next()
            raise self._refusal("text behind its end")
        return root[0]

    @staticmethod
    def _put(opened: str, holder: Any, keys: list[Any], value: Any) -> None:
        if opened == "{":
            holder[keys.pop()] = value
        else:
            holder.append(value)

    def _next(self) -> tuple[str, str]:
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            rest = self._text[self._at :].lstrip()
            self._at = len(self._text) - len(rest) + 1
            is_open = not rest or rest[0] in "'\""
            raise self._refusal("it ends too early, or a text in it has no end" if is_open else "")
        kind = str(token.lastgroup)
        self._at = token.start(kind) + 1
        said = token[kind]
        if kind == "word" and self._text.startswith("(", token.end()):
            raise self._refusal(f"it holds {said}(...), an object of Python")
        if kind == "word" and said not in _WORDS:
            raise self._refusal("")
        self._at = token.end()
        return kind, said

    def _scalar(self, kind: str, token: str) -> Any:
        if kind == "text":
            return _unescaped(token[1:-1]) if "\\" in token else token[1:-1]
        if kind == "word":
            return _WORDS[token]
        if kind != "number" or len(token) > _MOST_DIGITS:
            raise self._refusal("")
        number = float(token)
        if token.lstrip("+-").isdecimal():
            return int(token)
        return number if math.isfinite(number) else None

    def _refusal(self, why: str) -> InputError:
        return InputError(f"{why or 'neither JSON nor a list of Python'} (at character {self._at})")


def _unescaped(text: str) -> str:
    def said(found: re.Match[str]) -> str:
        sign = found[1]
        if len(sign) > 1:
            return chr(min(int(sign[1:], 16), 0x10FFFF))
        return _ESCAPES.get(sign, sign)

    return _ESCAPE.sub(said, text)
