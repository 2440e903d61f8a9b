"""Masks of texts and names: what an application said cannot be read in them, and capture reads the same in them.

A word becomes letters that no language writes, as many as it has, by a keyed hash of its folded form: the same word
has the same mask in one file, in any case and form of Unicode, so that a passage is still found in a prompt. What
the rules of capture read stays: punctuation, line breaks, marks of citations, roles, and the names of fields that
the frameworks themselves write. Digits are masked as one run, over blanks, dots and slashes between them.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from math import isfinite, prod
from secrets import token_bytes
from string import ascii_lowercase
from unicodedata import normalize

from ragtrace.capture.attribution import unescaped
from ragtrace.capture.model_calls import is_refusal_reason
from ragtrace.capture.names import KEPT
from ragtrace.capture.words import MARKS
from ragtrace.text import MAX_NAME_CHARS, folded, valid

_HAN, _HIRAGANA, _KATAKANA = "\u3400-\u4dbf\u4e00-\u9fff\u3005", "\u3041-\u309f", "\u30a1-\u30ff"
_UNSEEN = "\u0300-\u036f\u00ad\u034f\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff"
_RAISED = "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089"
_LETTER = rf"[^\W\d_{_HAN}{_HIRAGANA}{_KATAKANA}{_RAISED}]"
# A letter in a notation of JSON, Python or HTML, behind any number of backslashes; it may be another sign as well.
_ESCAPED = (
    r"(?:(?<!\\)\\++(?:u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2})|&(?:amp;)*(?:[a-zA-Z]{1,2}"
    r"(?:acute|grave|uml|circ|tilde|cedil|ring|slash|lig|caron)|\#\d{2,7}|\#[xX][0-9a-fA-F]{2,6});)"
)
_LITERALS = "true|false|null|None|True|False"
_TOKEN = re.compile(
    rf"""(?=[^\W_]|[<\[{_RAISED}]|&[a-zA-Z\#]|(?<!\\)\\|(?<=["'(,\s])_)(?:(?=[\\&<\[{_RAISED}])(?P<mark></?(?:think(?:ing)?|thoughts?|reasoning|answer|response|solution|br|p|li|div|span|sup|cite|ref)\b
      |<\|[a-z_]{{1,24}}\|>|\[/?THINK(?:ING)?\]|(?<!\\)\\++[abefnrtv0NLP]|&(?:amp;)*(?:amp|lt|gt|quot|apos|nbsp|[lr][sd]quo|[nm]dash|hellip);
      |[{_RAISED}]+)
    |(?=[\w\\&])(?:(?=[hsgf])(?P<scheme>\b(?:https?|s3|gs|file)(?=://))
    |(?=[tfnNTF])(?P<literal>(?<=[:,\[({{\s])(?:{_LITERALS})(?=\s*[,}}\])]))
    |(?P<name>(?<=["'])[^\W\d][\w.@$ -]{{0,62}}(?=\\?["']\s*:)|(?<=[(,\s])[^\W\d]\w{{0,62}}(?==["'\[{{(\d])
      |(?=D)\bDocument(?=\())
    |(?P<word>(?:{_LETTER}|{_ESCAPED})(?:(?:{_LETTER}|[{_UNSEEN}{MARKS}])++|{_ESCAPED})*+)
    |(?P<han>[{_HAN}]+)|(?P<hiragana>[{_HIRAGANA}]+)|(?P<katakana>[{_KATAKANA}]+)
    |(?P<digits>\d+(?:[ \u00a0.,/:'\u2019-]?\d+)*+)))""",
    re.VERBOSE,
)
_PARTS = re.compile(  # of a name, also of one in camel case; of at most 256 characters
    rf"[A-Z]?(?:(?![A-Z]){_LETTER})+|[A-Z]+(?![a-z])|[A-Z]|[{_HAN}{_HIRAGANA}{_KATAKANA}]+|\d{{3,}}"
)
_MOST_DRAWN = 64  # letters of a mask; a longer one repeats them
_FIRST, _LATER = "jqvwxz", "bcdfghjklmnpqrstvwxz"  # no vowel: no word of a language
_ALPHABETS = {
    "han": "".join(map(chr, range(0x3400, 0x3500))),
    "hiragana": "\u3041\u3043\u3045\u3047\u3049\u3083\u3085\u3087\u308e\u3090\u3091",
    "katakana": "\u30a1\u30a3\u30a5\u30a7\u30a9\u30e3\u30e5\u30e7\u30ee\u30f0\u30f1",
}
_MOST_TRIES = 4_096


class Masker:
    """Masks the words of one file, by a key that is drawn for it and nowhere written.

    Args:
        key: for tests; default drawn anew.

    Example:
        >>> masker = Masker(b"a key")
        >>> masked = masker.text("The lab is in Oslo [1].")
        >>> len(masked), masked[-5:], "Oslo" in masked, masker.text("OSLO").lower() in masked.lower()
        (23, ' [1].', False, True)
        >>> masker.name("question"), "Yes" in masker.text("Yes.")
        ('question', False)
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = token_bytes(32) if key is None else key
        self._masks: dict[tuple[str, str], str] = {}
        self._owners: dict[str, tuple[str, str]] = {}  # words by their masks
        self._names: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return a text with masks in place of its words and long numbers."""
        return _TOKEN.sub(self._token, valid(text))

    def name(self, name: str) -> str:
        """Return a name of a field, a step or a tool; one that the frameworks or providers write stays.

        Example:
            >>> Masker(b"a key").name("documents"), "oslo" in Masker(b"a key").name("oslo_docs")
            ('documents', False)
        """
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = self._masked_name(valid(name))
        return known

    def link(self, key: str) -> str:
        """Return a link that stands for a picture."""
        return f"gs://{self._mask(key, '')}"

    def number(self, number: float) -> float:
        """Return a number with masks in place of digits, as a text with it has them."""
        mantissa, mark, exponent = repr(number).partition("e")
        masked = type(number)(f"{self.text(mantissa)}{mark}{exponent}")
        return masked if isfinite(masked) else number

    def _masked_name(self, name: str) -> str:
        if len(name) > MAX_NAME_CHARS:
            return self.text(name)
        # "Document" as LangChain writes one out; a provider's refusal is read by its reason.
        if name in KEPT or name == "Document" or is_refusal_reason(name):
            return name
        return _PARTS.sub(lambda part: self._digits(part[0]) if part[0].isdecimal() else self._word(part[0]), name)

    def _token(self, found: re.Match[str]) -> str:
        kind, token = found.lastgroup, found[0]
        if kind in {"mark", "literal"}:
            return token
        if kind == "name":
            return self.name(token)
        if kind == "scheme":  # by which a link is known
            return "gs"
        if kind == "word":
            return (
                self._word(token)
                if token[0] not in "\\&" and "\\" not in token and ";" not in token
                else self._escaped(token)
            )
        return self._digits(token) if kind == "digits" else self._mask(folded(token), str(kind))

    def _escaped(self, token: str) -> str:
        """Return the mask of a word in which letters are written in another notation."""
        plain = unescaped(token)
        is_word = all(one.isalpha() or folded(one) in {"", " "} for one in plain)
        return self._word(plain) if is_word else token if plain == token else _TOKEN.sub(self._token, plain)

    def _word(self, word: str) -> str:
        low, form = folded(word), normalize("NFKC", word)
        mask = self._mask(low, "")
        if form.isupper() and len(form) > 1:
            return mask.upper()
        if len(form) != len(mask):
            return mask.capitalize() if form[:1].isupper() else mask
        if form.islower():
            return mask
        return "".join(one.upper() if like.isupper() else one for one, like in zip(mask, form, strict=True))

    def _digits(self, digits: str) -> str:
        """Return a run of digits with others in their places; a short one is a rank, or a mark of a citation."""
        bare = "".join(filter(str.isdecimal, digits)).lstrip("0")
        if len(bare) < 3:
            return digits
        mask = list(self._mask(folded(bare), "digits"))
        left = sum(map(str.isdecimal, digits)) - len(bare)
        made = []
        for sign in digits:
            is_kept = not sign.isdecimal() or left > 0
            left -= sign.isdecimal() and left > 0
            made.append(sign if is_kept else mask.pop(0))
        return "".join(made)

    def _mask(self, word: str, kind: str) -> str:
        own = (kind, word)
        mask = self._masks.get(own)
        if mask is not None:
            return mask
        size = len(word)
        alphabets = _alphabets(kind, min(size, _MOST_DRAWN))
        space = prod(map(len, alphabets))
        digest = blake2b(f"{own[0]}\0{word}".encode("utf-8", "surrogatepass"), key=self._key).digest()
        drawn = int.from_bytes(digest * (1 + space.bit_length() // 512))
        for again in range(min(space, _MOST_TRIES)):  # two words share no mask, as long as there are others
            mask = _spelled((drawn + again) % space, alphabets)
            mask = (mask * (size // _MOST_DRAWN + 1))[:size]
            if self._owners.setdefault(mask, own) == own:
                break
        self._masks[own] = mask = mask or word
        return mask


def _alphabets(kind: str, size: int) -> list[str]:
    if kind == "digits":
        return [*["123456789"][:size], *["0123456789"] * (size - 1)]
    if kind or size < 3:
        return [_ALPHABETS.get(kind, ascii_lowercase)] * size
    return [_FIRST, *[_LATER] * (size - 1)]


def _spelled(number: int, alphabets: list[str]) -> str:
    letters = []
    for alphabet in reversed(alphabets):
        number, at = divmod(number, len(alphabet))
        letters.append(alphabet[at])
    return "".join(reversed(letters))
