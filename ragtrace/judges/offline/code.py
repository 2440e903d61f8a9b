"""Compares code with the contexts, where each letter counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.judges.offline.addresses import LINK, MAILBOX
from ragtrace.judges.offline.notation import normalise
from ragtrace.judges.offline.words import LONGEST, stems, windows

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATH = r"(?<![\w./])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.-]+(?:[/\\][\w.-]+)*[/\\]?"
_FLAG = r"(?<![\w-])--?[A-Za-z][\w-]*"
_WORD = r"[^\W_]\w*(?:[./\\-]\w+)*"
_START = re.compile(r"^(?:[a-z][a-z0-9+.-]*://)?(?:www\.)?")


_PIECES = re.compile(
    f"{LINK}|{MAILBOX}|{_PATH}|{_FLAG}|{_WORD}", re.IGNORECASE
)  # of at most 8,192 characters: a window
# What counts to the letter in prose too: flags and pinned versions.
_EXACT = re.compile(  # of at most 2,000 characters: a sentence
    r"(?<=\s)--[a-z][\w-]+|\b[\w.-]{1,64}==[\w.]{0,64}\w", re.IGNORECASE
)


def exact_in(prose: str) -> tuple[str, ...]:
    """Return the flags and pinned versions of a sentence, which count to the letter.

    Example:
        >>> exact_in("Run nova-cli==2.1 with --fast.")
        ('nova-cli==2.1', '--fast')
    """
    return tuple(_EXACT.findall(prose))


@dataclass(frozen=True, slots=True)
class KnownCode:
    """The words of given texts, and the pieces of code that they hold as written."""

    pieces: frozenset[str]
    words: frozenset[str]

    def lacking(self, code: Iterable[str]) -> list[str]:
        """Return the pieces of code that the texts lack, each once.

        Example:
            >>> known_code(["Run `nova login --token T`."]).lacking(["nova login --force"])
            ['--force']
        """
        found = (piece for one in code for piece in _pieces_of(one))
        return list(dict.fromkeys(piece for piece in found if not self._holds(piece)))

    def _holds(self, piece: str) -> bool:
        if _key(piece) in self.pieces:
            return True
        if not piece[0].isalnum() or any(sign in piece for sign in "./\\@"):
            return False
        if any(map(str.isdigit, piece)):  # "30s" where the texts have "30 seconds"
            return all(_key(part) in self.pieces for part in _PIECES.findall(normalise(piece[:LONGEST])))
        return self.words.issuperset(stems(piece.replace("_", " ")))


def known_code(texts: Iterable[str]) -> KnownCode:
    """Collect the pieces and the words of texts."""
    pieces: set[str] = set()
    words: set[str] = set()
    for text in texts:
        pieces.update(map(_key, _pieces_of(text)))
        words.update(stems(text.replace("_", " ")))
    return KnownCode(frozenset(pieces), frozenset(words))


def _pieces_of(text: str) -> list[str]:
    return [piece for part in windows(text) for piece in _PIECES.findall(part)]


def _key(piece: str) -> str:
    """Return a piece in lower case, a link or a path without scheme, last slash and full stop."""
    lowered = piece.lower()
    return (_START.sub("", lowered).rstrip("/.") if "." in lowered else lowered) or lowered
