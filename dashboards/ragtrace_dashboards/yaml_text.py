"""Writes plain values as YAML: a package that people install needs no YAML library for it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def yaml_text(value: Any) -> str:
    """Return mappings, sequences, texts, numbers, booleans and None as YAML in block style.

    Texts of several lines become literal blocks, all others are quoted, so that nothing is taken for a number.

    Raises:
        TypeError: a value is of another kind.

    Example:
        >>> print(yaml_text({"groups": [{"name": "a", "limit": 1}], "empty": []}), end="")
        groups:
          - name: "a"
            limit: 1
        empty: []
    """
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _entry(f"{indent}{_key(key)}:", inner, indent)
    elif isinstance(value, list | tuple) and value:
        for inner in value:
            nested = list(_lines(inner, f"{indent}  ")) if _is_nested(inner) else []
            if nested:
                yield f"{indent}- {nested[0].lstrip(' ')}"
                yield from nested[1:]
            else:
                yield f"{indent}- {_scalar(inner)}"
    else:
        yield f"{indent}{_scalar(value)}"


def _entry(head: str, inner: Any, indent: str) -> Iterator[str]:
    if _is_nested(inner):
        yield head
        yield from _lines(inner, f"{indent}  ")
    elif isinstance(inner, str) and _is_block(inner):
        yield f"{head} |-"
        yield from (f"{indent}  {line}" if line else "" for line in inner.split("\n"))
    else:
        yield f"{head} {_scalar(inner)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple) and bool(value)


def _is_block(text: str) -> bool:
    """Say whether a text may be a literal block: several lines, no odd blanks at its ends, nothing unprintable."""
    lines = text.split("\n")
    fits = all(line.isprintable() for line in lines)
    return len(lines) > 1 and fits and bool(lines[0].strip()) and bool(lines[-1]) and not lines[0].startswith(" ")


def _key(key: str) -> str:
    return key if _PLAIN.match(key) and key.lower() not in _WORDS else json.dumps(key)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str) or value in ({}, [], ()):
        return json.dumps(value, ensure_ascii=False)
    raise TypeError(f"{type(value).__name__} has no form in YAML here")
