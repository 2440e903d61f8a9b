"""Finds links, hosts, files, mailboxes and phone numbers, which people act on, and those that given texts hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import windows

if TYPE_CHECKING:
    from collections.abc import Iterable

LINK = (
    r"(?:\b[a-z][a-z0-9+.-]{0,20}://|\bwww\.)[^\s<>()\[\]{}\"'`|]{0,500}[^\s<>()\[\]{}\"'`|.,;:!?]|"
    r"\b[a-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,4}\.[a-z]{2,12}/[\w./?=&%#~+-]{0,500}\w"
)
MAILBOX = r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"
PATH = (  # of two names at least, or in a person's folder
    r"(?<![\w./])(?:(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.-]+[/\\][\w./\\-]*\w|~[/\\][\w.-]*\w)"
)
_DOTTED = (  # a host or a file: words that dots join, the last one of one case
    r"(?<![\w@./\\-])(?:[\w-]{1,64}[/\\]){0,6}[a-z0-9][\w-]{0,63}(?:\.[\w-]{1,63}){0,4}"
    r"\.(?-i:[a-z][a-z0-9]{1,11}|[A-Z][A-Z0-9]{1,11})(?![\w@/\\])"
)
_PHONE = r"(?<![\w.,:/$€£-])[+(]?\d(?:[ ()./\u2011\u2013-]{0,2}\d){5,16}(?![\w%°€$£]|[.,:/-]\d)"
ADDRESS = re.compile(  # of at most 8,192 characters: a window
    rf"{MAILBOX}|{LINK}|{PATH}|{_DOTTED}|(?P<phone>{_PHONE})", re.IGNORECASE
)
_NUMERIC = re.compile(r"[+(]?\d[^A-Za-z@]*+")
_SLASH = re.compile(r"[/\\@]")
_BEFORE_NAME = re.compile(r"(?:^|[^\w.@-]|www\.)$")
_BEFORE_PATH = re.compile(r"(?:^|[^\w.@/\\+-]|://(?:www\.)?|\bwww\.)$")
_BEHIND_NAME = re.compile(r"(?![\w@-]|\.\w)")
_BEHIND_PATH = re.compile(r"(?![\w@-]|[.=&%+]\w|[/\\]+\w)")
_MOST_BEFORE = 12  # characters that tell whether an address begins
_DIGITS_OF_PHONE = re.compile(r"\d(?:[ ()./\u2011\u2013-]{0,3}\d){5,30}")  # of at most 8,192 characters: a window
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


@dataclass(frozen=True)
class KnownAddresses:
    """The addresses of given texts.

    Attributes:
        text: all texts in lower case.
    """

    text: str

    def lacking(self, addresses: Iterable[str]) -> list[str]:
        """Return the addresses that the texts lack, each once.

        Scheme, "www.", case and a last slash do not matter. A host or a file alone is held by a link with it, a
        link by no host; a phone number with or without the code of its country.

        Example:
            >>> known = KnownAddresses("https://nova.dev/faq/#top, call 030 901820, mail to help@nova.dev.")
            >>> known.lacking(["nova.dev", "www.nova.dev/faq", "+49 30 901820", "nova.dev/fees", "desk@nova.dev"])
            ['nova.dev/fees', 'desk@nova.dev']
        """
        return [one for one in dict.fromkeys(addresses) if not self._holds(one)]

    def _holds(self, address: str) -> bool:
        if _NUMERIC.fullmatch(address):
            return self._has_phone(address)
        lowered = address.lower()
        key = _START.sub("", lowered).rstrip("/.") or lowered
        before = _BEFORE_NAME if _SLASH.search(key) is None else _BEFORE_PATH
        at = self.text.find(key)
        while at >= 0:
            end = at + len(key)
            is_begun = before.search(self.text[max(0, at - _MOST_BEFORE) : at]) is not None
            is_name = before is _BEFORE_NAME
            if is_begun and (_BEHIND_NAME.match(self.text, end) if is_name else _BEHIND_PATH.match(self.text, end)):
                return True
            at = self.text.find(key, end)
        return False

    def _has_phone(self, phone: str) -> bool:
        digits = _national(phone)
        if any(digits in run or _is_with_prefix(digits, run) for run in self._phones):
            return True
        is_range = phone[0] not in "+(0"  # "100-2000"
        return is_range and self._numbers.issuperset(filter(None, _NOT_DIGIT.split(phone)))

    @cached_property
    def _phones(self) -> frozenset[str]:
        found = (_national(it) for part in windows(self.text) for it in _DIGITS_OF_PHONE.findall(part))
        return frozenset(digits for digits in found if len(digits) >= _FEWEST_DIGITS - 1)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(number for part in windows(self.text) for number in _NOT_DIGIT.split(part))


def _national(phone: str) -> str:
    """Return the digits of a phone number without zeros before them."""
    return _NOT_DIGIT.sub("", _PREFIX_ZERO.sub("", phone)).lstrip("0")


def _is_with_prefix(long: str, short: str) -> bool:
    """Return whether one number is another one behind the code of its country."""
    return long.endswith(short) and len(long) - len(short) <= _MOST_PREFIX
