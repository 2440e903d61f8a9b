"""Lines of a file that a stranger may have written, each within bounds, and the JSON of one."""

from __future__ import annotations

import io
import json
import lzma
import re
import zlib
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from ragtrace.errors import InputError
from ragtrace.model.codec import UNPACK, json_value, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_LINE = 2**24  # bytes: a text is kept to 262,144 characters, so the longest honest records have 1 to 4 MiB
MOST_REQUEST = 3 * 2**24  # of OTLP, whose lines are requests: a Collector's batch of 8,192 spans has 40 MB
_MOST_SKIPPED = 2**32  # of one line, 10 s of unpacking; beyond it no end is looked for
_STEP = 2**20
_ADVICE = "write one object a line, and leave out vectors and the like"
WIDE = "this is UTF-16 or UTF-32; write it as UTF-8"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 64  # of a line that is not kept
_MOST_DEPTH = 100  # lists in lists: what reads a record calls itself twice a level, and Python allows 1,000
MOST_PARTS = 2**17  # lists and objects of a line: 30 MB, as small objects take 232 bytes
MOST_VALUES = 2**20  # 32 MB of numbers
_NAME_END = re.compile(rb'"\s*:')
_NAME_OR_SIGN = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")\s*(:)?|[{}\[\]]', re.DOTALL)


class FileLine(NamedTuple):
    """One line of a file.

    Attributes:
        number: from 1.
        start: byte at which it begins.
        end: byte after its line break.
        raw: the line with its line break; of one that cannot be read its first bytes.
        broken: why it cannot be read, "" where it can.
    """

    number: int
    start: int
    end: int
    raw: bytes
    broken: str = ""

    def bytes(self) -> bytes:
        """Return the line.

        Raises:
            InputError: it cannot be read.
        """
        if self.broken:
            raise InputError(self.broken)
        return self.raw


def bounded_lines(
    stream: IO[bytes],
    *,
    start: int = 0,
    end: int | None = None,
    most: int = MOST_LINE,
    has_blank: bool = False,
) -> Iterator[FileLine]:
    r"""Yield the lines of a file; no more than `most` bytes of one are held.

    A longer line is skipped, and comes without its text and with the reason. So does the place where packed bytes
    end early or are broken, and a line without end; nothing follows there.

    Args:
        stream: a file of bytes, at the byte `start`.
        start: where the first line begins.
        end: no line is looked for that begins here or later; None = all.
        most: bytes of a line.
        has_blank: yield blank lines too; else they are counted and skipped at once.

    Raises:
        OSError: the file cannot be read, for another reason than its bytes.

    Example:
        >>> lines = bounded_lines(io.BytesIO(b"{}\n\n" + b"x" * 99 + b"\n[]\n"), most=9)
        >>> [(line.number, line.raw[:3], line.broken.partition(";")[0]) for line in lines]
        [(1, b'{}\n', ''), (3, b'xxx', 'a line of more than 9 bytes'), (4, b'[]\n', '')]
    """
    source = stream if hasattr(stream, "peek") else io.BufferedReader(cast("Any", stream))
    number, at = 0, start
    try:
        while end is None or at < end:
            raw = source.readline(most + 1)
            if not raw:
                return
            number, began = number + 1, at
            at += len(raw)
            if len(raw) > most:
                head, size = raw[:_HEAD], f"{most // _STEP} MiB" if most >= _STEP else f"{most} bytes"
                has_end = raw.endswith(b"\n")
                while not has_end and (end is None or at < end) and at - began <= _MOST_SKIPPED:
                    raw = source.readline(_STEP)
                    at += len(raw)
                    has_end = not raw or raw.endswith(b"\n")
                if not has_end and (end is None or at < end):
                    why = f"a line of more than {_MOST_SKIPPED >> 30} GiB"
                    yield FileLine(number, began, at, head, _unread(why))
                    return
                yield FileLine(number, began, at, head, f"a line of more than {size}; {_ADVICE}")
            elif has_blank or not raw.isspace():
                yield FileLine(number, began, at, raw)
            else:
                ahead = source.peek(1)
                blank = ahead.rfind(b"\n", 0, len(ahead) - len(ahead.lstrip())) + 1
                if end is not None:
                    blank = min(blank, end - at)
                number += ahead.count(b"\n", 0, blank)
                at += len(source.read(blank)) if blank > 0 else 0
    except Exception as error:
        if not _is_of_packed_bytes(error):
            raise
        yield FileLine(number + 1, at, at, b"", _unread(error))


def is_wide(head: bytes) -> bool:
    """Say whether a file of JSON is in UTF-16 or UTF-32, by its first bytes.

    Example:
        >>> is_wide('{"a": 1}'.encode("utf-16")), is_wide(b'{"a": 1}')
        (True, False)
    """
    return head.startswith(_WIDE_MARKS) or b"\0" in head[:4]


def _is_of_packed_bytes(error: Exception) -> bool:
    """Say whether packed bytes are broken; gzip and bz2 raise an OSError without a number, zstd its own type."""
    is_numbered = not isinstance(error, OSError) or error.errno is not None
    is_of_network = isinstance(error, TimeoutError | ConnectionError)
    return (
        isinstance(error, EOFError | zlib.error | lzma.LZMAError)
        or type(error).__name__ == "ZstdError"
        or not (is_numbered or is_of_network)
    )


def _unread(why: object) -> str:
    return f"the file cannot be read on from here ({why})"


class NotJson(InputError):
    """A line is not JSON at all."""


class NotAnObject(InputError):
    """A line is JSON, but no object."""


def json_of_line(
    raw: bytes, *, is_large: bool = False, takes_nan: bool = False, names_once: bool = False
) -> dict[str, Any]:
    """Return the object that a line holds.

    Args:
        raw: the line.
        is_large: it may have more parts than a record, as a request of OTLP has.
        takes_nan: NaN and Infinity are read; else they are refused.
        names_once: an object in it with two keys of one name is refused; else the last one counts.

    Raises:
        NotJson: it is not UTF-8 or not JSON.
        NotAnObject: it is JSON of another kind.
        InputError: it holds what no record has: a number that JSON does not have, or too many digits, parts or
            levels, or two keys of one name.

    Example:
        >>> json_of_line(b'{"query": "Where?"}')
        {'query': 'Where?'}
    """
    made = bounded_json(raw, is_large=is_large, takes_nan=takes_nan, names_once=names_once)
    if isinstance(made, list):
        raise NotAnObject(f"a line must be a JSON object, got a list; write one object a line: {UNPACK}")
    if not isinstance(made, dict):
        raise NotAnObject(f"a line must be a JSON object, got {kind_of(made)}")
    return made


def bounded_json(raw: bytes, *, is_large: bool = False, takes_nan: bool = False, names_once: bool = False) -> Any:
    """Return the JSON of a text that a stranger may have written; see `json_of_line`.

    Raises:
        NotJson: it is not UTF-8 or not JSON.
        InputError: it holds what no record has.
    """
    parts = raw.count(b"[") + raw.count(b"{")
    if not is_large and (parts > MOST_PARTS or raw.count(b",") > MOST_VALUES):
        raise InputError(f"more than {MOST_PARTS:,} lists and objects, or {MOST_VALUES:,} values; {_ADVICE}")
    made = json_value(raw, partial(_unusual, refuse=None if takes_nan else _refuse))
    if parts > _MOST_DEPTH and _is_deep(made):
        raise InputError("nested too deeply")
    if names_once:
        is_tight = not any(sign in raw for sign in (b" :", b"\t:", b"\r:", b"\n:"))
        ends = raw.count(b'":') if is_tight else len(_NAME_END.findall(raw))  # a text may hold one too
        if ends != _names_in(made):
            _refuse_twins(raw)
    return made


def _names_in(value: Any) -> int:
    """Return how many keys the objects of a value have."""
    found, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            found += len(one)
            waiting.extend(one.values())
        elif type(one) is list:
            waiting.extend(one)
    return found


def _refuse_twins(raw: bytes) -> None:
    """Raise an InputError with both places of the first key that an object of some JSON has twice."""
    objects: list[dict[str, int]] = []
    for token in _NAME_OR_SIGN.finditer(raw):
        if token[0] in {b"{", b"["}:
            objects.append({})
        elif token[0] in {b"}", b"]"}:
            objects.pop()
        elif token[2]:
            name, place = json.loads(token[1].decode("utf-8", "surrogatepass")), token.start() + 1
            if (first := objects[-1].setdefault(name, place)) != place:
                raise InputError(f"the key {name!r} twice, at the bytes {first} and {place}; rename or delete one")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_DEPTH):
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _unusual(raw: bytes, refuse: Callable[[str], NoReturn] | None) -> Any:
    """Return the JSON of a line that is not plain, or say where it is none."""
    try:
        text = raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 (byte {error.start + 1} of the line)") from None
    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        if _is_cut(text, error):
            raise NotJson(f"not JSON: the line ends too early, at column {len(text) + 1}") from None
        raise NotJson(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError("nested too deeply") from None
    except InputError:
        raise
    except ValueError:  # Python's own limit of 4,300 digits
        raise InputError("a whole number has too many digits") from None


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    is_open_text = error.msg.startswith("Unterminated string")
    return text.lstrip().startswith("{") and (is_open_text or error.pos >= len(text.rstrip()))


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"{constant} is not JSON; write null")
