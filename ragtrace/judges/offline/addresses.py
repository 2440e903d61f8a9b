"""Finds links, hosts, files, mailboxes and phone numbers, which people act on, and those that given texts hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import windows

if TYPE_CHECKING:
    from collections.abc import Iterable

LINK = (
    r"(?:\b[a-z][a-z0-9+.-]{0,20}://|\bwww\.)[^\s<>()\[\]{}\"'`|]{0,500}[^\s<>()\[\]{}\"'`|.,;:!?]|"
    r"\b[a-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,4}\.[a-z]{2,12}/[\w./?=&%#~+-]{0,500}\w"
)
MAILBOX = r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"
PATH = r"(?<![\w./])(?:(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.-]+[/\\][\w./\\-]*\w|~[/\\][\w.-]*\w)"  # of two names at least
_DOTTED = (  # a host or a file: words that dots join, the last one of one case
    r"(?<![\w@./\\-])(?:[\w-]{1,64}[/\\]){0,6}[a-z0-9][\w-]{0,63}(?:\.[\w-]{1,63}){0,4}"
    r"\.(?-i:[a-z][a-z0-9]{1,11}|[A-Z][A-Z0-9]{1,11})(?![\w@/\\])"
)
_PHONE = r"(?<![\w.,:/$€£-])[+(]?\d(?:[ ()./\u2011\u2013-]{0,2}\d){5,16}(?![\w%°€$£]|[.,:/-]\d)"
ADDRESS = re.compile(  # of at most 8,192 characters: a window
    rf"{MAILBOX}|{LINK}|{PATH}|{_DOTTED}|(?P<phone>{_PHONE})", re.IGNORECASE
)
_ADDRESS_ONLY = re.compile(rf"(?:{MAILBOX}|{LINK}|{PATH}|/\S+|{_DOTTED})", re.IGNORECASE)
_START = re.compile(r"^(?:mailto:|[a-z][a-z0-9+.-]*://)?(?:www\.)?")
_NOT_DIGIT = re.compile(r"\D+")
_PREFIX_ZERO = re.compile(r"\(0\)")
_DATE = re.compile(r"\(?(?:\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})|\d{4}([./-])\d{1,2}\2\d{1,2})")
_LOCAL = re.compile(  # as in America, and in pairs
    r"(?:1[ .-])?(?:\d{3}[ .-])?\d{3}[ .-]\d{4}|\d{2}(?:[ .-]\d{2}){3,4}"
)
_AREA = re.compile(r"\(\d{2,5}\)")
_SINGLE_BEFORE_DOT = re.compile(r"(?<!\d)\d\.")
_FEWEST_DIGITS = 7
_MOST_PREFIX = 4  # digits of a country's code, with zeros before it


def is_address(target: str) -> bool:
    """Return whether the target of a link is an address, and no passage's name or place in the page.

    Example:
        >>> [is_address(target) for target in ("https://nova.dev", "nova.dev/7", "/a/b", "a.pdf", "#7", "doc-7")]
        [True, True, True, True, False, False]
    """
    return _ADDRESS_ONLY.fullmatch(target) is not None


def is_phone(text: str) -> bool:
    """Return whether groups of digits are a phone number, and no date, range or amount.

    Example:
        >>> [is_phone(text) for text in ("+49 30 901820", "(0471) 22 90 33", "555-0147", "0800 183 2276")]
        [True, True, True, True]
        >>> [is_phone(text) for text in ("05.11.2010", "2010-2015", "1 200 000", "2024-03-05", "0.1234567")]
        [False, False, False, False, False]
    """
    digits = _NOT_DIGIT.sub("", text)
    if len(digits) < _FEWEST_DIGITS or _DATE.fullmatch(text) or _SINGLE_BEFORE_DOT.search(text):
        return False
    if text[0] == "(":
        return _AREA.match(text) is not None
    return text[0] in "+0" or _LOCAL.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class KnownAddresses:
    """The addresses of given texts.

    Attributes:
        keys: in lower case, without scheme, "www." and last slash; of a link its host and its file too.
        phones: their digits.
        numbers: all groups of digits.
    """

    keys: frozenset[str]
    phones: frozenset[str]
    numbers: frozenset[str]

    def lacking(self, addresses: Iterable[str]) -> list[str]:
        """Return the addresses that the texts lack, each once.

        Example:
            >>> known = known_addresses(["Open https://nova.dev/faq/ or call 030 901820.", "help@nova.dev"])
            >>> known.lacking(["nova.dev", "www.nova.dev/faq", "+49 30 901820", "nova.dev/fees", "desk@nova.dev"])
            ['nova.dev/fees', 'desk@nova.dev']
        """
        return [one for one in dict.fromkeys(addresses) if not self._holds(one)]

    def _holds(self, address: str) -> bool:
        if _key(address) in self.keys:
            return True
        if not (address[0] in "+(" or address[0].isdigit()) or any(map(str.isalpha, address)):
            return False
        digits = _national(address)
        if any(digits == one or _is_with_prefix(digits, one) or _is_with_prefix(one, digits) for one in self.phones):
            return True
        groups = [group for group in _NOT_DIGIT.split(address) if group]  # "100-2000" is a range
        return address[0] not in "+(0" and self.numbers.issuperset(groups)


def known_addresses(texts: Iterable[str], names: Iterable[str] = ()) -> KnownAddresses:
    """Collect the addresses of texts.

    Args:
        texts: that an answer may take addresses from.
        names: ids, sources and facts of passages, each an address of its own.
    """
    keys: set[str] = set()
    phones: set[str] = set()
    numbers: set[str] = set()
    for text in (*texts, *names):
        for found in (it for part in windows(text) for it in ADDRESS.finditer(part)):
            if found.lastgroup == "phone":
                phones.add(_national(found[0]))
                numbers.update(_NOT_DIGIT.split(found[0]))
            else:
                keys.update(_keys(found[0]))
        numbers.update(group for part in windows(text) for group in _NOT_DIGIT.split(part))
    for name in names:
        keys.update(_keys(name))
    return KnownAddresses(frozenset(keys), frozenset(phones), frozenset(numbers))


def _keys(address: str) -> set[str]:
    """Return what an address supports: itself, without its place in a page, its host, and its file."""
    key = _key(address)
    page = key.partition("#")[0].partition("?")[0].rstrip("/")
    found = {key, page}
    if "@" not in key:
        parts = page.replace("\\", "/").split("/")
        found.update(part for part in (parts[0], parts[-1]) if "." in part)
    return found


def _key(address: str) -> str:
    lowered = address.lower()
    return _START.sub("", lowered).rstrip("/.") or lowered


def _national(phone: str) -> str:
    """Return the digits of a phone number without zeros before them."""
    return _NOT_DIGIT.sub("", _PREFIX_ZERO.sub("", phone)).lstrip("0")


def _is_with_prefix(long: str, short: str) -> bool:
    """Return whether one number is another one behind the code of its country."""
    return len(short) >= _FEWEST_DIGITS and long.endswith(short) and len(long) - len(short) <= _MOST_PREFIX
