"""Masks of texts and names: what an application said cannot be read in them, and capture reads the same in them.

A word becomes letters that no language writes, as many as it has, by a keyed hash of its folded form: the same word
has the same mask in one file, in any case and form of Unicode, so that a passage is still found in a prompt. What
the rules of capture read stays: punctuation, line breaks, marks of citations, roles, and of the names of fields and
tools the words by which a rule knows them. A grade or a yes becomes another one of two letters.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from importlib import import_module
from math import prod
from secrets import token_bytes
from string import ascii_lowercase
from unicodedata import normalize

from ragtrace.capture.attribution import unescaped
from ragtrace.capture.evidence import MARKS
from ragtrace.capture.messages import ROLES
from ragtrace.capture.verdicts import is_verdict, is_verdict_on
from ragtrace.text import MAX_NAME_CHARS, folded, valid

# Modules whose patterns and lists tell what a name stands for.
_RULES = (
    "assembly", "attribution", "chunks", "citations", "content_blocks", "documents", "evidence", "evidence_texts",
    "interpret", "known", "lineage", "messages", "model_calls", "passages", "pictures", "turns", "verdicts",
)  # fmt: skip
# Names that rules write out where they read them, and fields of messages and documents that a place may name.
_WRITTEN_OUT = frozenset(
    {
        "_additional", "answer", "args", "artifact", "base64", "bytes", "call_id", "calls", "certainty", "context",
        "content", "data", "document", "file", "file_data", "file_id", "filename", "format", "goto", "grades", "id",
        "image", "json", "kwargs", "media_type", "messages", "metadata", "mime_type", "name", "output",
        "page_content", "parsed", "picture", "raw", "refusal", "results", "role", "score", "source", "text",
        "title", "tool_call_id", "tool_calls", "turns", "type", "update", "value",
    }
)  # fmt: skip
_ENDS = re.compile(r"_id$|_call$|_tool_result$")
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
    |(?P<word>(?:{_LETTER}|{_ESCAPED})(?:(?:{_LETTER}|[{_UNSEEN}])++|{_ESCAPED})*+)
    |(?P<han>[{_HAN}]+)|(?P<hiragana>[{_HIRAGANA}]+)|(?P<katakana>[{_KATAKANA}]+)
    |(?P<digits>\d+)))""",
    re.VERBOSE,
)
_PARTS = re.compile(  # of a name, also of one in camel case; of at most 256 characters
    rf"[A-Z]?(?:(?![A-Z]){_LETTER})+|[A-Z]+(?![a-z])|[A-Z]|[{_HAN}{_HIRAGANA}{_KATAKANA}]+|\d{{3,}}"
)
_NAME_WORDS = re.compile(r"[A-Z]?[^A-Z\W_]+|[A-Z]+")
_MOST_DRAWN = 64  # letters of a mask; a longer one repeats them
_FIRST, _LATER = "jqvwxz", "bcdfghjklmnpqrstvwxz"  # no vowel: no word of a language
_ALPHABETS = {
    "han": "".join(map(chr, range(0x3400, 0x3500))),
    "hiragana": "\u3041\u3043\u3045\u3047\u3049\u3083\u3085\u3087\u308e\u3090\u3091",
    "katakana": "\u30a1\u30a3\u30a5\u30a7\u30a9\u30e3\u30e5\u30e7\u30ee\u30f0\u30f1",
}
_GRADES = {
    "yes": "ja", "no": "no", "true": "si", "false": "no", "oui": "ja", "non": "no", "nein": "no", "wahr": "ja",
    "falsch": "no", "vrai": "ja", "faux": "no", "sim": "ja", "nee": "no", "nej": "no",
}  # fmt: skip
# Words of prompts and replies by which a rule knows their kind; the mask ends with a word of the same kind.
_KINDS = (
    (
        re.compile(
            "contexts?|documents?|passages?|sources?|excerpts?|snippets?|kontext|dokumente?|quellen?|auszüge?"
            "|textstellen|contexte|extraits?|contexto|documentos?|fuentes?"
        ),
        "\u8cc7\u6599",  # above a context
    ),
)
_MARKS = ("か。", "か")  # of a question
_MOST_JUDGED_CHARS = 2_000
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
        >>> masker.name("question"), masker.text("Yes.")
        ('question', 'Ja.')
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = token_bytes(32) if key is None else key
        self._masks: dict[tuple[str, str], str] = {}
        # Words by their masks; a short word that stays is no mask.
        self._owners: dict[str, tuple[str, str]] = dict.fromkeys(_short_words(), ("", ""))
        self._names: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return a text with masks in place of its words and long numbers."""
        text = valid(text)
        masked = _TOKEN.sub(self._token, text)
        for mark in _MARKS:
            if text.rstrip().endswith(mark):
                end = len(masked.rstrip())
                return f"{masked[: end - len(mark)]}{mark}{masked[end:]}"
        if len(text) > _MOST_JUDGED_CHARS:
            return masked
        if is_verdict(text):
            return masked if is_verdict(masked) else "no"
        if is_verdict(masked) or is_verdict_on(text) == is_verdict_on(masked):
            return masked
        return "ok" if is_verdict_on(text) else masked

    def name(self, name: str) -> str:
        """Return a name of a field, a step or a tool; words by which a rule knows it stay.

        Example:
            >>> Masker(b"a key").name("retrieved_docs"), "oslo" in Masker(b"a key").name("oslo_docs")
            ('retrieved_docs', False)
        """
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = self._masked_name(valid(name))
        return known

    def link(self, key: str) -> str:
        """Return a link that stands for a picture."""
        return f"gs://{self._mask(key, '', 0)}"

    def number(self, number: float) -> float:
        """Return a number with masks in place of digits, as a text with it has them."""
        try:
            return type(number)(self.text(repr(number)))
        except ValueError:  # with an exponent
            return number

    def _masked_name(self, name: str) -> str:
        if len(name) > MAX_NAME_CHARS:
            return self.text(name)
        if name == "Document":  # as LangChain writes one out
            return name
        before = _read_by_rules(name)
        masked, at = name, 0
        while part := _PARTS.search(masked, at):
            start, end = part.span()
            for salt in range(3):
                word = self._digits(part[0]) if part[0].isdecimal() else self._word(part[0], salt)
                tried = f"{masked[:start]}{word}{masked[end:]}"
                if _read_by_rules(tried) == before:
                    masked, end = tried, start + len(word)
                    break
            at = end
        return masked

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
        return self._digits(token) if kind == "digits" else self._mask(folded(token), str(kind), 0)

    def _escaped(self, token: str) -> str:
        """Return the mask of a word in which letters are written in another notation."""
        plain = unescaped(token)
        is_word = all(one.isalpha() or folded(one) in {"", " "} for one in plain)
        return self._word(plain) if is_word else token if plain == token else _TOKEN.sub(self._token, plain)

    def _word(self, word: str, salt: int = 0) -> str:
        low, form = folded(word), normalize("NFKC", word)
        if low in _short_words():
            return word
        mask = _GRADES.get(low) or self._mask(low, "", salt)
        if form.isupper() and len(form) > 1:
            return mask.upper()
        if len(form) != len(mask):
            return mask.capitalize() if form[:1].isupper() else mask
        if form.islower():
            return mask
        return "".join(one.upper() if like.isupper() else one for one, like in zip(mask, form, strict=True))

    def _digits(self, digits: str) -> str:
        if len(digits) < 3:  # a rank, or a mark of a citation
            return digits
        bare = digits.lstrip("0")
        return (
            digits if len(bare) < 3 else digits[: len(digits) - len(bare)] + self._mask(folded(bare), "digits", 0)
        )

    def _mask(self, word: str, kind: str, salt: int) -> str:
        own = (kind, word) if not salt else (f"{kind}{salt}", word)
        mask = self._masks.get(own)
        if mask is not None:
            return mask
        end = "" if kind else _end_of(word)
        size = len(word) - len(end)
        alphabets = _alphabets(kind, min(size, _MOST_DRAWN))
        space = prod(map(len, alphabets))
        digest = blake2b(f"{own[0]}\0{word}".encode("utf-8", "surrogatepass"), key=self._key).digest()
        drawn = int.from_bytes(digest * (1 + space.bit_length() // 512))
        for again in range(min(space, _MOST_TRIES)):  # two words share no mask, as long as there are others
            mask = _spelled((drawn + again) % space, alphabets)
            mask = (mask * (size // _MOST_DRAWN + 1))[:size] + end
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


@cache
def _marks() -> dict[str, str]:
    return {folded(word): mark for word, mark in MARKS.items()}


def _end_of(word: str) -> str:
    """Return the end of a mask by which a rule knows the kind of its word."""
    return _marks().get(word) or next((end for words, end in _KINDS if words.fullmatch(word)), "")


@cache
def _rules() -> tuple[tuple[re.Pattern[str], ...], tuple[frozenset[str], ...]]:
    """Return the patterns and the lists of words of all rules."""
    patterns, lists = {_ENDS}, {_WRITTEN_OUT, ROLES}
    for name in _RULES:
        for value in vars(import_module(f"ragtrace.capture.{name}")).values():
            parts = value if isinstance(value, tuple) else (value,)
            patterns.update(one for one in parts if isinstance(one, re.Pattern) and isinstance(one.pattern, str))
            if isinstance(value, frozenset | tuple) and value and all(isinstance(one, str) for one in value):
                lists.add(frozenset(value))
    return tuple(patterns), tuple(lists)


@cache
def _short_words() -> frozenset[str]:
    """Return the words of one and two letters in the lists of rules."""
    words = (word for words in _rules()[1] for word in words)
    return frozenset(word for word in words if len(word) < 3 and word.isascii() and word.isalpha())


def _read_by_rules(name: str) -> tuple[object, ...]:
    """Return what all rules read in a name."""
    patterns, lists = _rules()
    words = [word.casefold() for word in _NAME_WORDS.findall(name)]
    return (
        tuple((bool(one.search(name)), bool(one.match(name)), bool(one.fullmatch(name))) for one in patterns),
        tuple((name in one, name.casefold() in one, tuple(word in one for word in words)) for one in lists),
    )
