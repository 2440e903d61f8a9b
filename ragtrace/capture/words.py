"""Words of a text in any script, and its sentences: what rules compare that ask who said something first."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from unicodedata import normalize

from ragtrace.text import MAX_LITERAL_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

# Scripts that set no blanks between words: each sign is a token. Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Signs that belong to the letter before them, in scripts where they are no letters of their own.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd"
    "\u0b01-\u0b03\u0b3c-\u0b4d\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0d81-\u0d83\u0dca-\u0ddf\u0f71-\u0f84\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff"
)
_TOKEN = re.compile(  # of texts of at most 100,000 characters
    rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{MARKS}])*+"
)
_BLANKS = str.maketrans({sign: " " for sign in map(chr, range(128)) if not sign.isalnum()})
_BLANK_BYTES = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
_IS_SPECIAL = re.compile(f"[{_UNSPACED}{MARKS}]")  # of texts of at most 100,000 characters
_WIDE_BETWEEN = re.compile(r"[^\w\x00-\x7f]+")  # of texts of at most 100,000 characters
_UNIT_END = re.compile(
    r"[\n\r]+|(?<=[.!?;])\s+|(?<=[.!?;][\"'\u2019\u201d)])\s+|(?<=[\u3002\uff01\uff1f\u0964])"
)  # of texts of at most 100,000 characters
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf\"'/\\])")  # of texts of at most 100,000 characters
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")  # of one token
MOST_CHARS = 100_000  # of a text that is looked at
SHINGLE = 4  # tokens in a row by which a statement is known again
_UNSPACED_SHARE = 1 / 3  # of a word, that a sign of an unspaced script is
_DEPTH = 8


def tokens(text: str) -> list[str]:
    r"""Return the words of a text: runs of letters, marks and digits; of unspaced scripts each sign.

    Example:
        >>> tokens("Die Bücherei\u2019s 2 Räume")
        ['die', 'bücherei', 's', '2', 'räume']
        >>> tokens("हिन्दी में"), tokens("書庫")
        (['हिन्दी', 'में'], ['書', '庫'])
    """
    some = text[:MOST_CHARS]
    if some.isascii():  # in a ninth of the time
        return some.lower().translate(_BLANKS).split()
    plain = normalize("NFKC", some).casefold()
    if _IS_SPECIAL.search(plain):
        return _TOKEN.findall(plain)
    return (
        _WIDE_BETWEEN.sub(" ", plain)
        .encode("utf-8", "surrogatepass")
        .translate(_BLANK_BYTES)
        .decode("utf-8", "surrogatepass")
        .split()
    )


def weight(words: Sequence[str]) -> float:
    """Return how many words some tokens are: three signs of an unspaced script are one.

    Example:
        >>> weight(["two", "words"]), weight(["書", "庫", "は"])
        (2, 1.0)
    """
    return sum(_UNSPACED_SHARE if _IS_UNSPACED.match(one) else 1 for one in words)


def shingles(words: Sequence[str], size: int = SHINGLE) -> Iterator[tuple[str, ...]]:
    """Yield each `size` tokens in a row.

    Example:
        >>> list(shingles(["a", "b", "c"], 2))
        [('a', 'b'), ('b', 'c')]
    """
    return zip(*(words[at:] for at in range(size)), strict=False)


def hashes(words: Sequence[str], size: int = SHINGLE) -> list[int]:
    """Return the hash of each `size` tokens in a row, as this process makes it; nothing of fewer tokens.

    Example:
        >>> len(hashes(["a", "b", "c", "d", "e"])), hashes(["a"])
        (2, [])
    """
    return [*map(hash, shingles(words, size))]


def excerpt(text: str, start: int, end: int) -> str:
    r"""Return what a text says from one of its tokens to before another, on one line.

    Example:
        >>> excerpt("Well: the Great\nHall, of 1736.", 1, 4)
        'the Great Hall'
    """
    plain = normalize("NFKC", text[:MOST_CHARS])
    spans = [found.span() for found in _TOKEN.finditer(plain)][start:end]
    return " ".join(plain[spans[0][0] : spans[-1][1]].split()) if spans else ""


def unescaped(text: str) -> str:
    r"""Return a text with blanks in place of escaped line breaks, and letters in place of their escapes.

    Example:
        >>> unescaped("In Oslo.\\nIn R\\u00f8ros.")
        'In Oslo. In Røros.'
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text) if "\\" in text else text


def units(text: str) -> list[str]:
    """Return the sentences of a text, or the scalars of a value that it writes out, as JSON or as Python does.

    Example:
        >>> units("It rains. It pours."), units('{"town": "Oslo", "rooms": 12}')
        (['It rains.', 'It pours.'], ['Oslo', '12'])
    """
    value = written_value(text)
    if value is not None:
        return [str(one) for one in scalars(value)]
    return [one for one in _UNIT_END.split(unescaped(text[:MOST_CHARS])) if one.strip()]


def written_value(text: str) -> object:
    """Return the mapping or the list that a text writes out, as JSON or as Python does; None for another text."""
    bare = text[:MOST_CHARS].strip()
    if not bare.startswith(("{", "[", "(")):
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(bare)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return literal_eval(bare) if len(bare) <= MAX_LITERAL_CHARS else None
    return None


def scalars(value: object, depth: int = 0) -> Iterator[object]:
    """Yield the texts and numbers in a value."""
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            if depth < _DEPTH:
                yield from scalars(part, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield value
