r"""Reduce texts to their letters and digits, so that any notation of a text compares equal.

A formatter may show a passage as JSON, `repr`, HTML, a quotation or a table cell. All of these keep its letters
and digits in their order. They change white space, punctuation and escapes. The same reduction is applied to
the passage and to the prompt, so a text that holds ``\n`` or ``&amp;`` itself still compares equal.
"""

from __future__ import annotations

import re
from html import unescape

# Any number of backslashes: JSON inside JSON doubles them. The first condition keeps a long run of them linear.
_ESCAPE = re.compile(r"(?<!\\)\\+(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|[abefnrtv0NLP])")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*")  # a long line of YAML, which ends with an odd backslash
_ENTITY = re.compile(r"&(?:amp;)*(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});")
_BREAK = re.compile(r"</?(?:br|p|li|div|span) ?/?>", re.IGNORECASE)
_SURROGATES = re.compile("[\ud800-\udfff]")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
# U+0080 to U+00BF, U+2000 to U+203F and U+3000 to U+303F: blanks, dashes, quotation marks.
_WIDE_MARKS = re.compile(rb"\xc2[\x80-\xbf]|\xe2\x80[\x80-\xbf]|\xe3\x80[\x80-\xbf]")


def unescaped(text: str) -> str:
    r"""Return a text with escapes of JSON, Python, YAML and HTML replaced; a line break may become a blank.

    Example:
        >>> unescaped(r"Caf\u00e9\\nOslo &amp; Bergen")
        'Café Oslo & Bergen'
    """
    if "\\" in text:
        text = _ESCAPE.sub(_escaped, _CONTINUED.sub(r"\1", text))
        if _SURROGATES.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "&" in text:
        text = _ENTITY.sub(_named, text)
    return _BREAK.sub(" ", text) if "<" in text else text


def letters(text: str) -> bytes:
    r"""Return the letters and digits of a text as UTF-8, without escapes, blanks and punctuation.

    Bytes are 30 times faster to reduce than text: 60 us for 40,000 characters.

    Example:
        >>> letters("In Oslo,\n since 2026.") == letters(r'"In Oslo,\n since 2026."')
        True
    """
    kept = unescaped(text).encode("utf-8", "replace").translate(None, _NO_LETTERS)
    return kept if kept.isascii() else _WIDE_MARKS.sub(b"", kept)


def _escaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    number = int(code, 16) if code else 32
    return chr(number) if number <= 0x10FFFF else " "


def _named(found: re.Match[str]) -> str:
    return unescape(f"&{found[1]};")
